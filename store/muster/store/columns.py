"""Columns in little room: many equal, rising or repeated values packed for the log and for assignments.

What `pack_x` returns is made of what msgpack has, and `unpack_x` gives back the column, equal value by value. A
packed column may be read years later, so the forms below stay.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import sub
from typing import Generic, TypeVar

PackedIntegers = int | list[int]
PackedOptionals = int | None | list[int | None]
PackedWords = str | tuple[list[str], list[int]]
PackedNames = tuple[str, list[str]]
PackedUids = bytes | list[str]

Value = TypeVar("Value")
Packed = TypeVar("Packed")

UID_LENGTH = 36
HYPHENS = (8, 13, 18, 23)
FEW = 16
"""So many names or uids are kept as they are: packing them takes more time than it saves room."""
MANY = 64
"""From so many values on, a packed column is kept for the next that is equal."""
_JOINT = "\0"
_MARKS = (*((place, "-") for place in HYPHENS), (UID_LENGTH, _JOINT))


def pack_integers(column: Sequence[int]) -> PackedIntegers:
    """The one value if all are equal, else the first and then the differences, which are small for rising values."""
    if _all_equal(column):
        return column[0]
    return [column[0], *map(sub, column[1:], column)] if column else []


def unpack_integers(packed: PackedIntegers, count: int) -> list[int]:
    """The column of `count` integers."""
    return [packed] * count if isinstance(packed, int) else list(accumulate(packed))


def pack_optionals(column: Sequence[int | None]) -> PackedOptionals:
    """The one value if all are equal, else the values."""
    return column[0] if _all_equal(column) else list(column)


def unpack_optionals(packed: PackedOptionals, count: int) -> list[int | None]:
    """The column of `count` integers or Nones."""
    return packed if isinstance(packed, list) else [packed] * count


def pack_words(column: Sequence[str]) -> PackedWords:
    """The one word if all are equal, else each word once and an index for every place."""
    if _all_equal(column):
        return column[0]
    index = {word: place for place, word in enumerate(dict.fromkeys(column))}
    return list(index), list(map(index.__getitem__, column))


def unpack_words(packed: PackedWords, count: int) -> list[str]:
    """The column of `count` words; equal ones are one object."""
    if isinstance(packed, str):
        return [packed] * count
    words, index = packed
    return list(map(words.__getitem__, index))


def pack_names(column: Sequence[str]) -> PackedNames:
    """What all names begin with, and the rest of each."""
    if not column:
        return "", []
    prefix = _common_start(column[0], column[-1])
    joined = _JOINT.join(["", *column])
    # Mostly what two of them begin with is what all do, and then the joints that it follows are all joints.
    rests = joined.split(_JOINT + prefix)
    if len(rests) - 1 == len(column) == joined.count(_JOINT):
        return prefix, rests[1:]
    prefix = _common_start(min(column), max(column))
    return prefix, [name[len(prefix) :] for name in column]


def _plain_names(column: Sequence[str]) -> PackedNames:
    return "", list(column)


def _common_start(one: str, other: str) -> str:
    length = 0
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            break
        length += 1
    return one[:length]


def unpack_names(packed: PackedNames) -> list[str]:
    """The column of names."""
    prefix, rests = packed
    return [prefix + rest for rest in rests]


def pack_uids(column: Sequence[str]) -> PackedUids:
    """Sixteen bytes for each if all are UUIDs in their usual form, else the texts."""
    joined = _JOINT.join([*column, ""])
    are_marked = (joined[place :: UID_LENGTH + 1] == mark * len(column) for place, mark in _MARKS)
    if column and joined.count(_JOINT) == len(column) and all(are_marked):
        try:
            digits = joined.encode().translate(None, b"-\0")
            raw = unhexlify(digits)
        except ValueError:
            return list(column)
        if len(raw) == 16 * len(column) and not any(map(digits.__contains__, b"ABCDEF")):
            return raw
    return list(column)


def unpack_uids(packed: PackedUids) -> list[str]:
    """The column of uids."""
    if isinstance(packed, list):
        return packed
    digits = packed.hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-{digits[at + 12 : at + 16]}"
        f"-{digits[at + 16 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits), 32)
    ]


def _all_equal(column: Sequence[object]) -> bool:
    return bool(column) and column.count(column[0]) == len(column)


class Once(Generic[Value, Packed]):
    """Packs columns, of which those that are equal once; those of few values as `pack_few` does."""

    def __init__(
        self,
        pack: Callable[[Sequence[Value]], Packed],
        pack_few: Callable[[Sequence[Value]], Packed] | None = None,
    ) -> None:
        self._pack = pack
        self._pack_few = pack_few or pack
        self._known: dict[tuple[int, Value, Value], tuple[list[Value], Packed]] = {}

    def of(self, column: Sequence[Value]) -> Packed:
        if len(column) < MANY:
            return self._pack_few(column) if len(column) <= FEW else self._pack(column)
        # Equal columns of a commit hold the same objects, which takes no time to see.
        values = list(column)
        key = (len(values), values[0], values[-1])
        known = self._known.get(key)
        if known is None or known[0] != values:
            known = self._known[key] = (values, self._pack(values))
        return known[1]


class Packs:
    """What identifies the pods of a commit, packed: whoever adds, binds or decides on the same pods names them again."""

    def __init__(self) -> None:
        self.ordinals = Once(pack_integers)
        self.names = Once(pack_names, _plain_names)
        self.uids = Once(pack_uids, list)
