"""Room as the wanted pods of a small case see it: nodes that could take one, resources that they ask for, in pieces.

Amounts are rounded down to what some of the pods come to together, which rules nothing out that fits. So rooms that
differ only in what nobody could use are the same room, and answers for one of them hold for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.preemption.usage import Usage
from muster.core.search.problem import Problem, SearchLeaf, SearchNode

_MOST_PIECES = 2**12
"""Up to so many pieces of a resource it is found out which sums the pods come to."""


@dataclass(frozen=True, slots=True)
class _Resource:
    """divisor: amounts in one piece. total: pieces that all pods ask for. sums: [total + 1] the largest sum up to each."""

    divisor: int
    total: int
    sums: IntArray | None

    def pieces(self, amounts: IntArray) -> IntArray:
        """The largest sum of requests that each amount has room for."""
        pieces: IntArray = np.minimum(np.maximum(amounts // self.divisor, 0), self.total)
        return pieces if self.sums is None else self.sums[pieces]


@dataclass(frozen=True, slots=True, eq=False)
class WantedRoom:
    """n nodes and r resources that matter; E entries of what units take of them, node by node.

    nodes: [n] indexes among the problem's. demand: [T, r] in pieces. full: [n, r] free amounts with everybody gone.
    at, firsts: [S] nodes that have entries, and where those begin. owners: [E]. amounts: [E, r]. least: [r] no
    selection of the wanted pods asks for less, in pieces. size: how many nodes the problem has.
    """

    nodes: IntArray
    demand: IntArray
    full: IntArray
    at: IntArray
    firsts: IntArray
    owners: IntArray
    amounts: IntArray
    least: IntArray
    size: int
    _resources: tuple[_Resource, ...]

    def left(self, evicted: BoolArray) -> IntArray:
        """[n, r] in pieces, if these units [U] go and all others stay."""
        left = self.full.copy()
        if len(self.firsts):
            taken = self.amounts * ~evicted[self.owners, None]
            left[self.at] -= np.add.reduceat(taken, self.firsts, axis=0)
        for place, resource in enumerate(self._resources):
            left[:, place] = resource.pieces(left[:, place])
        return left

    def of_problem(self, left: IntArray) -> IntArray:
        """[N, r] room for all nodes of the problem."""
        room = np.zeros((self.size, left.shape[1]), dtype=np.int64)
        room[self.nodes] = left
        return room

    def load(self, placed: tuple[tuple[int, int, int, int], ...]) -> IntArray:
        """[n, r] what a packing of the problem takes, in pieces."""
        load = np.zeros((self.size, self.demand.shape[1]), dtype=np.int64)
        for _, kind, node, number in placed:
            load[node] += number * self.demand[kind]
        return load[self.nodes]


def wanted_room(
    problem: Problem, requests: IntArray, free: IntArray, usage: Usage, supply: IntArray
) -> WantedRoom:
    """requests: [T, R]. free: [R, slots] with everybody gone. supply: [T] how many pods of each type there are."""
    rows = np.flatnonzero(requests.any(axis=0))
    nodes = np.flatnonzero(problem.hosts.any(axis=0))
    slots = problem.slots[nodes]
    place_of = np.full(usage.size, -1, dtype=np.int64)
    place_of[slots] = np.arange(len(slots))
    taken = usage.by_unit
    entries = np.flatnonzero(place_of[taken.slots] >= 0)
    entries = entries[np.argsort(place_of[taken.slots[entries]], kind="stable")]
    places = place_of[taken.slots[entries]]
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    resources = tuple(_resource(requests[:, row], supply) for row in rows.tolist())
    divisors = np.array([resource.divisor for resource in resources], dtype=np.int64)
    demand = requests[:, rows] // divisors
    return WantedRoom(
        nodes=nodes,
        demand=demand,
        full=free[np.ix_(rows, slots)].T.copy(),
        at=places[firsts],
        firsts=firsts,
        owners=taken.owners[entries],
        amounts=taken.amounts[np.ix_(rows, entries)].T.copy(),
        least=_least_of(problem.root, demand),
        size=len(problem.slots),
        _resources=resources,
    )


def _resource(requests: IntArray, supply: IntArray) -> _Resource:
    divisor = int(np.gcd.reduce(requests))
    pieces: list[int] = (requests // divisor).tolist()
    total = sum(count * amount for count, amount in zip(supply.tolist(), pieces, strict=True))
    if total > _MOST_PIECES:
        return _Resource(divisor, min(total, 2**62), None)
    reached = 1
    for count, amount in zip(supply.tolist(), pieces, strict=True):
        for _ in range(count if amount else 0):
            reached |= reached << amount
    sums = [piece if reached >> piece & 1 else 0 for piece in range(total + 1)]
    return _Resource(divisor, total, np.maximum.accumulate(np.array(sums, dtype=np.int64)))


def _least_of(node: SearchNode, demand: IntArray) -> IntArray:
    """[r] the least that a group asks for, each resource by itself."""
    if isinstance(node, SearchLeaf):
        pods = [row for kind, number in node.supply for row in [demand[kind]] * min(number, node.need)]
        parts = np.array(pods, dtype=np.int64)
    else:
        parts = np.array([_least_of(child, demand) for child in node.children], dtype=np.int64)
    least: IntArray = np.sort(parts.reshape(-1, demand.shape[1]), axis=0)[: node.need].sum(axis=0)
    return least
