"""Domains for all constrained parts of a region first, then one packing of everything, each pod in its own domain.

For what `domain_assignment` cannot say: labels that do not nest, and pods that may run anywhere beside constrained
ones. Each step is checked by the domain's own question; a domain choice is ruled out for good by the packing alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from muster.core.search.domain_choices import REQUIRED, Choice, State, give_up, is_open, take
from muster.core.search.domain_confined import Confined, pack_confined
from muster.core.search.domain_form import cells_open_to, holds_nodes, is_flat
from muster.core.search.domain_memo import IMPOSSIBLE, UNKNOWN, Answer
from muster.core.search.domain_parts import Part, Parts, in_order
from muster.core.search.domain_questions import Questions
from muster.core.search.domain_regions import Region
from muster.core.search.packing import Verdict

_DRAFTS = 40
"""How many drafts are looked at for each try that a question has."""
_CHOOSING = 8
"""Steps that one domain tried for a part costs besides its question."""


@dataclass(frozen=True, slots=True)
class _Goal:
    """A part to be placed inside a region, for a choice."""

    part: Part
    region: Region
    choice: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """goals: still open. packed: parts that only the packing still has to place. held: what each domain was chosen for.

    last: kind, region and cell of the required part that got its domain last.
    """

    goals: tuple[_Goal, ...]
    packed: tuple[Confined, ...] = ()
    held: tuple[tuple[Region, Parts], ...] = ()
    choices: tuple[Choice, ...] = ()
    state: State = ()
    last: tuple[int, int, int] = (-1, -1, -1)


@dataclass(slots=True, eq=False)
class JointSearch:
    """Drafts are values; going back is taking the next one."""

    questions: Questions
    region: Region
    parts: Parts
    _proved: bool = True
    _packings: int = field(init=False)
    _tries: int = field(init=False)

    def solve(self) -> Answer:
        """Impossible only if every complete draft was proved impossible."""
        self._packings = self.questions.final_packings
        self._tries = self.questions.tries * _DRAFTS
        first = _Draft(tuple(_Goal(part, self.region, REQUIRED) for part in self._fewest_cells_first()))
        open_: list[Iterator[_Draft]] = [iter((first,))]
        while open_:
            draft = next(open_[-1], None)
            if draft is None:
                open_.pop()
                continue
            self._tries -= 1
            if self._tries < 0 or self._packings < 0 or self.questions.budget.left <= 0:
                return UNKNOWN
            if draft.goals:
                open_.append(self._next_drafts(draft))
                continue
            answer = self._pack(draft)
            if answer.verdict is Verdict.FOUND:
                return answer
            self._proved &= answer.verdict is Verdict.IMPOSSIBLE
        return IMPOSSIBLE if self._proved else UNKNOWN

    def _fewest_cells_first(self) -> list[Part]:
        regions = self.questions.regions

        def cells(part: Part) -> int:
            return 0 if part.key is None else len(regions.cells(self.region, part.key).regions)

        return sorted(self.parts, key=lambda part: (cells(part), part.kind, part.leaves))

    def _next_drafts(self, draft: _Draft) -> Iterator[_Draft]:
        """The drafts that settle the first goal."""
        goal, rest = draft.goals[0], draft.goals[1:]
        part, region, choice = goal.part, goal.region, goal.choice
        regions = self.questions.regions
        if choice != REQUIRED and not is_open(draft.choices, draft.state, choice):
            yield replace(draft, goals=rest)
            return
        if not holds_nodes(region, part.pins):
            yield from self._spared(draft)
        elif is_flat(regions, region, part):
            yield from self._taken(replace(draft, goals=rest, packed=(*draft.packed, (part, region))), choice)
            yield from self._spared(draft)
        elif part.key is None:
            yield self._opened(replace(draft, goals=rest), goal)
        elif regions.is_uniform(region, part.key):
            yield replace(draft, goals=(_Goal(part.settled, region, choice), *rest))
        else:
            yield from self._with_domain(draft, goal, part.key)
            yield from self._spared(draft)

    def _taken(self, draft: _Draft, choice: int) -> Iterator[_Draft]:
        state = take(draft.choices, draft.state, choice)
        if state is not None:
            yield replace(draft, state=state)

    def _spared(self, draft: _Draft) -> Iterator[_Draft]:
        choice = draft.goals[0].choice
        state = None if choice == REQUIRED else give_up(draft.choices, draft.state, choice)
        if state is not None:
            yield replace(draft, goals=draft.goals[1:], state=state)

    def _opened(self, draft: _Draft, goal: _Goal) -> _Draft:
        """The children as goals, for a choice of their own if any may be spared."""
        part, choice = goal.part, goal.choice
        choices, state = draft.choices, draft.state
        if choice != REQUIRED or part.need < len(part.children):
            choices, state = (*choices, Choice(part.need, len(part.children), choice)), (*state, (0, 0))
            choice = len(choices) - 1
        goals = tuple(_Goal(child, goal.region, choice) for child in part.children)
        return replace(draft, goals=(*draft.goals, *goals), choices=choices, state=state)

    def _with_domain(self, draft: _Draft, goal: _Goal, key: str) -> Iterator[_Draft]:
        part, region = goal.part, goal.region
        inside = part.settled
        for place, cell in self._candidates(draft, goal, key):
            self.questions.budget.spend(_CHOOSING)
            before = next((parts for known, parts in draft.held if known is cell), ())
            parts = in_order((*before, inside))
            if self.questions.ask(cell, parts).verdict is Verdict.IMPOSSIBLE:
                continue
            held = (*(item for item in draft.held if item[0] is not cell), (cell, parts))
            goals = (*draft.goals[1:], _Goal(inside, cell, goal.choice))
            last = (part.kind, region.number, place) if goal.choice == REQUIRED else (-1, -1, -1)
            yield replace(draft, goals=goals, held=held, last=last)

    def _candidates(self, draft: _Draft, goal: _Goal, key: str) -> list[tuple[int, Region]]:
        """Cells open by the bounds, tightest first; of untouched alike ones the first, of equal parts one order."""
        part, regions = goal.part, self.questions.regions
        cells = regions.cells(goal.region, key)
        allowed = cells_open_to(part, cells, key)
        if goal.choice == REQUIRED and draft.last[:2] == (part.kind, goal.region.number):
            allowed[: draft.last[2]] = False
        same = regions.coarsest(goal.region, regions.live_keys(goal.region, regions.codes)) == key
        touched = np.zeros(len(regions.kinds), dtype=np.bool_)
        for region, _ in draft.held:
            touched[region.nodes] = True
        seen: set[object] = set()
        found: list[tuple[float, int, Region]] = []
        for place in np.flatnonzero(allowed).tolist():
            cell = cells.regions[place]
            if same and not touched[cell.nodes].any():
                look = self.questions.place_of(cell, self.parts)
                if look in seen:
                    continue
                seen.add(look)
            slack = float(((cells.room[place] - part.least) / np.maximum(goal.region.room, 1)).sum())
            found.append((slack, place, cell))
        return [(place, cell) for _, place, cell in sorted(found, key=lambda item: item[:2])]

    def _pack(self, draft: _Draft) -> Answer:
        self._packings -= 1
        packing = pack_confined(self.questions, self.region, draft.packed)
        if packing.verdict is Verdict.FOUND:
            return self.questions.answer(self.region, self.parts, list(packing.placed))
        return IMPOSSIBLE if packing.verdict is Verdict.IMPOSSIBLE else UNKNOWN
