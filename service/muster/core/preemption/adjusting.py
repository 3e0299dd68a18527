"""Making a packing of a small case fit where there is less room: a few pods move inside their domains.

Which children take part and where their domains are stays as it was found. Cheaper by far than packing anew, and
enough most of the time: a question differs from one before by a unit or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muster.core.arrays import IntArray
from muster.core.domains import CLUSTER, Domain
from muster.core.preemption.wanted_room import WantedRoom
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Packing, Verdict
from muster.core.search.problem import Problem, SearchLeaf, SearchNode

_Share = tuple[int, int]
"""Leaf and type of a pod."""


@dataclass(frozen=True, eq=False)
class Adjustable:
    """A packing that was found for the problem, in terms of the nodes that matter."""

    packing: DomainPacking
    problem: Problem
    room: WantedRoom

    def within(self, left: IntArray) -> DomainPacking | None:
        """The packing with pods moved until all have room [n, r]; None if moving them one after the other is not enough."""
        load = self.room.load(self.packing.packing.placed)
        moving = _Moving((left - load).tolist(), [dict(pods) for pods in self._pods], self)
        if not all(map(moving.relieve, range(len(left)))):
            return None
        nodes: list[int] = self.room.nodes.tolist()
        placed = sorted(
            (leaf, kind, nodes[node], number)
            for node, pods in enumerate(moving.pods)
            for (leaf, kind), number in pods.items()
            if number
        )
        return DomainPacking(Packing(Verdict.FOUND, tuple(placed)), self.packing.domains)

    @cached_property
    def _pods(self) -> list[dict[_Share, int]]:
        """What is on each node."""
        place_of = {node: place for place, node in enumerate(self.room.nodes.tolist())}
        pods: list[dict[_Share, int]] = [Counter() for _ in place_of]
        for leaf, kind, node, number in self.packing.packing.placed:
            pods[place_of[node]][leaf, kind] += number
        return pods

    @cached_property
    def hosts(self) -> dict[_Share, list[int]]:
        """The nodes to which a leaf's pods of a type may move."""
        hosts: dict[_Share, list[int]] = {}
        for leaf, domain in self._leaves(self.problem.root, CLUSTER):
            slots = self.problem.slots[self.room.nodes]
            inside = np.ones(len(slots), np.bool_) if domain.slots is None else np.isin(slots, domain.slots)
            for kind, _ in leaf.supply:
                able = self.problem.hosts[kind, self.room.nodes] & inside
                hosts[leaf.index, kind] = np.flatnonzero(able).tolist()
        return hosts

    def _leaves(self, node: SearchNode, outer: Domain) -> Iterator[tuple[SearchLeaf, Domain]]:
        domain = self.packing.domains.get(node.group.key, outer)
        if isinstance(node, SearchLeaf):
            yield node, domain
            return
        for child in node.children:
            yield from self._leaves(child, domain)

    @cached_property
    def asked(self) -> list[list[int]]:
        """What a pod of each type takes, in pieces."""
        asked: list[list[int]] = self.room.demand.tolist()
        return asked


@dataclass(slots=True)
class _Moving:
    """free: what is left on each node, below 0 where pods must leave. pods: how many of each share are on it."""

    free: list[list[int]]
    pods: list[dict[_Share, int]]
    packing: Adjustable

    def relieve(self, node: int) -> bool:
        """Move pods away from a node until nothing is lacking there; False if one that must go finds no room."""
        while min(self.free[node], default=0) < 0:
            move = self._best_move(node)
            if move is None:
                return False
            share, target = move
            self._move(share, node, target)
        return True

    def _best_move(self, node: int) -> tuple[_Share, int] | None:
        """The pod whose leaving helps most, of those the smallest, to the node that it fills best."""
        free, best = self.free[node], None
        for share, number in sorted(self.pods[node].items()):
            asked = self.packing.asked[share[1]]
            helps = sum(min(amount, -rest) for amount, rest in zip(asked, free, strict=True) if rest < 0)
            rank = (-helps, sum(asked))
            if number and helps and (best is None or rank < best[0]):
                target = self._target(share, node)
                if target is not None:
                    best = rank, share, target
        return None if best is None else best[1:]

    def _target(self, share: _Share, source: int) -> int | None:
        asked = self.packing.asked[share[1]]
        fitting = [
            (sum(rests), node)
            for node in self.packing.hosts[share]
            if node != source
            and min(rests := [rest - amount for rest, amount in zip(self.free[node], asked, strict=True)])
            >= 0
        ]
        return min(fitting)[1] if fitting else None

    def _move(self, share: _Share, source: int, target: int) -> None:
        for resource, amount in enumerate(self.packing.asked[share[1]]):
            self.free[source][resource] += amount
            self.free[target][resource] -= amount
        self.pods[source][share] -= 1
        self.pods[target][share] = self.pods[target].get(share, 0) + 1
