"""Pods of different types that may not share a node, as resources of which each node has one (host ports)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.framework import Profile
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot


def exclusions(
    snapshot: Snapshot, profile: Profile, exclusive: Sequence[Signature | None], hosts: BoolArray
) -> IntArray:
    """[T, E]: 1 where a type takes the node's only piece of a resource that stands for a set of rival types.

    exclusive: per type its signature if two such pods never share a node, else None. hosts: [T, nodes by name].
    The snapshot is left as it was found.
    """
    concerned = [index for index, signature in enumerate(exclusive) if signature is not None]
    rivals = np.zeros((len(exclusive), len(exclusive)), dtype=np.bool_)
    for place, first in enumerate(concerned):
        for second in concerned[place + 1 :]:
            together = np.flatnonzero(hosts[first] & hosts[second])
            if len(together):
                slot = int(snapshot.nodes.order[together[0]])
                clash = _exclude(snapshot, profile, exclusive[first], exclusive[second], slot)
                rivals[first, second] = rivals[second, first] = clash
    cliques = _covering(rivals)
    shared = np.zeros((len(exclusive), len(cliques)), dtype=np.int64)
    for column, members in enumerate(cliques):
        shared[members, column] = 1
    return shared


def _exclude(
    snapshot: Snapshot, profile: Profile, first: Signature | None, second: Signature | None, slot: int
) -> bool:
    """Whether a pod of the first keeps one of the second from a node that would take either."""
    if first is None or second is None:
        return False
    mark = snapshot.mark()
    snapshot.assume(first.index, slot)
    refused = any(
        item.reads_one_node and item.concerns(second, snapshot) and not item.mask(second, snapshot)[slot]
        for item in profile.pod_filters
    )
    snapshot.rollback(mark)
    return refused


def _covering(rivals: BoolArray) -> list[list[int]]:
    """Sets of types that are all each other's rivals; every pair of rivals is in one of them."""
    open_ = rivals.copy()
    cliques: list[list[int]] = []
    for first, second in np.argwhere(np.triu(rivals)).tolist():
        if open_[first, second]:
            members = [first, second]
            for other in range(len(rivals)):
                if other not in members and rivals[other, members].all():
                    members.append(other)
            open_[np.ix_(members, members)] = False
            cliques.append(sorted(members))
    return cliques
