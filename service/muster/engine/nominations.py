"""Units that preempt, while they wait for room (semantics 5.6, "Waiting"): what each waits for, and for how long.

Where its pods are nominated stands in their status; here is which pods have to leave. A wait ends when they are all
gone, when its unit is placed elsewhere, when its time is over, or when the unit cannot be scheduled any more. What a
decision nominates is `binder`'s to write; what follows from a change of the cluster is settled here.

Deviates from KEP-4671: nobody else is evicted for a unit before its wait is over (docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.core.decision import Assignments
from muster.core.messages import number_of
from muster.core.preemption_units import EarlierPreemption, PromisedRoom
from muster.core.tree import GroupTree, leaves
from muster.engine.conditions import UNSCHEDULABLE
from muster.engine.hierarchy import pods_of_unit, subtree, unit_of_pod
from muster.engine.members import Standing, standing
from muster.engine.ports import PreemptionWait, UnitState
from muster.engine.queueing_hints import EventKind
from muster.engine.reservations import settle_reservation
from muster.engine.tree_conditions import tell_group, tell_pod
from muster.model.meta import ObjectKey
from muster.model.pod import Pod

if TYPE_CHECKING:
    from muster.engine.cluster import Cluster
    from muster.engine.mutation import Mutation

_MOST_NAMED = 3
_NOTHING_EARLIER = EarlierPreemption()


@dataclass(slots=True, eq=False)
class _Wait:
    """left: pods that have not left yet, stayed: those that were given up, each by ordinal.

    nominated: the unit's pods that have a node in view; none once it gave up.
    """

    until_us: int = 0
    left: dict[int, ObjectKey] = field(default_factory=dict)
    stayed: dict[int, ObjectKey] = field(default_factory=dict)
    nominated: dict[ObjectKey, None] = field(default_factory=dict)


class PreemptionWaits:
    """The waits of one cluster. `record(key, wait)` is called for what a restart must know, with None for one that is over."""

    def __init__(self, record: Callable[[ObjectKey, PreemptionWait | None], None]) -> None:
        self._record = record
        self._waits: dict[ObjectKey, _Wait] = {}
        self._units_of: dict[int, dict[ObjectKey, None]] = {}
        self._over: dict[ObjectKey, None] = {}

    def load(
        self,
        waits: Iterable[PreemptionWait],
        nominated: Iterable[tuple[ObjectKey, ObjectKey]],
        running: Mapping[int, Pod],
    ) -> None:
        """Take over what the store holds. `nominated`: units and their pods that have a node in view.

        `running`: the pods that use room; all others have left.
        """
        for wait in waits:
            left = {each: running[each].key for each in wait.pods if each in running}
            stayed = {each: running[each].key for each in wait.stayed if each in running}
            held = self._waits[wait.key] = _Wait(wait.until_us, left, stayed)
            self._watch(wait.key, held)
        for unit, pod in nominated:
            self._waits.setdefault(unit, _Wait()).nominated[pod] = None

    def begin(
        self, unit: ObjectKey, nominated: Iterable[ObjectKey], pods: Iterable[Pod], until_us: int
    ) -> None:
        """The unit waits for these pods, and no longer for those of before."""
        before = self._waits.get(unit)
        stayed = before.stayed if before is not None else {}
        self._unwatch(unit)
        left = {pod.ordinal: pod.key for pod in pods}
        held = self._waits[unit] = _Wait(until_us, left, stayed, dict.fromkeys(nominated))
        self._watch(unit, held)
        self._record(unit, PreemptionWait(unit, tuple(sorted(held.left)), until_us, tuple(sorted(stayed))))

    def give_up(self, unit: ObjectKey) -> None:
        """The unit waits no more: what has not left is in its way now."""
        held = self._waits[unit]
        held.stayed |= held.left
        held.left, held.until_us, held.nominated = {}, 0, {}
        self._record(unit, PreemptionWait(unit, stayed=tuple(sorted(held.stayed))))

    def end(self, unit: ObjectKey) -> None:
        """The unit needs its nominations no more; pods that it gave up before stay in its way."""
        held = self._waits.get(unit)
        if held is None:
            return
        self._unwatch(unit)
        held.left = {}
        self._watch(unit, held)
        if held.stayed:
            self.give_up(unit)
        else:
            self.forget(unit)

    def forget(self, unit: ObjectKey) -> None:
        """The unit is not to be scheduled any more."""
        self._unwatch(unit)
        if self._waits.pop(unit, None) is not None:
            self._record(unit, None)

    def pod_gone(self, ordinal: int) -> None:
        """A pod uses no room any more."""
        for unit in self._units_of.pop(ordinal, ()):
            held = self._waits[unit]
            held.stayed.pop(ordinal, None)
            if held.left.pop(ordinal, None) is not None and not held.left:
                self._over[unit] = None

    def take_over(self) -> list[ObjectKey]:
        """Units whose last pod has gone since the last call."""
        over = list(self._over)
        self._over.clear()
        return over

    def rows(self) -> list[PreemptionWait]:
        """What a restart, or a replica, must know of each unit that waits or waited in vain."""
        return [
            PreemptionWait(unit, tuple(sorted(held.left)), held.until_us, tuple(sorted(held.stayed)))
            for unit, held in self._waits.items()
        ]

    @property
    def is_empty(self) -> bool:
        """Whether no unit waits, or waited for pods that stayed."""
        return not self._waits

    def is_nominating(self, unit: ObjectKey) -> bool:
        """Whether the unit has nodes in view."""
        held = self._waits.get(unit)
        return held is not None and bool(held.nominated)

    def units(self) -> list[ObjectKey]:
        """All units that are known here."""
        return list(self._waits)

    def nominated(self, unit: ObjectKey) -> list[ObjectKey]:
        """Pods of the unit that have, or had, a node in view."""
        return list(self._waits[unit].nominated)

    def left(self, unit: ObjectKey) -> frozenset[int]:
        """Pods that the unit still waits for."""
        held = self._waits.get(unit)
        return frozenset(held.left) if held is not None else frozenset()

    def stayed(self, unit: ObjectKey) -> dict[int, ObjectKey]:
        """Pods that the unit gave up waiting for, and that run still, by ordinal."""
        held = self._waits.get(unit)
        return dict(held.stayed) if held is not None else {}

    def overdue(self, now_us: int) -> list[ObjectKey]:
        """Units whose time is over before all pods have left."""
        return [unit for unit, held in self._waits.items() if held.left and held.until_us <= now_us]

    def next_due_us(self) -> int | None:
        """When `overdue` names a unit next."""
        return min((held.until_us for held in self._waits.values() if held.left), default=None)

    def _watch(self, unit: ObjectKey, held: _Wait) -> None:
        for ordinal in held.left | held.stayed:
            self._units_of.setdefault(ordinal, {})[unit] = None

    def _unwatch(self, unit: ObjectKey) -> None:
        held = self._waits.get(unit)
        for ordinal in held.left | held.stayed if held is not None else ():
            units = self._units_of[ordinal]
            units.pop(unit, None)
            if not units:
                del self._units_of[ordinal]


def promised_room(cluster: Cluster, priority: int, tree: GroupTree) -> PromisedRoom:
    """Nodes in view of pods of this priority or higher, other than the unit's own, and what is reserved for them."""
    kept = cluster.reservations.kept_from(cluster.state, cluster.feed, tree.key, priority)
    nominated = cluster.state.nominated
    if not nominated:
        return kept
    own = frozenset(ordinal for leaf in leaves(tree) for ordinal in leaf.pods.ids)
    pods = [
        pod
        for ordinal, pod in sorted(nominated.items())
        if ordinal not in own and (pod.spec.priority or 0) >= priority
    ]
    return PromisedRoom(
        (*(cluster.feed.signature_of(pod) for pod in pods), *kept.signatures),
        (*(pod.status.nominated_node_name for pod in pods), *kept.node_names),
    )


