"""Which domains a constrained group may use: bound members of its subtree pin the one they run in (semantics 5.4)."""

from __future__ import annotations

import numpy as np

from muster.core.arrays import Slots
from muster.core.cuts import Level
from muster.core.decision import Reason
from muster.core.domains import Domain
from muster.core.node_table import NodeTable
from muster.core.tree import GroupTree, leaves

PINNED_APART = "PINNED_APART"
PINNED_OUTSIDE = "PINNED_OUTSIDE"
NO_DOMAIN = "NO_DOMAIN"
_MOST_NAMED = 5
_NOWHERE: Slots = np.zeros(0, dtype=np.intp)


def allowed_places(
    nodes: NodeTable, group: GroupTree, level: Level, outer: Domain
) -> tuple[Slots, list[Reason]]:
    """Places of the candidates on their level; if there are none, the reason. Nodes that are gone pin nothing."""
    pinning = sorted(
        {name for leaf in leaves(group) for name in leaf.bound_nodes if nodes.slot(name) is not None}
    )
    if not pinning:
        return np.arange(len(level)), [] if len(level) else [_no_domain(level.key, outer)]
    column = nodes.column(level.key)
    slots = nodes.slots_of(pinning)
    codes = set(column.codes[slots].tolist())
    if len(codes) > 1 or min(codes) < 0:
        return _NOWHERE, [_apart(nodes, pinning, level.key)]
    members = np.isin(level.slots, slots, assume_unique=True)
    if np.count_nonzero(members) < len(slots):
        return _NOWHERE, [_outside(pinning, outer)]
    return np.unique(level.members[members]), []


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
