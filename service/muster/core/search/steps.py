"""What the parts of the search cost, in steps of its budget: one step is about 7.5 microseconds of the reference machine.

Budgets are counted so that the same input gets the same decision, but what they stand for is time. So each part says
what it costs by the sizes of what it works on, before it begins: fixed costs of array operations, and so many amounts
to a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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


def compiling(types: int, resources: int, nodes: int) -> int:
    """A problem of so many types and nodes, with resources before idle ones are left out."""
    return 60 + types * (20 + nodes // 100) + resources * (10 + nodes // 100)


def asking(kinds: int, resources: int, nodes: int) -> int:
    """A question reduced to what bears on it."""
    return 10 + kinds + nodes // 400 + kinds * resources * (250 + nodes) // 800


def cutting(kinds: int, sets: int, nodes: int) -> int:
    """The sets of nodes and weights of the counting bounds."""
    return 8 + sets * (2_000 + nodes * (20 + kinds)) // 20_000


def counting(leaves: int, kinds: int, cuts: int) -> int:
    """The least that a selection takes under so many cuts."""
    return 8 + leaves * kinds * cuts // 300


def spreading(kinds: int, nodes: int) -> int:
    """Greedy placement of so many types."""
    return 8 + kinds * (400 + nodes) // 80


def preparing_repair(kinds: int, resources: int, nodes: int) -> int:
    """What repair sets up before its first move."""
    return 10 + kinds // 2 + nodes * (2 + kinds * resources) // 2_000


def finding_patterns(kinds: int, vectors: int) -> int:
    """The fullest of so many count vectors on one node."""
    return 12 + kinds * vectors // 600


def comparing(selections: int, kinds: int, cuts: int) -> int:
    """So many counts held against the cuts."""
    return selections * (1 + cuts * (1 + kinds) // 5_000)
