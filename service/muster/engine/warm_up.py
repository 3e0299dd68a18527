"""Takes a worker once through all that decisions are made of, so that no unit waits for code to be loaded.

What is decided here belongs to no cluster: a few nodes, and units that greedy placement, the search for a packing and
the search for domains each have to work for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.core.decide import decide
from muster.core.deltas import NodePut, SignaturesAdded
from muster.core.observer import NullObserver
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile

_RACKS = {"a": "4", "b": "6"}
"""Cpus of the only node of each rack."""


def warm_up() -> None:
    """Decide what needs each part of the core."""
    snapshot, signatures = Snapshot(), SignatureTable()
    for name, cpus in _RACKS.items():
        offer = {"cpu": cpus, "memory": "8Gi", "pods": "16"}
        labels = {"rack": name, "block": "one"}
        snapshot.apply(NodePut(Node(name=name, allocatable=offer, labels=labels)))
    units = list(_units(signatures))
    snapshot.apply(SignaturesAdded(signatures.take_new()))
    profile = default_profile()
    for unit in units:
        decide(snapshot, unit, profile, NullObserver())


def _units(signatures: SignatureTable) -> Iterator[Unit]:
    trap = [_pod(signatures, cpus) for cpus in ("3", "3", "2", "2")]
    yield Unit(_leaf("packed", trap))
    waste = [_pod(signatures, cpus) for cpus in ("5", "3", "2")]
    yield Unit(_leaf("impossible", waste))
    one = _pod(signatures, "1")
    tight = (_leaf("first", [one] * 6, 3, "rack"), _leaf("second", [one] * 6, 6, "rack"))
    for minimum, label in ((2, "block"), (1, None)):
        key = ObjectKey(COMPOSITE_POD_GROUP, "default", "tight")
        yield Unit(GroupTree(key, is_gang=True, minimum=minimum, topology_key=label, children=tight))


def _leaf(name: str, pods: Sequence[int], minimum: int = 0, label: str | None = None) -> GroupTree:
    return GroupTree(
        ObjectKey(POD_GROUP, "default", name),
        is_gang=True,
        minimum=minimum or len(pods),
        topology_key=label,
        pods=PendingPods(tuple(range(len(pods))), tuple(pods)),
    )


def _pod(signatures: SignatureTable, cpus: str) -> int:
    resources = Resources(requests={"cpu": cpus, "memory": "1Gi"})
    spec = PodSpec(containers=(Container(resources=resources),))
    return signatures.intern(Pod(name="p", namespace="default", spec=spec))
