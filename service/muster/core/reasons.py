"""Why no node takes a pod: nodes counted by the first filter that refuses them, and whether removing pods would help.

Worked out only when a pod has failed, on the state in which it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray
from muster.core.decision import Reason, Status
from muster.core.domains import Domain
from muster.core.framework import PodFilter, Profile
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.model.resources import PODS

BINDING_FAILED = "BINDING_FAILED"
NO_NODES = "NO_NODES"
TOO_MANY_PODS = "TOO_MANY_PODS"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why pods of a signature were not placed, and the status that it gives each of them."""

    status: Status
    reasons: tuple[Reason, ...]


@dataclass(slots=True)
class _Nodes:
    """The nodes of a domain, of which filters strike out one after the other."""

    total: int
    left: BoolArray
    names: Sequence[str] = ()
    examples: int = 0
    struck: list[Reason] = field(default_factory=list)

    def strike(self, code: str, message: str, admitted: BoolArray) -> None:
        """Take out and count the nodes that are not admitted."""
        refused = self.left & ~admitted
        if self.note(code, message, refused, {}):
            self.left &= admitted

    def note(self, code: str, message: str, refused: BoolArray, facts: dict[str, str]) -> int:
        """Count refused nodes, with the names of some if they are asked for; how many there are."""
        number = int(np.count_nonzero(refused))
        if number:
            details = {"nodes": str(self.total), **facts}
            if self.examples:
                named = sorted(self.names[slot] for slot in np.flatnonzero(refused).tolist())
                details["examples"] = ",".join(named[: self.examples])
            self.struck.append(Reason(code, message, number, details))
        return number


def refusal_of(
    snapshot: Snapshot,
    profile: Profile,
    signature: Signature,
    domain: Domain,
    excluded: frozenset[str],
    examples: int = 0,
) -> Refusal:
    """Why such a pod fits nowhere in the domain, what most nodes fail first.

    Nodes that lack several resources count under each. examples: so many refused nodes are named with each reason,
    the first by name.
    """
    mask = _members(snapshot, domain)
    nodes = _Nodes(int(np.count_nonzero(mask)), mask, snapshot.nodes.names, examples)
    if not nodes.total:
        reason = Reason(NO_NODES, "there are no nodes", 0, {"nodes": "0"})
        return Refusal(Status.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    if excluded:
        admitted = np.ones(snapshot.nodes.size, dtype=np.bool_)
        admitted[snapshot.nodes.slots_of(sorted(excluded))] = False
        nodes.strike(BINDING_FAILED, "node(s) failed to bind the pod lately", admitted)
    for node_filter in profile.node_filters:
        node_mask = node_filter.mask(signature, snapshot.nodes)
        if node_mask is not None:
            nodes.strike(node_filter.code, node_filter.message, node_mask)
    status = _status(snapshot, signature, nodes.left)
    _strike_by_pods(nodes, snapshot, profile, signature)
    return Refusal(status, tuple(sorted(nodes.struck, key=_frequency)))


def _frequency(reason: Reason) -> tuple[int, str]:
    """Sort key: what most nodes fail comes first."""
    return -reason.node_count, reason.code


def _strike_by_pods(nodes: _Nodes, snapshot: Snapshot, profile: Profile, signature: Signature) -> None:
    for item in _concerned(profile, signature, snapshot, reads_one_node=True):
        nodes.strike(item.code, item.message, item.mask(signature, snapshot))
    _strike_full(nodes, snapshot, signature)
    for item in _concerned(profile, signature, snapshot, reads_one_node=False):
        nodes.strike(item.code, item.message, item.mask(signature, snapshot))


def _concerned(
    profile: Profile, signature: Signature, snapshot: Snapshot, *, reads_one_node: bool
) -> Iterator[PodFilter]:
    for item in profile.pod_filters:
        if item.reads_one_node is reads_one_node and item.concerns(signature, snapshot):
            yield item


def _members(snapshot: Snapshot, domain: Domain) -> BoolArray:
    if domain.slots is None:
        return snapshot.nodes.present.copy()
    mask = np.zeros(snapshot.nodes.size, dtype=np.bool_)
    mask[domain.slots] = True
    return mask


def _status(snapshot: Snapshot, signature: Signature, admitted: BoolArray) -> Status:
    """Unschedulable if an admitted node could hold the pod once it is empty."""
    fits = admitted.copy()
    for resource, amount in signature.requests.items():
        fits &= snapshot.nodes.allocatable[snapshot.nodes.row(resource)] >= amount
    return Status.UNSCHEDULABLE if fits.any() else Status.UNSCHEDULABLE_AND_UNRESOLVABLE


def _strike_full(nodes: _Nodes, snapshot: Snapshot, signature: Signature) -> None:
    fits = np.ones(snapshot.nodes.size, dtype=np.bool_)
    for resource, amount in sorted(signature.requests.items()):
        enough = snapshot.nodes.free[snapshot.nodes.row(resource)] >= amount
        nodes.note(*_lack_of(resource), nodes.left & ~enough, {"resource": resource})
        fits &= enough
    nodes.left &= fits


def _lack_of(resource: str) -> tuple[str, str]:
    if resource == PODS:
        return TOO_MANY_PODS, "Too many pods"
    return f"INSUFFICIENT_{re.sub('[^A-Z0-9]', '_', resource.upper())}", f"Insufficient {resource}"