def earlier_preemption(cluster: Cluster, tree: GroupTree) -> EarlierPreemption:
    """What an earlier preemption of the unit with this tree left behind."""
    waits, nominated, unit = cluster.waits, cluster.state.nominated, tree.key
    if not waits.is_nominating(unit):
        stayed = frozenset(waits.stayed(unit))
        return EarlierPreemption(stayed=stayed) if stayed else _NOTHING_EARLIER
    pods = [ordinal for leaf in leaves(tree) for ordinal in leaf.pods.ids if ordinal in nominated]
    names = [nominated[ordinal].status.nominated_node_name for ordinal in pods]
    nodes = sorted(set(names))
    place = {name: at for at, name in enumerate(nodes)}
    return EarlierPreemption(
        Assignments(tuple(pods), tuple(nodes), tuple(place[name] for name in names)),
        is_waiting=bool(waits.left(unit)),
        stayed=frozenset(waits.stayed(unit)),
    )


def nominated_pods(cluster: Cluster) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """Every pod with a node in view, after its unit."""
    for pod in cluster.state.nominated.values():
        yield unit_of_pod(cluster.state, pod).key, pod.key


def clear_nominations(mutation: Mutation, unit: ObjectKey) -> None:
    """Take back what the unit has in view; others may have the room."""
    for key in mutation.cluster.waits.nominated(unit):
        pod = mutation.state.pod(key.namespace, key.name)
        if pod is not None and pod.status.nominated_node_name:
            mutation.set_pod_status(pod, mutation.pod_conditions.without_nomination(pod.status))
    mutation.note(EventKind.NOMINATION_CLEARED)


