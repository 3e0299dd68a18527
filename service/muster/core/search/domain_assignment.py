"""Gives each constrained part of a region a cell, so that every cell holds what it is given (search by domains).

Cells do not overlap: parts whose labels are finer go to a cell whole, and find their domains inside it. Parts go
fail-first, to the tightest cell first; each step is checked by the same question one level down. What may run anywhere
is packed last, in what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.core.arrays import IntArray
from muster.core.search.domain_cells import CellRoom
from muster.core.search.domain_choices import REQUIRED, State, give_up, is_open, take
from muster.core.search.domain_confined import Confined, confined_as_placed, pack_confined
from muster.core.search.domain_form import Entry, Form
from muster.core.search.domain_memo import IMPOSSIBLE, UNKNOWN, Answer
from muster.core.search.domain_parts import Part, Parts, in_order, kinds_of
from muster.core.search.domain_questions import Placed, Questions
from muster.core.search.domain_regions import Region
from muster.core.search.packing import Verdict

_AT_LEAST = 5
"""Tries that a question has besides those for each part."""
_GIVE_UP, _PASS, _ANYWHERE = -1, -2, -3
"""Options of an entry besides its cells: to be spared, not to be wanted any more, and to be packed last."""


@dataclass(slots=True)
class _Frame:
    """An entry's turn: the options that it still has, and what to put back before the next of them."""

    state: State
    options: Iterator[int]
    signature: object
    change: tuple[int, Parts | None, Part] | None = None
    advanced: bool = False


