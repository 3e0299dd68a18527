"""Which bound pods preemption takes as one, and whom a unit may preempt (KEP-5710, semantics 1 and 5.6).

Bound pods are kept by group, and those without one by priority, so that looking up the victims of a unit costs what
its victims cost, not what the cluster holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from muster.core.arrays import IntArray
from muster.core.preemption_units import DisruptionUnits, KeyColumns
from muster.engine.cluster_state import ClusterState, Name
from muster.engine.conditions import TRUE
from muster.engine.disruption_budgets import BudgetTable
from muster.engine.hierarchy import keys_below
from muster.engine.ranked_leaves import Belonging, RankedLeaves
from muster.model.meta import ORDINAL_OF, POD, POD_GROUP, ObjectKey
from muster.model.pod import POD_SCHEDULED, Pod, PodStatus
from muster.model.variations import alike

_NONE: IntArray = np.zeros(0, dtype=np.int64)
_Shelf = dict[int, int]
"""Pods by ordinal, each with when it began to run."""
_SHELF_OF = attrgetter("namespace", "group", "spec.priority")
_start_alike = alike(Pod, "status", "creation_us")


class UnitOfPod(NamedTuple):
    """The disruption unit of one pod, and its priority as a victim."""

    key: ObjectKey
    priority: int


def is_potential_victim(pod: Pod) -> bool:
    """Whether the pod runs and is there to stay, whoever scheduled it."""
    return bool(pod.node_name) and pod.is_member


class DisruptionTable:
    """The pods that could be preempted, of one cluster. Kept right by `pod_changed`, `pods_bound` and `group_changed`.

    By ordinal: `running` are all that could be taken, `leaving` those that are on their way out already.
    """

    def __init__(self, state: ClusterState) -> None:
        self.running: dict[int, Pod] = {}
        self.leaving: dict[int, Pod] = {}
        self._state = state
        self._alone: dict[int, _Shelf] = {}
        self._grouped: dict[Name, _Shelf] = {}
        self._start_of = (PodStatus(), -1)
        self._leaves = RankedLeaves(state)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that was bound, changed, or went. Its group and priority never change."""
        pod = new or old
        if pod is None:
            return
        if new is not None and is_potential_victim(new):
            self.running[new.ordinal] = new
            self._shelf(new)[new.ordinal] = self.start_of(new)
        elif self.running.pop(pod.ordinal, None) is not None:
            self._take_off_shelf(pod)
        if new is not None and new.is_leaving:
            self.leaving[new.ordinal] = new
        else:
            self.leaving.pop(pod.ordinal, None)

    def pods_bound(self, bound: Sequence[Pod]) -> None:
        """Note pods that got a node and were seen nowhere before."""
        self.running.update(zip(map(ORDINAL_OF, bound), bound, strict=True))
        for _, pods in groupby(bound, key=_SHELF_OF):
            together = list(pods)
            starts_alike = _start_alike(together)
            starts = repeat(self.start_of(together[0])) if starts_alike else map(self.start_of, together)
            self._shelf(together[0]).update(zip(map(ORDINAL_OF, together), starts, strict=False))

    def group_changed(self, key: ObjectKey) -> None:
        """A group came or went."""
        self._leaves.group_changed(key)

    def unit_of(self, pod: Pod) -> UnitOfPod:
        """What is taken with the pod."""
        belonging = self._leaves.belonging((pod.namespace, pod.group)) if pod.group else None
        if belonging is None:
            return UnitOfPod(pod.key, pod.spec.priority or 0)
        return UnitOfPod(belonging.whole or pod.key, belonging.priority)

    def pods_of(self, unit: ObjectKey) -> set[int]:
        """Ordinals of the pods that would be taken with this unit."""
        if unit.kind == POD:
            pod = self._state.pod(unit.namespace, unit.name)
            return {pod.ordinal} if pod is not None and is_potential_victim(pod) else set()
        leaves = (key for key in keys_below(self._state, (unit,)) if key.kind == POD_GROUP)
        return {
            ordinal
            for leaf in leaves
            if _is_whole(self._leaves.belonging((leaf.namespace, leaf.name)), unit)
            for ordinal in self._grouped.get((leaf.namespace, leaf.name), ())
        }

    def below(self, priority: int, budgets: BudgetTable) -> DisruptionUnits:
        """The units of lower priority than this, with the budgets that select a pod of them."""
        found = _Columns(self.running)
        wholes: dict[ObjectKey, tuple[int, list[_Shelf]]] = {}
        for level, alone in self._alone.items():
            if level < priority:
                found.add_alone(alone, level)
        for leaf in self._leaves.missing():
            for ordinal, start in self._grouped[leaf].items():
                level = self.running[ordinal].spec.priority or 0
                if level < priority:
                    found.add_alone({ordinal: start}, level)
        for leaf, (whole, level) in self._leaves.below(priority):
            shelf = self._grouped[leaf]
            if whole is None:
                found.add_alone(shelf, level)
            else:
                wholes.setdefault(whole, (level, []))[1].append(shelf)
        if wholes:
            found.add_wholes(wholes)
        return found.units(budgets)

    def start_of(self, pod: Pod) -> int:
        """When the pod began to run, or was bound, or came bound already. Pods that come together share a status."""
        status, start = self._start_of
        if pod.status is not status:
            start = _start_of(pod.status)
            self._start_of = (pod.status, start)
        return start if start >= 0 else pod.creation_us

    def starts(self) -> dict[int, int]:
        """When each of the running pods began to, by ordinal."""
        found: dict[int, int] = {}
        for shelf in (*self._alone.values(), *self._grouped.values()):
            found.update(shelf)
        return found

    def _shelf(self, pod: Pod) -> _Shelf:
        """Where the pod is kept; it is made if there is none, for a pod that comes."""
        if not pod.group:
            return self._alone.setdefault(pod.spec.priority or 0, {})
        leaf = pod.namespace, pod.group
        shelf = self._grouped.get(leaf)
        if shelf is None:
            shelf = self._grouped[leaf] = {}
            self._leaves.add(leaf)
        return shelf

    def _take_off_shelf(self, pod: Pod) -> None:
        shelf = self._shelf(pod)
        del shelf[pod.ordinal]
        if shelf:
            return
        if pod.group:
            del self._grouped[pod.namespace, pod.group]
            self._leaves.discard((pod.namespace, pod.group))
        else:
            del self._alone[pod.spec.priority or 0]


