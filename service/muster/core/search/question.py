"""One question to the packing, reduced to what bears on it: the types asked for, the nodes that take one of them.

Presolve (what single nodes and single types rule out) is part of the reduction; the rest is for `bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muster.core.arrays import BoolArray, IntArray
from muster.core.search import steps
from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.core.search.steps import Budget

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LeafWant:
    """`need` pods of a leaf, of `supply` (type of the question, how many). leaf: index in the problem."""

    leaf: int
    need: int
    supply: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class GroupWant:
    """`need` of the children."""

    need: int
    children: tuple[Want, ...]


Want = LeafWant | GroupWant


@dataclass(frozen=True, eq=False)
class Question:
    """Whether `root` can be had on n nodes. K types, R resources.

    demand: [K, R]. fits: [K, n] how many pods of a type a node holds by itself. room: [n, R]. most: [K] how many
    pods of a type any selection takes at most. types, nodes: what the problem calls them.
    """

    root: GroupWant
    leaves: tuple[LeafWant, ...]
    demand: IntArray
    fits: IntArray
    room: IntArray
    most: IntArray
    types: tuple[int, ...]
    nodes: IntArray

    @cached_property
    def hosts(self) -> BoolArray:
        """[K, n] whether a node holds a pod of the type by itself."""
        hosts: BoolArray = self.fits > 0
        return hosts

    @cached_property
    def capacity(self) -> IntArray:
        """[K] how many pods of a type all nodes hold."""
        capacity: IntArray = self.fits.sum(axis=1)
        return capacity

    @cached_property
    def total(self) -> IntArray:
        """[R] all room, at least 1."""
        total: IntArray = np.maximum(self.room.sum(axis=0), 1)
        return total

    @cached_property
    def largest(self) -> IntArray:
        """[R] the most room of one node, at least 1."""
        largest: IntArray = self.room.max(axis=0, initial=1)
        return largest

    @cached_property
    def reach(self) -> FloatArray:
        """[K] the largest share of all room of a resource that the type's nodes have."""
        share: FloatArray = ((self.hosts @ self.room) / self.total).max(axis=1, initial=1e-9)
        return share


def ask(
    problem: Problem, groups: Sequence[SearchNode], nodes: IntArray, free: IntArray, budget: Budget
) -> Question | None:
    """The question whether all groups hold on the nodes with room `free` [N, R]; None if presolve says no."""
    types = sorted({kind for group in groups for leaf in leaves_below(group) for kind, _ in leaf.supply})
    demand = problem.demand[types]
    budget.spend(steps.asking(len(types), demand.shape[1], len(nodes)))
    room = free[nodes]
    fits = _fits(problem, types, demand, room, nodes)
    useful = np.flatnonzero(np.logical_or.reduce(fits, axis=0))
    if len(useful) < len(nodes):
        nodes, room, fits = nodes[useful], room[useful], fits[:, useful]
    capacity = dict(zip(types, np.add.reduce(fits, axis=1).tolist(), strict=True))
    local = {kind: place for place, kind in enumerate(types)}
    wants = [_want(group, capacity, local) for group in groups]
    if None in wants:
        return None
    root = GroupWant(len(wants), tuple(want for want in wants if want is not None))
    leaves = tuple(_leaves(root))
    most = _most(root, len(types))
    return Question(root, leaves, demand, fits, room, most, tuple(types), nodes)


def leaves_below(group: SearchNode) -> list[SearchLeaf]:
    """The leaves of a subtree that need pods, in order."""
    if isinstance(group, SearchLeaf):
        return [group]
    return [leaf for child in group.children for leaf in leaves_below(child)]


def _fits(problem: Problem, types: list[int], demand: IntArray, room: IntArray, nodes: IntArray) -> IntArray:
    fits = np.where(problem.hosts[types][:, nodes], problem.per_node[types][:, None], 0)
    for place, amounts in enumerate(demand.tolist()):
        for resource, amount in enumerate(amounts):
            if amount:
                np.minimum(fits[place], room[:, resource] // amount, out=fits[place])
    return fits


def _want(group: SearchNode, capacity: dict[int, int], local: dict[int, int]) -> Want | None:
    """What remains of a group once types and children that cannot be had are left out; None if too little."""
    if isinstance(group, SearchLeaf):
        able = [(kind, min(number, group.need, capacity[kind])) for kind, number in group.supply]
        supply = tuple((local[kind], number) for kind, number in able if number)
        if sum(number for _, number in supply) < group.need:
            return None
        return LeafWant(group.index, group.need, supply)
    wants = [_want(child, capacity, local) for child in group.children]
    able_children = tuple(want for want in wants if want is not None)
    return GroupWant(group.need, able_children) if len(able_children) >= group.need else None


def _most(want: Want, kinds: int) -> IntArray:
    """[K] the most pods of each type that one selection takes."""
    most = np.zeros(kinds, dtype=np.int64)
    if isinstance(want, LeafWant):
        for kind, number in want.supply:
            most[kind] = number
        return most
    below = np.sort(np.array([_most(child, kinds) for child in want.children]), axis=0)
    total: IntArray = below[len(below) - want.need :].sum(axis=0)
    return total


def _leaves(want: Want) -> list[LeafWant]:
    if isinstance(want, LeafWant):
        return [want]
    return [leaf for child in want.children for leaf in _leaves(child)]
