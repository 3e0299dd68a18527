"""Packs parts at once that are each confined to a region of their own: regions may overlap or hold one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from muster.core.search.domain_form import is_flat
from muster.core.search.domain_parts import Part
from muster.core.search.domain_questions import Placed, Questions
from muster.core.search.domain_regions import Region, Regions
from muster.core.search.packing import Packing
from muster.core.search.problem import Problem, SearchGroup, SearchLeaf, SearchNode

Confined = tuple[Part, Region]
"""A part, and the nodes that all its pods may use."""


def pack_confined(questions: Questions, whole: Region, confined: Sequence[Confined]) -> Packing:
    """The packing of all parts on the nodes of `whole`."""
    types = _ConfinedTypes(questions.problem)
    groups = [types.group(part, region) for part, region in confined]
    packing = questions.pack(types.problem(), groups, whole.nodes, questions.problem.free)
    placed = tuple((leaf, types.types[kind], node, number) for leaf, kind, node, number in packing.placed)
    return replace(packing, placed=placed)


def confined_as_placed(regions: Regions, goals: Iterable[Confined], placed: Placed) -> list[Confined]:
    """What of the goals takes part in a packing, each part in the domain that it has there."""
    used = {leaf: node for leaf, _, node, _ in placed}
    confined: list[Confined] = []
    for part, region in goals:
        _confine(regions, part, region, used, confined)
    return confined


def _confine(
    regions: Regions, part: Part, region: Region, used: Mapping[int, int], confined: list[Confined]
) -> None:
    node = next((used[leaf] for leaf in part.leaves if leaf in used), None)
    if node is None:
        return
    if is_flat(regions, region, part):
        confined.append((part, region))
    elif part.key is None:
        for child in part.children:
            _confine(regions, child, region, used, confined)
    else:
        _confine(regions, part.settled, regions.cell_of(region, part.key, node), used, confined)


@dataclass(slots=True, eq=False)
class _ConfinedTypes:
    """The problem with a type for each pair of a type and the region that its pods are confined to."""

    original: Problem
    types: list[int] = field(default_factory=list)
    _regions: list[Region] = field(default_factory=list)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)

    def group(self, part: Part, region: Region) -> SearchNode:
        node = part.node
        if isinstance(node, SearchLeaf):
            supply = tuple((self._type(kind, region), number) for kind, number in node.supply)
            return SearchLeaf(node.group, node.index, node.need, supply)
        children = tuple(self.group(child, region) for child in part.children)
        return SearchGroup(node.group, node.need, children)

    def problem(self) -> Problem:
        """The original's nodes and amounts; each type is hosted by nodes of its region only."""
        hosts = np.zeros((len(self.types), len(self.original.free)), dtype=np.bool_)
        for index, (kind, region) in enumerate(zip(self.types, self._regions, strict=True)):
            hosts[index, region.nodes] = self.original.hosts[kind, region.nodes]
        return replace(
            self.original,
            demand=self.original.demand[self.types],
            hosts=hosts,
            per_node=self.original.per_node[self.types],
        )

    def _type(self, kind: int, region: Region) -> int:
        index = self._known.setdefault((kind, region.number), len(self.types))
        if index == len(self.types):
            self.types.append(kind)
            self._regions.append(region)
        return index