@dataclass(slots=True, eq=False)
class Assignment:
    """One region cut by one label, for one `solve`.

    unsettled: a complete assignment failed only because of what may run anywhere; `domain_joint` may know better.
    """

    questions: Questions
    region: Region
    parts: Parts
    form: Form
    key: str
    unsettled: bool = False
    _proved: bool = True
    _tries: int = 0
    _packings: int = 0
    _entries: list[Entry] = field(default_factory=list)
    _to_come: list[IntArray] = field(default_factory=list)
    _held: dict[int, Parts] = field(default_factory=dict)
    _anywhere: list[Part] = field(default_factory=list)
    _failures: dict[int, int] = field(default_factory=dict)
    _failed: set[object] = field(default_factory=set)
    _room: CellRoom = field(init=False)
    _preferred: dict[Entry, bool] = field(init=False)
    _tops: frozenset[Entry] = field(init=False)
    _pinned: bool = field(init=False)

    def __post_init__(self) -> None:
        cells = self.questions.regions.cells(self.region, self.key)
        self._room = CellRoom(cells, [entry.part for entry in self.form.tops], self.key)
        self._preferred = self._cheapest()
        self._tops = frozenset(self.form.tops)
        self._pinned = any(len(part.all_pins) for part in self.parts)

    def solve(self) -> Answer:
        """Impossible only if every inner "no" was a proof and nothing is unsettled."""
        required = self._room.numbers([entry.part for entry in self.form.tops if entry.choice == REQUIRED])
        if self._room.without_cell(required) or self._room.counted_out(required):
            return IMPOSSIBLE
        self._packings = self.questions.final_packings
        for run in range(1 + self.questions.level):
            self._tries = self.questions.tries * (_AT_LEAST + len(self.form.tops)) << run
            answer = self._run()
            if answer is not None or self.questions.budget.left <= 0 or self._packings <= 0:
                return answer or UNKNOWN
        return UNKNOWN

    def _cheapest(self) -> dict[Entry, bool]:
        """Which entries are among as many of the cheapest of their choice as it needs."""
        by_choice: dict[int, list[Entry]] = {}
        for entry in (*self.form.tops, *self.form.flats):
            by_choice.setdefault(entry.choice, []).append(entry)
        preferred: dict[Entry, bool] = {}
        for choice, entries in by_choice.items():
            need = len(entries) if choice == REQUIRED else self.form.choices[choice].need
            entries.sort(key=lambda entry: (self._room.price(entry.part), entry.part.kind, entry.part.leaves))
            preferred.update({entry: place < need for place, entry in enumerate(entries)})
        return preferred

    def _run(self) -> Answer | None:
        """The answer, or None if the tries ran out."""
        self._entries = self._fail_first()
        required = [entry.part if entry.choice == REQUIRED else None for entry in self._entries]
        self._to_come = [
            self._room.numbers([part for part in required[position:] if part is not None])
            for position in range(len(required) + 1)
        ]
        self._held, self._anywhere, self._failed, self._proved = {}, [], set(), True
        self._room.clear()
        frames = [self._frame(0, self.form.state)]
        while frames:
            frame = frames[-1]
            self._put_back(frame)
            option = next(frame.options, None)
            if option is None:
                self._note_failure(frames.pop(), len(frames))
                continue
            self._tries -= 1
            if self._tries < 0 or self.questions.budget.left <= 0:
                return None
            state = self._apply(len(frames) - 1, option, frame)
            if state is None:
                continue
            frame.advanced = True
            if len(frames) < len(self._entries):
                following = self._frame(len(frames), state)
                if following.signature not in self._failed:
                    frames.append(following)
                continue
            placed = self._finish()
            if placed is not None:
                return self.questions.answer(self.region, self.parts, placed)
            if self._packings <= 0:
                return None
        return IMPOSSIBLE if self._proved and not self.unsettled else UNKNOWN

    def _fail_first(self) -> list[Entry]:
        def order(entry: Entry) -> tuple[float, float, int, tuple[int, ...]]:
            part = entry.part
            cells = self._room.choices(part)
            return (
                cells / (1 + self._failures.get(part.kind, 0)),
                -self._room.price(part),
                part.kind,
                part.leaves,
            )

        flats = [entry for entry in self.form.flats if entry.choice != REQUIRED]
        return [*sorted(self.form.tops, key=order), *flats]

    def _frame(self, position: int, state: State) -> _Frame:
        held = sorted((self._look(cell), kinds_of(parts)) for cell, parts in self._held.items())
        signature = position, state, tuple(held), tuple(part.kind for part in self._anywhere)
        return _Frame(state, self._options(self._entries[position], state), signature)

    def _options(self, entry: Entry, state: State) -> Iterator[int]:
        if entry.choice != REQUIRED and not is_open(self.form.choices, state, entry.choice):
            yield _PASS
            return
        spared_first = entry.choice != REQUIRED and not self._preferred[entry]
        if spared_first:
            yield _GIVE_UP
        if entry in self._tops:
            yield from self._cells_in_turn(entry.part)
        else:
            yield _ANYWHERE
        if entry.choice != REQUIRED and not spared_first:
            yield _GIVE_UP

    def _cells_in_turn(self, part: Part) -> Iterator[int]:
        """Cells with room by the bounds, tightest first, one of those that are alike and hold alike parts."""
        seen: set[object] = set()
        for cell in self._room.tightest_first(part):
            held = self._held.get(cell, ())
            look = self._look(cell), kinds_of(held)
            if look not in seen:
                seen.add(look)
                yield cell

    def _look(self, cell: int) -> int:
        """Equal for cells that are alike; pins tell all cells apart."""
        region = self._room.cells.regions[cell]
        return region.number if self._pinned else self.questions.regions.shape(region).shape

    def _apply(self, position: int, option: int, frame: _Frame) -> State | None:
        """The state after the option, with its change made; None if it fails."""
        entry = self._entries[position]
        choices, choice = self.form.choices, entry.choice
        if option == _PASS:
            return frame.state
        if option == _GIVE_UP:
            return give_up(choices, frame.state, choice)
        state = take(choices, frame.state, choice)
        if state is None:
            return None
        if option == _ANYWHERE:
            frame.change = (_ANYWHERE, None, entry.part)
            self._anywhere.append(entry.part)
            return state
        if not self._assign(entry.part, option, frame):
            return None
        return state if self._all_open(position + 1) else None

    def _assign(self, part: Part, cell: int, frame: _Frame) -> bool:
        self.questions.budget.spend(self._room.steps)
        before = self._held.get(cell)
        inside = part.settled if part.key == self.key else part
        parts = in_order((*(before or ()), inside))
        verdict = self.questions.ask(self._room.cells.regions[cell], parts).verdict
        if verdict is not Verdict.FOUND:
            self._proved &= verdict is Verdict.IMPOSSIBLE
            return False
        frame.change = (cell, before, part)
        self._held[cell] = parts
        self._room.take(part, cell)
        return True

    def _all_open(self, position: int) -> bool:
        """Whether the bounds leave cells for all required parts from the position on."""
        to_come = self._to_come[position]
        stuck = self._room.without_cell(to_come)
        for kind in stuck:
            self._note(kind)
        return not stuck and not self._room.counted_out(to_come)

    def _put_back(self, frame: _Frame) -> None:
        if frame.change is None:
            return
        cell, before, part = frame.change
        frame.change = None
        if cell == _ANYWHERE:
            self._anywhere.pop()
            return
        self._room.give_back(part, cell)
        if before is None:
            del self._held[cell]
        else:
            self._held[cell] = before

    def _note_failure(self, frame: _Frame, position: int) -> None:
        self._failed.add(frame.signature)
        if not frame.advanced:
            self._note(self._entries[position].part.kind)

    def _note(self, kind: int) -> None:
        self._failures[kind] = self._failures.get(kind, 0) + 1

    def _finish(self) -> Placed | None:
        """What all cells hold, with what may run anywhere packed into the rest; None if that fails."""
        placed: Placed = []
        for cell, parts in self._held.items():
            region = self._room.cells.regions[cell]
            placed += self.questions.placed(region, parts, self.questions.ask(region, parts))
        flats = [entry.part for entry in self.form.flats if entry.choice == REQUIRED] + self._anywhere
        if not flats:
            return placed
        added = self.questions.add(flats, self.region, placed)
        if added is not None:
            return [*placed, *added]
        packing = pack_confined(self.questions, self.region, self._confined(flats, placed))
        if packing.verdict is Verdict.FOUND:
            return list(packing.placed)
        self.unsettled = True
        self._packings -= 1
        return None

    def _confined(self, flats: list[Part], placed: Placed) -> list[Confined]:
        """All that is assigned, in the cells and inner domains that it has, and the flats."""
        regions = self._room.cells.regions
        goals = [(part, regions[cell]) for cell, parts in self._held.items() for part in parts]
        confined = confined_as_placed(self.questions.regions, goals, placed)
        return [*confined, *((part, self.region) for part in flats)]
