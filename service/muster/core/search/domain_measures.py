"""What pods take of a domain and what it offers, by several measures at once: cheap bounds for the domain search.

A measure gives each type a weight and each node room, such that pods on a node never weigh more than its room. Room
adds up over a domain, so one pass over all nodes serves every domain of a label. What the bounds leave open is for
`packing` to say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.search.problem import MANY, Problem

_MOST_COUNTED_TYPES = 64
"""With more types than this only the resources are measured."""
_MOST_COMPARED = 2**20
"""Amounts that one bound may compare; with more than this only the largest sets of cells are looked at."""


@dataclass(frozen=True, slots=True)
class Measures:
    """M measures: the resources, then for each type the pods that could each give way to one pod of it.

    weights: [M, T]. room: [M, N]. fits: [T, N] how many pods of a type a node holds by itself.
    """

    weights: IntArray
    room: IntArray
    fits: IntArray


def with_limits_as_room(problem: Problem) -> Problem:
    """The problem with a resource for each type of which a node holds few whatever its room.

    Pods of such a type then keep out others like them wherever room is taken in parts.
    """
    limited = np.flatnonzero(problem.per_node < MANY)
    if not len(limited):
        return problem
    demand = (np.arange(len(problem.demand))[:, None] == limited).astype(np.int64)
    free = np.broadcast_to(problem.per_node[limited], (len(problem.free), len(limited)))
    return replace(
        problem,
        demand=np.concatenate((problem.demand, demand), axis=1),
        free=np.concatenate((problem.free, free), axis=1),
    )


def measures_of(problem: Problem) -> Measures:
    """The measures of a problem, on its nodes as they are."""
    fits = _fits(problem)
    weights = [problem.demand.T]
    asking = (problem.demand > 0).T.astype(np.int64) @ (fits > 0)
    room = [np.where(asking > 0, problem.free.T, 0)]
    if len(fits) <= _MOST_COUNTED_TYPES:
        weights.append(_outweighs(problem).astype(np.int64))
        room.append(fits)
    return Measures(np.concatenate(weights), np.concatenate(room), fits)


def counting_bound_fails(least: IntArray, numbers: IntArray, allowed: BoolArray, room: IntArray) -> bool:
    """Whether parts that each need a whole cell of those allowed certainly do not all find one.

    least: [K, M] what a part of each kind takes at least. numbers: [K] how many there are. allowed: [K, C].
    room: [C, M]. For the parts that are bound to the same cells, what they take is held against the room there, and
    their number against how many so large fit cell by cell.
    """
    everywhere = allowed.any(axis=0)
    most = _MOST_COMPARED // max(1, least.size * len(room))
    sets = {cells.tobytes(): cells for cells in [everywhere, *allowed[:most]]}
    for cells in sets.values():
        bound = ~(allowed & ~cells).any(axis=1)
        if _too_much(least[bound], numbers[bound], room[cells]):
            return True
    return False


def _too_much(least: IntArray, numbers: IntArray, room: IntArray) -> bool:
    if (numbers @ least > room.sum(axis=0)).any():
        return True
    as_large = (numbers[None, :, None] * (least[None] >= least[:, None])).sum(axis=1)
    cells_full = (room[None] // np.maximum(least, 1)[:, None]).sum(axis=1)
    return bool(((as_large > cells_full) & (least > 0)).any())


def _fits(problem: Problem) -> IntArray:
    fits = np.where(problem.hosts, problem.per_node[:, None], 0)
    for index, amounts in enumerate(problem.demand.tolist()):
        for resource, amount in enumerate(amounts):
            if amount:
                np.minimum(fits[index], problem.free[:, resource] // amount, out=fits[index])
    return fits


def _outweighs(problem: Problem) -> BoolArray:
    """[t, s] whether each pod of type s could give way to one of type t on any node that holds it."""
    larger = np.all(problem.demand[None, :, :] >= problem.demand[:, None, :], axis=2)
    # Pods of s on a node where t may not run would count against room that is not there.
    bits, refused = np.packbits(problem.hosts, axis=1), np.packbits(~problem.hosts, axis=1)
    elsewhere = np.array([(bits & row).any(axis=1) for row in refused], dtype=np.bool_)
    lone = problem.per_node[:, None] >= problem.per_node[None, :]
    outweighs: BoolArray = larger & ~elsewhere & lone
    return outweighs
