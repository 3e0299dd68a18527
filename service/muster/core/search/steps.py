"""What the parts of the search cost, in steps of its budget: one step is about 7.5 microseconds of the reference machine.

Budgets are counted so that the same input gets the same decision, but what they stand for is time. So each part says
what it costs by the sizes of what it works on, before it begins: fixed costs of array operations, and so many amounts
to a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_COMPARED = 2**15
"""Above so many amounts the counting bound is left out while parts are assigned to cells."""


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
    """A problem of so many types and nodes."""
    return 60 + types * (12 + nodes // 450) + resources * nodes // 450


def asking(kinds: int, resources: int, nodes: int) -> int:
    """A question reduced to what bears on it."""
    return 16 + kinds + nodes // 400 + kinds * resources * (250 + nodes) // 800


def cutting(kinds: int, sets: int, nodes: int) -> int:
    """The sets of nodes and weights of the counting bounds."""
    return 12 + sets * (2_000 + nodes * (20 + kinds)) // 20_000


def counting(leaves: int, kinds: int, cuts: int) -> int:
    """The least that a selection takes under so many cuts."""
    return 12 + leaves * kinds * cuts // 300


def spreading(kinds: int, nodes: int) -> int:
    """Greedy placement of so many types."""
    return 10 + kinds * (480 + nodes) // 80


def preparing_repair(kinds: int, resources: int, nodes: int) -> int:
    """What repair sets up before its first move."""
    return 10 + kinds // 2 + nodes * (2 + kinds * resources) // 2_000


def finding_patterns(kinds: int, vectors: int) -> int:
    """The fullest of so many count vectors on one node."""
    return 25 + kinds * vectors // 600


def comparing(selections: int, kinds: int, cuts: int) -> int:
    """So many counts held against the cuts."""
    return selections * (1 + cuts * (1 + kinds) // 5_000)


def preparing_domains(types: int, resources: int, nodes: int) -> int:
    """Measures and kinds of all nodes."""
    return (
        60
        + types
        + nodes * (20 + 3 * types * resources + 2 * (types + resources) + types * types // 64) // 2_000
    )


def cutting_region(nodes: int, measures: int) -> int:
    """A region cut by a label, with sums of so many measures."""
    return 12 + nodes * (20 + measures) // 4_000


def comparing_region(nodes: int, labels: int) -> int:
    """Finding what a region is like."""
    return 4 + 2 * labels + nodes * (1 + labels) // 2_000


def assigning(kinds: int, measures: int, cells: int) -> int:
    """One part given to a cell, with the bounds of what is to come."""
    return 10 + (min(kinds * measures * cells, MOST_COMPARED) + measures * cells) // 500


def telling_apart(nodes: int) -> int:
    """Nodes compared with each other."""
    return 10 + nodes // 4


def filling(nodes: int, amounts: int) -> int:
    """Nodes filled one by one with patterns of so many amounts."""
    return 10 + 2 * nodes + amounts // 800
