"""The smart greedy: the cheapest selection of pods under prices, hardest types first, each to the node it fills best.

Prices stand for scarcity. One order of types and one order of nodes a type is all that it takes, since filling a
node makes it only more attractive to the same type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.search.question import FloatArray, LeafWant, Question, Want

Selection = list[tuple[int, int, int]]
"""(leaf, type, how many pods)."""
Placed = list[tuple[int, int, int, int]]
"""(leaf, type, node, how many pods), types and nodes of the question."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the greedy weighs: factors per resource [R], per type [K] and per leaf; the power of a type's reach."""

    resources: FloatArray
    types: FloatArray
    reach: float = 2.0
    leaves: Mapping[int, float] = field(default_factory=dict)


def plain(question: Question) -> Tuning:
    """All resources and types weighed alike."""
    kinds, resources = question.demand.shape
    return Tuning(np.ones(resources), np.ones(kinds))


def prices(question: Question, tuning: Tuning) -> FloatArray:
    """[K] what a pod of each type takes of all that is free."""
    price: FloatArray = (question.demand @ (tuning.resources / question.total) + 1e-9) * tuning.types
    return price


def select(want: Want, price: FloatArray, leaves: Mapping[int, float]) -> Selection:
    """The cheapest pods of the cheapest children, a leaf's cost times its factor; ties go to the first."""
    return _cheapest(want, price.tolist(), leaves)[1]


def spread(question: Question, selection: Selection, tuning: Tuning) -> tuple[IntArray, IntArray]:
    """[K, n] where the selected pods go, and [K] how many found no node."""
    counts = np.zeros_like(question.fits)
    wanted = np.zeros(len(counts), dtype=np.int64)
    for _, kind, number in selection:
        wanted[kind] += number
    room = question.room.copy()
    scale = tuning.resources / question.largest
    pressure = _pressure(question, wanted)
    homeless = wanted.copy()
    for kind in _hardest_first(question, wanted, tuning):
        nodes, taken = _fill(question, kind, int(wanted[kind]), room, (scale, pressure))
        counts[kind, nodes] = taken
        room[nodes] -= np.multiply.outer(taken, question.demand[kind])
        homeless[kind] -= taken.sum()
    return counts, homeless


def assign(selection: Selection, counts: IntArray) -> Placed:
    """Which leaf's pods go where: leaves in order take the nodes of a type in order."""
    left = {
        kind: [[node, int(row[node])] for node in np.flatnonzero(row).tolist()]
        for kind, row in enumerate(counts)
    }
    placed: Placed = []
    for leaf, kind, number in selection:
        missing = number
        while missing:
            node, held = left[kind][-1]
            taken = min(held, missing)
            placed.append((leaf, kind, node, taken))
            missing -= taken
            left[kind][-1][1] -= taken
            if held == taken:
                left[kind].pop()
    return placed


def _cheapest(want: Want, price: list[float], leaves: Mapping[int, float]) -> tuple[float, Selection]:
    if isinstance(want, LeafWant):
        cost, selection = _cheapest_pods(want, price)
        return cost * leaves.get(want.leaf, 1.0), selection
    children = [_cheapest(child, price, leaves) for child in want.children]
    order = sorted(range(len(children)), key=lambda place: (children[place][0], place))[: want.need]
    chosen = [children[place] for place in sorted(order)]
    return sum(cost for cost, _ in chosen), [item for _, selection in chosen for item in selection]


def _cheapest_pods(leaf: LeafWant, price: list[float]) -> tuple[float, Selection]:
    missing, cost = leaf.need, 0.0
    selection: Selection = []
    for kind, number in sorted(leaf.supply, key=lambda item: (price[item[0]], item[0])):
        taken = min(missing, number)
        selection.append((leaf.leaf, kind, taken))
        cost += taken * price[kind]
        missing -= taken
        if not missing:
            break
    return cost, selection


def _pressure(question: Question, wanted: IntArray) -> FloatArray:
    """[n] how much of a node's room is wanted by types that can use it, each spread over all it can reach."""
    weights = wanted / np.maximum(question.capacity, 1)
    pressure: FloatArray = np.einsum("k,kn->n", weights, question.hosts)
    return pressure


def _hardest_first(question: Question, wanted: IntArray, tuning: Tuning) -> list[int]:
    largest = (question.demand * tuning.resources / question.largest).max(axis=1, initial=0.0)
    hardness = (largest + 1e-9) * tuning.types / np.maximum(question.reach, 1e-9) ** tuning.reach
    kinds = np.flatnonzero(wanted)
    order: list[int] = kinds[np.argsort(-hardness[kinds], kind="stable")].tolist()
    return order


def _fill(
    question: Question, kind: int, wanted: int, room: IntArray, weighing: tuple[FloatArray, FloatArray]
) -> tuple[Slots, IntArray]:
    """The best nodes for pods of the type, and how many each of them takes."""
    scale, pressure = weighing
    demand = question.demand[kind]
    fits = question.fits[kind]
    for resource, amount in enumerate(demand.tolist()):
        if amount:
            fits = np.minimum(fits, room[:, resource] // amount)
    able: Slots = fits.nonzero()[0]
    rest = (room[able] - demand) * scale
    weight = np.add.reduce(rest * rest, axis=1) + pressure[able]
    if wanted < len(able):
        # No more nodes than pods are needed; equal ones stay together, whatever the order they are found in.
        near = weight <= np.partition(weight, wanted - 1)[wanted - 1]
        able, weight = able[near], weight[near]
    best = able[weight.argsort(kind="stable")]
    held = fits[best]
    through = held.cumsum()
    used = int(through.searchsorted(wanted)) + 1
    taken = held[:used]
    if used <= len(held):
        taken[-1] -= through[used - 1] - wanted
    return best[:used], taken
