"""What preemption may take and must respect, in columns (KEP-5710): disruption units, budgets, rooms promised earlier.

The engine builds these from live objects, and only for a unit that needs them; the core reads them and never changes
them. Which units are potential victims is for the engine to say; which of them go is for `core.preemption`.
They travel to worker processes: columns, since an object for each unit would take longer than to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import overload

import numpy as np

from muster.core.arrays import IntArray
from muster.core.decision import Assignments
from muster.model.meta import ObjectKey

_NEWLINE = "\n"
"""No name of an object has one."""


class KeyColumns(Sequence[ObjectKey]):
    """Keys of objects, one column a part; a key is made when it is asked for."""

    __slots__ = ("kinds", "names", "namespaces")

    def __init__(
        self, kinds: Sequence[str] = (), namespaces: Sequence[str] = (), names: Sequence[str] = ()
    ) -> None:
        self.kinds, self.namespaces, self.names = kinds, namespaces, names

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> ObjectKey: ...
    @overload
    def __getitem__(self, place: slice) -> KeyColumns: ...
    def __getitem__(self, place: int | slice) -> ObjectKey | KeyColumns:
        if isinstance(place, slice):
            return KeyColumns(self.kinds[place], self.namespaces[place], self.names[place])
        return ObjectKey(self.kinds[place], self.namespaces[place], self.names[place])

    def __reduce__(self) -> tuple[object, ...]:
        return _unpacked, (_coded(self.kinds), _coded(self.namespaces), _NEWLINE.join(self.names))


@dataclass(frozen=True, slots=True)
class DisruptionBudgets:
    """The PodDisruptionBudgets that select a pod of a potential victim, one entry a budget.

    allowed: how many of its pods may go now, by the budget's own arithmetic; below 0 counts as 0.
    pods: ordinals of the potential victims' pods that it selects.
    """

    keys: tuple[ObjectKey, ...] = ()
    allowed: tuple[int, ...] = ()
    pods: tuple[tuple[int, ...], ...] = ()


def _none() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class DisruptionUnits:
    """The potential victims of one unit, U of them with P pods, in any order: the same units give the same decision.

    A unit is listed if its priority is below the preemptor's and a pod of it is bound, live and not leaving, whatever
    its scheduler; only such pods are listed.
    keys: the highest ancestor whose disruption mode is All, else the pod. priorities: [U] as victims, that is of the
    topmost known group above. starts: [U] when the earliest of its pods began to run (`start_time`, else time of
    binding), in any unit that compares. sizes: [U] how many pods each has. ordinals: [P] of the pods, unit by unit.
    What a pod takes and where it runs is in the snapshot; pods that are not bound there, or leaving, are left out.
    """

    keys: KeyColumns = field(default_factory=KeyColumns)
    priorities: IntArray = field(default_factory=_none)
    starts: IntArray = field(default_factory=_none)
    sizes: IntArray = field(default_factory=_none)
    ordinals: IntArray = field(default_factory=_none)
    budgets: DisruptionBudgets = DisruptionBudgets()


def units_of_rows(
    rows: Iterable[tuple[ObjectKey, int, int, tuple[int, ...]]], budgets: DisruptionBudgets
) -> DisruptionUnits:
    """Units from rows of key, priority, start and ordinals."""
    table = list(rows)
    keys, pods = [key for key, _, _, _ in table], [ordinals for _, _, _, ordinals in table]
    return DisruptionUnits(
        KeyColumns([key.kind for key in keys], [key.namespace for key in keys], [key.name for key in keys]),
        np.array([priority for _, priority, _, _ in table], dtype=np.int64),
        np.array([start for _, _, start, _ in table], dtype=np.int64),
        np.array(list(map(len, pods)), dtype=np.int64),
        np.fromiter(chain.from_iterable(pods), dtype=np.int64),
        budgets,
    )


@dataclass(frozen=True, slots=True)
class PromisedRoom:
    """Nominated pods of other units, of equal or higher priority than this one; columns, one entry a pod.

    Lower ones are not listed: their room may be taken. Pods that are bound by now are not listed either.
    """

    signatures: tuple[int, ...] = ()
    node_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierPreemption:
    """What an earlier preemption left behind for the unit that is decided now.

    nominations: its own, as they were decided. is_waiting: whether pods that it waits for are still leaving; then
    nobody else is evicted for it. stayed: pods that were to leave and did not in time; for this unit they count as
    staying.
    """

    nominations: Assignments = field(default_factory=Assignments)
    is_waiting: bool = False
    stayed: frozenset[int] = frozenset()


def _coded(words: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """The different words, and for each place which it is."""
    if words and words.count(words[0]) == len(words):
        return (words[0],), np.zeros(len(words), dtype=np.int64)
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    return tuple(places), np.array(list(map(places.__getitem__, words)), dtype=np.int64)


def _decoded(words: tuple[str, ...], places: IntArray) -> list[str]:
    return list(words) * len(places) if len(words) == 1 else list(map(words.__getitem__, places.tolist()))


def _unpacked(
    kinds: tuple[tuple[str, ...], IntArray], namespaces: tuple[tuple[str, ...], IntArray], names: str
) -> KeyColumns:
    if not names:
        return KeyColumns()
    return KeyColumns(_decoded(*kinds), _decoded(*namespaces), names.split(_NEWLINE))
