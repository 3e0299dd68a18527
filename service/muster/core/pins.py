"""Which domains a constrained group may use: bound members of its subtree pin the one they run in (semantics 5.4)."""

from __future__ import annotations

import numpy as np

from muster.core.decision import Reason
from muster.core.domains import Domain, candidate_domains
from muster.core.node_table import NodeTable
from muster.core.tree import GroupTree, leaves

PINNED_APART = "PINNED_APART"
PINNED_OUTSIDE = "PINNED_OUTSIDE"
NO_DOMAIN = "NO_DOMAIN"
CLOSEST_DOMAIN = "CLOSEST_DOMAIN"
_MOST_NAMED = 5


def allowed_domains(
    nodes: NodeTable, group: GroupTree, key: str, outer: Domain
) -> tuple[list[Domain], list[Reason]]:
    """Candidates by value; if there are none, the reason. Nodes that no longer exist pin nothing."""
    candidates = candidate_domains(nodes, key, outer)
    pinning = sorted(
        {name for leaf in leaves(group) for name in leaf.bound_nodes if nodes.slot(name) is not None}
    )
    if not pinning:
        return candidates, [] if candidates else [_no_domain(key, outer)]
    column = nodes.column(key)
    slots = nodes.slots_of(pinning)
    codes = set(column.codes[slots].tolist())
    if len(codes) > 1 or min(codes) < 0:
        return [], [_apart(nodes, pinning, key)]
    pinned = [
        domain
        for domain in candidates
        if domain.slots is not None and np.isin(slots, domain.slots, assume_unique=True).all()
    ]
    return pinned, [] if pinned else [_outside(pinning, outer)]


def closest_domain(domain: Domain) -> Reason:
    """The candidate in which most of a failed group was placed; the group's counters and reasons are those in it."""
    details = {"key": domain.key, "value": domain.value}
    return Reason(CLOSEST_DOMAIN, f"{domain.key}={domain.value} came closest", 0, details)


def _no_domain(key: str, outer: Domain) -> Reason:
    where = f" in {outer.key}={outer.value}" if outer.key else ""
    return Reason(NO_DOMAIN, f"no node{where} has the label {key}", 0, {"key": key})


def _apart(nodes: NodeTable, pinning: list[str], key: str) -> Reason:
    where = [f"{name} ({key}={_value(nodes, name, key)})" for name in pinning[:_MOST_NAMED]]
    more = f" and {len(pinning) - _MOST_NAMED} more" if len(pinning) > _MOST_NAMED else ""
    text = f"bound members do not share one domain of {key}: {', '.join(where)}{more}"
    return Reason(PINNED_APART, text, len(pinning), {"key": key, "node_names": ",".join(pinning)})


def _value(nodes: NodeTable, name: str, key: str) -> str:
    slot = nodes.slot(name)
    return nodes.labels[slot].get(key, "<missing>") if slot is not None else "<missing>"


def _outside(pinning: list[str], outer: Domain) -> Reason:
    text = f"bound members run outside {outer.key}={outer.value}: {', '.join(pinning[:_MOST_NAMED])}"
    return Reason(PINNED_OUTSIDE, text, len(pinning), {"node_names": ",".join(pinning)})
