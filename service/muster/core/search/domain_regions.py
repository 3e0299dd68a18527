"""The nodes among which a question is asked, cut into cells by label values, and which of them are alike.

Alike regions hold alike nodes at the same places of their order, cell by cell, so that an answer for one is an answer
for the other. Where labels do not nest inside a region, it is like no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, CodeArray, IntArray
from muster.core.node_table import NodeTable
from muster.core.search import steps
from muster.core.search.domain_measures import Measures
from muster.core.search.problem import Problem

_MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """number: its identity. nodes: ascending indexes. room: [M] and fits: [T] are sums over its nodes."""

    number: int
    nodes: IntArray
    room: IntArray
    fits: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A region cut by one label: C cells in the order of their first nodes; the nodes without the label come last.

    room: [C, M]. fits: [C, T]. labelled: [C].
    """

    regions: tuple[Region, ...]
    room: IntArray
    fits: IntArray
    labelled: BoolArray


@dataclass(frozen=True, slots=True)
class Shape:
    """shape: equal for regions that are alike. order: the region's nodes, alike place by place."""

    shape: int
    order: IntArray


@dataclass(slots=True)
class Regions:
    """All regions met so far, and what is known of them. codes: per label [N] the code of a node's value, or -1.

    unpaid: steps that cutting and comparing cost since `paid` was asked.
    """

    codes: dict[str, CodeArray]
    measures: Measures
    kinds: IntArray
    unpaid: int = 0
    _by_nodes: dict[bytes, Region] = field(default_factory=dict)
    _cells: dict[tuple[int, str], Cells] = field(default_factory=dict)
    _uniform: dict[tuple[int, str], bool] = field(default_factory=dict)
    _shapes: dict[int, Shape] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def whole(self) -> Region:
        """All nodes."""
        nodes = np.arange(len(self.kinds))
        return self._region(nodes, self.measures.room.sum(axis=1), self.measures.fits.sum(axis=1))

    def paid(self) -> int:
        """The unpaid steps, for the budget of whoever asks."""
        unpaid, self.unpaid = self.unpaid, 0
        return unpaid

    def is_uniform(self, region: Region, key: str) -> bool:
        """Whether all nodes of the region have the label with one value, so that it constrains nothing there."""
        known = self._uniform.get((region.number, key))
        if known is None:
            codes = self.codes[key][region.nodes]
            known = self._uniform[region.number, key] = bool(
                len(codes) and codes[0] >= 0 and (codes == codes[0]).all()
            )
        return known

    def live_keys(self, region: Region, keys: Iterable[str]) -> list[str]:
        """Those of the labels that cut the region, by name."""
        return sorted(key for key in keys if not self.is_uniform(region, key))

    def cells(self, region: Region, key: str) -> Cells:
        known = self._cells.get((region.number, key))
        if known is None:
            known = self._cells[region.number, key] = self._cut(region, key)
        return known

    def cell_of(self, region: Region, key: str, node: int) -> Region:
        """The cell that holds a node of the region."""
        holds = (cell for cell in self.cells(region, key).regions if (cell.nodes == node).any())
        return next(holds, region)

    def coarsest(self, region: Region, keys: list[str]) -> str | None:
        """The label whose cells hold the cells of all others whole; None if there is none."""
        if len(keys) == 1:
            return keys[0]
        fewest = sorted(keys, key=lambda key: (len(self.cells(region, key).regions), key))
        return next((key for key in fewest if self._holds_whole(region, key, fewest)), None)

    def shape(self, region: Region) -> Shape:
        known = self._shapes.get(region.number)
        if known is None:
            self.unpaid += steps.comparing_region(len(region.nodes), len(self.codes))
            known = self._shapes[region.number] = self._shape(region)
        return known

    def _region(self, nodes: IntArray, room: IntArray, fits: IntArray) -> Region:
        content = nodes.tobytes()
        known = self._by_nodes.get(content)
        if known is None:
            known = self._by_nodes[content] = Region(len(self._by_nodes), nodes, room, fits)
        return known

    def _cut(self, region: Region, key: str) -> Cells:
        codes = self.codes[key][region.nodes]
        self.unpaid += steps.cutting_region(len(codes), len(self.measures.room) + len(self.measures.fits))
        _, first, places = np.unique(codes, return_index=True, return_inverse=True)
        first = np.where(codes[first] >= 0, first, len(codes))
        rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
        order = np.argsort(rank[places], kind="stable")
        nodes = region.nodes[order]
        starts = np.flatnonzero(np.diff(rank[places][order], prepend=-1))
        if not len(starts):
            nothing = [np.zeros((0, len(sums)), dtype=np.int64) for sums in (region.room, region.fits)]
            return Cells((), nothing[0], nothing[1], np.zeros(0, dtype=np.bool_))
        room = np.add.reduceat(self.measures.room[:, nodes], starts, axis=1).T
        fits = np.add.reduceat(self.measures.fits[:, nodes], starts, axis=1).T
        parts = np.split(nodes, starts[1:])
        regions = tuple(self._region(*parts_) for parts_ in zip(parts, room, fits, strict=True))
        return Cells(regions, room, fits, self.codes[key][nodes[starts]] >= 0)

    def _holds_whole(self, region: Region, coarse: str, keys: list[str]) -> bool:
        outer = self.codes[coarse][region.nodes].astype(np.int64) + 1
        for key in keys:
            inner = self.codes[key][region.nodes]
            labelled = inner >= 0
            pairs = inner[labelled] * (outer.max() + 1) + outer[labelled]
            if len(np.unique(pairs)) > len(np.unique(inner[labelled])):
                return False
        return True

    def _shape(self, region: Region) -> Shape:
        missing = tuple(bool((self.codes[key][region.nodes] < 0).all()) for key in self.codes)
        keys = [key for key, none in zip(self.codes, missing, strict=True) if not none]
        keys = self.live_keys(region, keys)
        if not keys:
            kinds = self.kinds[region.nodes]
            order = np.argsort(kinds, kind="stable")
            return self._named(("flat", missing, kinds[order].tobytes()), region.nodes[order])
        coarse = self.coarsest(region, keys)
        if coarse is None:
            return self._named(("own", region.number), region.nodes)
        cells = self.cells(region, coarse)
        shapes = [self.shape(cell) for cell in cells.regions]
        described = [
            (not labelled, shape.shape, place)
            for place, (labelled, shape) in enumerate(zip(cells.labelled.tolist(), shapes, strict=True))
        ]
        described.sort()
        order = np.concatenate([shapes[place].order for _, _, place in described])
        return self._named(("cut", missing, coarse, tuple(item[:2] for item in described)), order)

    def _named(self, content: Hashable, order: IntArray) -> Shape:
        return Shape(self._numbers.setdefault(content, len(self._numbers)), order)