def _is_whole(belonging: Belonging | None, unit: ObjectKey) -> bool:
    return belonging is not None and belonging.whole == unit


class _Columns:
    """Potential victims while they are put together."""

    def __init__(self, running: dict[int, Pod]) -> None:
        self._running = running
        self._kinds: list[str] = []
        self._namespaces: list[str] = []
        self._names: list[str] = []
        self._priorities: list[int] = []
        self._starts: list[int] = []
        self._sizes: list[int] = []
        self._ordinals: list[int] = []
        self._wholes: tuple[IntArray, IntArray, IntArray] = (_NONE, _NONE, _NONE)
        """Starts, sizes and ordinals of those that go together, which come last."""

    def add_alone(self, shelf: _Shelf, priority: int) -> None:
        """Pods that are units of their own."""
        pods = [self._running[ordinal] for ordinal in shelf]
        self._kinds += [POD] * len(shelf)
        self._namespaces += [pod.namespace for pod in pods]
        self._names += [pod.name for pod in pods]
        self._priorities += [priority] * len(shelf)
        self._starts += shelf.values()
        self._sizes += [1] * len(shelf)
        self._ordinals += shelf

    def add_wholes(self, wholes: Mapping[ObjectKey, tuple[int, list[_Shelf]]]) -> None:
        """Pods that go together: by unit its priority and its shelves, of which none is empty."""
        self._kinds += [key.kind for key in wholes]
        self._namespaces += [key.namespace for key in wholes]
        self._names += [key.name for key in wholes]
        self._priorities += [level for level, _ in wholes.values()]
        of_unit = [shelves for _, shelves in wholes.values()]
        shelves = list(chain.from_iterable(of_unit))
        firsts = _firsts(np.array(list(map(len, of_unit))))
        sizes = np.add.reduceat(np.array(list(map(len, shelves))), firsts)
        starts = np.fromiter(chain.from_iterable(map(dict.values, shelves)), dtype=np.int64)
        ordinals = np.fromiter(chain.from_iterable(shelves), dtype=np.int64)
        self._wholes = np.minimum.reduceat(starts, _firsts(sizes)), sizes, _ascending(ordinals, sizes)

    def units(self, budgets: BudgetTable) -> DisruptionUnits:
        alone = (self._starts, self._sizes, self._ordinals)
        starts, sizes, ordinals = map(_joined, alone, self._wholes)
        return DisruptionUnits(
            KeyColumns(self._kinds, self._namespaces, self._names),
            np.array(self._priorities, dtype=np.int64),
            starts,
            sizes,
            ordinals,
            budgets.over(ordinals.tolist()),
        )


def _joined(alone: list[int], wholes: IntArray) -> IntArray:
    return np.concatenate((np.array(alone, dtype=np.int64), wholes))


def _firsts(sizes: IntArray) -> IntArray:
    """Where each part begins."""
    firsts: IntArray = np.cumsum(sizes) - sizes
    return firsts


def _ascending(ordinals: IntArray, sizes: IntArray) -> IntArray:
    """The ordinals with each part of these sizes sorted; they mostly are."""
    begins = np.zeros(len(ordinals), dtype=np.bool_)
    begins[_firsts(sizes)] = True
    if (begins[1:] | (ordinals[1:] > ordinals[:-1])).all():
        return ordinals
    return ordinals[np.lexsort((ordinals, np.cumsum(begins)))]


def _start_of(status: PodStatus) -> int:
    """When a pod with this status began to run, or was bound; -1 if it does not say."""
    if status.start_us is not None:
        return status.start_us
    for each in status.conditions:
        if each.type == POD_SCHEDULED and each.status == TRUE:
            return each.last_transition_us
    return -1
