"""Which bound pods preemption takes as one, and whom a unit may preempt (KEP-5710, semantics 1 and 5.6).

Bound pods are kept on shelves: by group, and those without one by priority. What changed since the victims of a unit
were looked up last is entered in the columns that all of them stand in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, repeat
from operator import attrgetter
from typing import NamedTuple

from muster.core.preemption_units import DisruptionUnits
from muster.engine.belonging import Belonging, belonging_of
from muster.engine.cluster_state import ClusterState
from muster.engine.conditions import TRUE
from muster.engine.disruption_budgets import BudgetTable
from muster.engine.hierarchy import keys_below
from muster.engine.victim_columns import LoosePods, Shelf, ShelfKey, SingleUnits, WholeUnits, joined
from muster.model.meta import ORDINAL_OF, POD, POD_GROUP, ObjectKey
from muster.model.pod import POD_SCHEDULED, Pod, PodStatus
from muster.model.variations import alike

PODS_A_SHELF = 64
"""Of pods without a group, which share nothing but their priority: a shelf that changes is entered anew as a whole."""
_SHARED_BY_VICTIMS = attrgetter("namespace", "group", "spec.priority")
_start_alike = alike(Pod, "status", "creation_us")


class UnitOfPod(NamedTuple):
    """The disruption unit of one pod, and its priority as a victim."""

    key: ObjectKey
    priority: int


def is_potential_victim(pod: Pod) -> bool:
    """Whether the pod runs and is there to stay, whoever scheduled it."""
    return bool(pod.node_name) and pod.is_member


class DisruptionTable:
    """The pods that could be preempted, of one cluster. Kept right by `pod_changed`, `pods_bound` and `groups_changed`.

    By ordinal: `running` are all that could be taken, `leaving` those that are on their way out already.
    """

    def __init__(self, state: ClusterState) -> None:
        self.running: dict[int, Pod] = {}
        self.leaving: dict[int, Pod] = {}
        self._state = state
        self._shelves: dict[ShelfKey, Shelf] = {}
        self._stale: dict[ShelfKey, None] = {}
        self._singles = SingleUnits(self.running)
        self._wholes = WholeUnits()
        self._start_of = (PodStatus(), -1)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that was bound, changed, or went. Its group and priority never change."""
        pod = new or old
        if pod is None:
            return
        if new is not None and is_potential_victim(new):
            self.running[new.ordinal] = new
            self._changing(new)[new.ordinal] = self.start_of(new)
        elif self.running.pop(pod.ordinal, None) is not None:
            self._take_off_shelf(pod)
        if new is not None and new.is_leaving:
            self.leaving[new.ordinal] = new
        else:
            self.leaving.pop(pod.ordinal, None)

    def pods_bound(self, bound: Sequence[Pod]) -> None:
        """Note pods that got a node and were seen nowhere before."""
        self.running.update(zip(map(ORDINAL_OF, bound), bound, strict=True))
        for (_, group, _), pods in groupby(bound, key=_SHARED_BY_VICTIMS):
            together = list(pods)
            starts_alike = _start_alike(together)
            starts = repeat(self.start_of(together[0])) if starts_alike else map(self.start_of, together)
            if group:
                self._changing(together[0]).update(zip(map(ORDINAL_OF, together), starts, strict=False))
            else:
                for pod, start in zip(together, starts, strict=False):
                    self._changing(pod)[pod.ordinal] = start

    def groups_changed(self, keys: Iterable[ObjectKey]) -> None:
        """Groups came or went, or groups above them: where their pods belong is to be found anew."""
        for key in keys:
            leaf = key.namespace, key.name
            if key.kind == POD_GROUP and leaf in self._shelves:
                self._stale[leaf] = None

    def unit_of(self, pod: Pod) -> UnitOfPod:
        """What is taken with the pod."""
        belonging = belonging_of(self._state, (pod.namespace, pod.group)) if pod.group else None
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
            if _is_whole(belonging_of(self._state, (leaf.namespace, leaf.name)), unit)
            for ordinal in self._shelves.get((leaf.namespace, leaf.name), ())
        }

    def below(self, priority: int, budgets: BudgetTable) -> DisruptionUnits:
        """The units of lower priority than this, with the budgets that select a pod of them."""
        self._bring_up_to_date()
        found = joined(self._singles.below(priority), self._wholes.below(priority))
        return replace(found, budgets=budgets.over(found.ordinals))

    def _bring_up_to_date(self) -> None:
        """Enter what changed since the victims were asked for last."""
        singles: list[tuple[ShelfKey, Shelf, int | None]] = []
        for key in self._stale:
            self._singles.drop(key)
            self._wholes.drop(key)
            shelf = self._shelves.get(key)
            if shelf is None:
                continue
            belonging = self._belonging(key)
            if belonging is None:
                singles.append((key, shelf, None))
            elif belonging.whole is None:
                singles.append((key, shelf, belonging.priority))
            else:
                self._wholes.enter(key, shelf, belonging.whole, belonging.priority)
        self._stale.clear()
        self._singles.enter(singles)

    def _belonging(self, key: ShelfKey) -> Belonging | None:
        if isinstance(key, LoosePods):
            return Belonging(None, key.priority)
        return belonging_of(self._state, key)

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
        for shelf in self._shelves.values():
            found.update(shelf)
        return found

    def _changing(self, pod: Pod) -> Shelf:
        """The shelf of a pod that comes, changes or goes; it is made if there is none."""
        key = _shelf_key(pod)
        self._stale[key] = None
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = {}
        return shelf

    def _take_off_shelf(self, pod: Pod) -> None:
        shelf = self._changing(pod)
        del shelf[pod.ordinal]
        if not shelf:
            key = _shelf_key(pod)
            del self._shelves[key]
            if key not in self._singles and key not in self._wholes:
                del self._stale[key]


def _shelf_key(pod: Pod) -> ShelfKey:
    if pod.group:
        return pod.namespace, pod.group
    return LoosePods(pod.spec.priority or 0, pod.ordinal // PODS_A_SHELF)


def _is_whole(belonging: Belonging | None, unit: ObjectKey) -> bool:
    return belonging is not None and belonging.whole == unit


def _start_of(status: PodStatus) -> int:
    """When a pod with this status began to run, or was bound; -1 if it does not say."""
    if status.start_us is not None:
        return status.start_us
    for each in status.conditions:
        if each.type == POD_SCHEDULED and each.status == TRUE:
            return each.last_transition_us
    return -1
