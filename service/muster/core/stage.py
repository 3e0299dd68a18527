"""What stands for the nodes while groups are rehearsed in all domains of some levels at once (`core.lanes`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from muster.core.arrays import BoolArray, IntArray
from muster.core.capacity import Amounts
from muster.core.signature import Signature

SavedT = TypeVar("SavedT")
"""What a stage needs to come back to an earlier state."""


class Stage(Protocol[SavedT]):
    """Room in all domains of some levels, and how pods of a shape take it. D: domains of the level in question."""

    sizes: tuple[int, ...]
    """How many domains each level has."""

    def parents(self, level: int) -> IntArray:
        """[D] their domains on the level above."""
        ...

    def ids(self, level: int) -> IntArray:
        """[D] numbers of states: equal numbers of a domain at two times mean that it was the same."""
        ...

    def room(self, signature: Signature, level: int) -> IntArray:
        """[D] pods of a shape that fit now."""
        ...

    def room_if_empty(self, signature: Signature, level: int) -> IntArray:
        """[D] pods of a shape that would fit if nothing ran there."""
        ...

    def offered(self, row: int, signatures: tuple[Signature, ...], level: int, by: Amounts) -> IntArray:
        """[D] at most so much of a resource row there is on nodes that take pods of these shapes."""
        ...

    def take(self, signature: Signature, wanted: IntArray, level: int) -> IntArray:
        """[D] how many of the wanted pods were assumed."""
        ...

    def placed(self, level: int) -> IntArray:
        """[D] pods assumed by now."""
        ...

    def used(self, row: int, level: int) -> IntArray:
        """[D] amounts of a resource row in use, with what is assumed."""
        ...

    def allocatable(self, row: int, level: int) -> IntArray: ...

    def save(self) -> SavedT: ...

    def restore(self, saved: SavedT) -> None: ...

    def take_back(self, saved: SavedT, lanes: BoolArray, level: int) -> None:
        """Restore some domains of a level only."""
        ...


@dataclass(frozen=True, slots=True)
class StageRooms(Generic[SavedT]):
    """Room in the domains of a level and in those of the levels below, for `core.capacity_bound`."""

    stage: Stage[SavedT]
    level: int
    by: Amounts

    def size(self, path: tuple[str, ...]) -> int:
        return self.stage.sizes[self.level + len(path)]

    def parents(self, path: tuple[str, ...]) -> IntArray:
        return self.stage.parents(self.level + len(path))

    def pods(self, signature: Signature, path: tuple[str, ...]) -> IntArray:
        room = self.stage.room if self.by == "free" else self.stage.room_if_empty
        return room(signature, self.level + len(path))

    def amounts(self, row: int, signatures: tuple[Signature, ...], path: tuple[str, ...]) -> IntArray:
        return self.stage.offered(row, signatures, self.level + len(path), self.by)