def settle_waits(mutation: Mutation) -> None:
    """Wake units whose victims are gone; end the waits, and the reservation, of those that cannot be scheduled now."""
    waits, queue, faults = mutation.cluster.waits, mutation.cluster.queue, mutation.cluster.layouts.faults
    for unit in waits.take_over():
        queue.victims_gone(unit)
    for unit in waits.units():
        row = queue.rows.get(unit)
        if row is not None and row.state is not UnitState.GATED and unit not in faults:
            continue
        if waits.is_nominating(unit):
            clear_nominations(mutation, unit)
        if row is None:
            waits.forget(unit)
        else:
            waits.end(unit)
    settle_reservation(mutation)


def end_waits(mutation: Mutation) -> None:
    """Give up all waits whose time is over. The units are tried again, with those pods in their way that stayed."""
    cluster = mutation.cluster
    for unit in cluster.waits.overdue(mutation.now_us):
        clear_nominations(mutation, unit)
        cluster.waits.give_up(unit)
        message = f"gave up its nominations: {stayed_message(cluster, unit)}"
        for group in list(subtree(mutation.state, unit)):
            tell_group(mutation, group, UNSCHEDULABLE, message)
        for pod in list(pods_of_unit(mutation.state, unit)):
            if standing(pod, mutation.state.scheduler_names) is Standing.PENDING:
                tell_pod(mutation, pod, UNSCHEDULABLE, message)
        cluster.queue.victims_gone(unit)


def stayed_message(cluster: Cluster, unit: ObjectKey) -> str:
    """Which pods did not leave in time for the unit; "" if none."""
    stayed = sorted(cluster.waits.stayed(unit).values())
    if not stayed:
        return ""
    named = ", ".join(str(key) for key in stayed[:_MOST_NAMED])
    more = f" and {len(stayed) - _MOST_NAMED} more" if len(stayed) > _MOST_NAMED else ""
    return f"{number_of(len(stayed), 'pod')} did not leave in time: {named}{more}"


def waiting_message(pods: int) -> str:
    """What a unit says while pods leave for it."""
    return f"waiting for preemption of {number_of(pods, 'pod')}"