def regions_of(problem: Problem, nodes: NodeTable, keys: Iterable[str], measures: Measures) -> Regions:
    """The regions of a problem by the labels of its groups' constraints."""
    codes = {key: nodes.column(key).codes[problem.slots] for key in sorted(keys)}
    return Regions(codes, measures, _node_kinds(problem, measures))


def _node_kinds(problem: Problem, measures: Measures) -> IntArray:
    """[N] a number that is equal for nodes that offer the same to all types."""
    useful: BoolArray = np.logical_or.reduce(measures.fits > 0, axis=0)
    offers = [np.where(useful, amounts, 0) for amounts in (*problem.free.T, *problem.hosts)]
    mixed = np.zeros(len(useful), dtype=np.uint64)
    for place, offer in enumerate(offers):
        mixed += offer.astype(np.uint64) * np.uint64(pow(_MULTIPLIER, place + 1, 2**64))
    _, first, kinds = np.unique(mixed, return_index=True, return_inverse=True)
    if all(np.array_equal(offer[first][kinds], offer) for offer in offers):
        return kinds.astype(np.int64)
    # Two different offers were mixed to the same number.
    _, exact = np.unique(np.stack(offers, axis=1), axis=0, return_inverse=True)
    return exact.reshape(-1).astype(np.int64)
