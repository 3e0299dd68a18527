"""What of the groups asked for must still find domains inside a region, and what may run anywhere in it.

A constraint that the whole region satisfies is gone; groups that need all their children give way to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.search.domain_choices import REQUIRED, Choice, State, give_up, is_open
from muster.core.search.domain_parts import Part, Parts
from muster.core.search.domain_regions import Cells, Region, Regions


@dataclass(frozen=True, slots=True)
class Entry:
    """A part, and the choice whose child it is."""

    part: Part
    choice: int


@dataclass(frozen=True, slots=True)
class Form:
    """tops: constrained parts, none inside another, whose labels cut the region. flats: all else."""

    tops: tuple[Entry, ...]
    flats: tuple[Entry, ...]
    choices: tuple[Choice, ...]
    state: State


def form_of(regions: Regions, region: Region, parts: Parts) -> Form | None:
    """The form of parts that must all be placed in the region; None if pins keep one of them out of it."""
    sorter = _Sorter(regions, region)
    for part in parts:
        sorter.enter(part, REQUIRED)
    choices = tuple(sorter.choices)
    state: State | None = ((0, 0),) * len(choices)
    for choice in sorter.kept_out:
        if state is not None and (choice == REQUIRED or is_open(choices, state, choice)):
            state = give_up(choices, state, choice)
    return None if state is None else Form(tuple(sorter.tops), tuple(sorter.flats), choices, state)


def holds_nodes(region: Region, nodes: IntArray) -> bool:
    """Whether all the nodes are in the region."""
    return not len(nodes) or bool(np.isin(nodes, region.nodes, assume_unique=True).all())


def cells_open_to(part: Part, cells: Cells, key: str) -> BoolArray:
    """[C] cells, made by the label `key`, that bounds, labels and pins leave open for a part alone."""
    open_ = (part.least <= cells.room).all(axis=1) & part.may_fit(cells.fits)
    if part.key == key:
        open_ &= cells.labelled
    if len(part.pins):
        open_ &= np.array([holds_nodes(cell, part.pins) for cell in cells.regions], dtype=np.bool_)
    return open_


def is_flat(regions: Regions, region: Region, part: Part) -> bool:
    """Whether no constraint of the subtree cuts the region or is pinned elsewhere."""
    return not regions.live_keys(region, part.keys) and holds_nodes(region, part.all_pins)


@dataclass(slots=True)
class _Sorter:
    regions: Regions
    region: Region
    tops: list[Entry] = field(default_factory=list)
    flats: list[Entry] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    kept_out: list[int] = field(default_factory=list)

    def enter(self, part: Part, choice: int) -> None:
        if not holds_nodes(self.region, part.pins):
            self.kept_out.append(choice)
        elif is_flat(self.regions, self.region, part):
            self.flats.append(Entry(part, choice))
        elif part.key is None:
            self._enter_children(part, choice)
        elif self.regions.is_uniform(self.region, part.key):
            self.enter(part.settled, choice)
        else:
            self.tops.append(Entry(part, choice))

    def _enter_children(self, part: Part, choice: int) -> None:
        within = choice
        if choice != REQUIRED or part.need < len(part.children):
            within = len(self.choices)
            self.choices.append(Choice(part.need, len(part.children), choice))
        for child in part.children:
            self.enter(child, within)
