"""What a placement scorer is shown of a group placed in a candidate domain."""

from __future__ import annotations

from collections.abc import Iterable

from muster.core.arrays import IntArray
from muster.core.domains import Domain
from muster.core.framework import PlacementView
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, leaves
from muster.core.trial import Trial
from muster.model.resources import PODS

_SAFE_BITS = 40
"""Amounts are added up in halves of this width, so that no sum overflows."""


def placement_view(snapshot: Snapshot, trial: Trial, domain: Domain) -> PlacementView:
    """Pods placed, and the domain's sums of the resources that the group's pods ask for (pod slots if none)."""
    nodes = snapshot.nodes
    rows = requested_rows(snapshot, trial.group)
    slots = nodes.order if domain.slots is None else domain.slots
    allocatable = tuple(_total(nodes.allocatable[row][slots]) for row in rows)
    free = tuple(_total(nodes.free[row][slots]) for row in rows)
    used = tuple(all_of - left for all_of, left in zip(allocatable, free, strict=True))
    return PlacementView(trial.placed, used, allocatable)


def requested_rows(snapshot: Snapshot, group: GroupTree) -> tuple[int, ...]:
    """Rows of the resources that a score of the group looks at, by name."""
    signatures: set[int] = set()
    for leaf in leaves(group):
        signatures.update(leaf.pods.signatures)
    return tuple(map(snapshot.nodes.row, _requested(snapshot, signatures)))


def _requested(snapshot: Snapshot, signatures: Iterable[int]) -> list[str]:
    resources = {resource for index in signatures for resource in snapshot.signatures[index].requests}
    return sorted(resources - {PODS}) or [PODS]


def _total(amounts: IntArray) -> int:
    """The exact sum of amounts of up to 63 bits."""
    low = amounts & ((1 << _SAFE_BITS) - 1)
    return int(low.sum()) + (int((amounts >> _SAFE_BITS).sum()) << _SAFE_BITS)
