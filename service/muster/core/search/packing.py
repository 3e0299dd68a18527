"""Whether groups hold their minimums together on some nodes: bounds, smart greedy, exact counts, repair, in turns.

Topology constraints inside the groups are for the domain search. "Impossible" is only said where it is proved;
budgets count steps, so the same question gets the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from muster.core.arrays import IntArray
from muster.core.search.bounds import ruled_out
from muster.core.search.greedy import Placed, place_greedily
from muster.core.search.problem import Problem, SearchNode
from muster.core.search.question import Question, ask


class Verdict(Enum):
    FOUND = "FOUND"
    IMPOSSIBLE = "IMPOSSIBLE"
    """Proved."""
    UNKNOWN = "UNKNOWN"


class Effort(IntEnum):
    """How far one question may go: greedy and cheap proofs; some repair; all that the budget allows."""

    LOW = 1
    MIDDLE = 2
    FULL = 3


@dataclass(slots=True)
class Budget:
    """Steps that may still be taken. May be overdrawn by the part of a step that had begun."""

    left: int
    _given: int = field(init=False)

    def __post_init__(self) -> None:
        self._given = self.left

    def spend(self, steps: int) -> None:
        self.left -= steps

    @property
    def spent(self) -> int:
        return self._given - self.left


@dataclass(frozen=True, slots=True)
class Packing:
    """placed: (leaf index, type, node index, number of pods), all of the problem."""

    verdict: Verdict
    placed: tuple[tuple[int, int, int, int], ...] = ()


IMPOSSIBLE = Packing(Verdict.IMPOSSIBLE)
UNKNOWN = Packing(Verdict.UNKNOWN)


def pack(
    problem: Problem,
    groups: Sequence[SearchNode],
    nodes: IntArray,
    free: IntArray,
    budget: Budget,
    effort: Effort,
) -> Packing:
    """Whether all groups can have their minimums together on `nodes`, with room `free` [N, R], which stays as it is.

    nodes: ascending indexes among the problem's. Topology constraints inside the groups are not looked at.
    """
    budget.spend(1)
    question = ask(problem, groups, nodes, free)
    if question is None or ruled_out(question):
        return IMPOSSIBLE
    placed = place_greedily(question)
    return _found(question, placed) if placed is not None else UNKNOWN


def _found(question: Question, placed: Placed) -> Packing:
    entries = [
        (leaf, question.types[kind], int(question.nodes[node]), number) for leaf, kind, node, number in placed
    ]
    return Packing(Verdict.FOUND, tuple(sorted(entries)))
