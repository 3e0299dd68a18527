"""One cluster in memory: objects, queue, pending structures, arrays, and what is written but not yet durable.

Everything here changes inside one step of the event loop and by way of a `Mutation`, so each revision is whole
wherever it is seen. The writer takes `take_writes` to the store; who answers a client waits for that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from muster.core.framework import Profile
from muster.engine.array_feed import ArrayFeed
from muster.engine.changes import Change
from muster.engine.cluster_state import ClusterState, Name, parent_key_of
from muster.engine.coming import ComingDecisions
from muster.engine.disruption_budgets import BudgetTable
from muster.engine.disruption_units import DisruptionTable, is_potential_victim
from muster.engine.failed_bindings import FailedBindings
from muster.engine.kept_records import KeptRecords
from muster.engine.large_calls import LargeCalls
from muster.engine.last_failures import LastFailures
from muster.engine.layouts import Layouts
from muster.engine.log_entries import LogEntry
from muster.engine.nominations import PreemptionWaits, nominated_pods
from muster.engine.ports import (
    ClusterWrites,
    DecisionRecord,
    FailedBinding,
    LoadedCluster,
    PendingGroup,
    PendingMember,
    PreemptionWait,
    QueuedUnit,
)
from muster.engine.queueing_hints import EventKind
from muster.engine.reservations import Reservations
from muster.engine.scheduling_queue import SchedulingQueue
from muster.engine.search_allowance import SearchAllowance
from muster.engine.telemetry_port import EngineTelemetry, NullTelemetry
from muster.model.disruption import PodDisruptionBudget
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import GROUP_KINDS, POD_DISRUPTION_BUDGET, PRIORITY_CLASS, ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.priority import PriorityClass
from muster.validation.admission import PriorityClasses, SpecMemo

if TYPE_CHECKING:
    from muster.engine.edits import Edits

_NOBODY = NullTelemetry()


class Cluster:
    """`token` is the fencing token of this process for the cluster.

    `profiles` by name is set by whoever runs its cycles.
    """

    def __init__(
        self,
        name: str,
        token: int,
        scheduler_names: frozenset[str],
        telemetry: EngineTelemetry = _NOBODY,
        *,
        created: bool = False,
    ) -> None:
        self.name = name
        self.token = token
        self.state = ClusterState(name, scheduler_names)
        self.feed = ArrayFeed()
        self.queue = SchedulingQueue(self._record_unit, telemetry)
        self.pending_groups: dict[ObjectKey, ObjectKey] = {}
        self.pending_members: dict[ObjectKey, ObjectKey] = {}
        self.waiting_leaves: dict[Name, ObjectKey] = {}
        self.last_decisions = KeptRecords()
        self.layouts = Layouts()
        self.disruption = DisruptionTable(self.state)
        self.budgets = BudgetTable(self.state.pods)
        self.waits = PreemptionWaits(self._record_wait)
        self.searches = SearchAllowance()
        self.failures = LastFailures()
        self.reservations = Reservations()
        self.profiles: Mapping[str, Profile] = {}
        self.failed_bindings = FailedBindings(self._record_failed_binding)
        self.leaving_until: dict[int, int] = {}
        self.large_calls = LargeCalls()
        self.coming = ComingDecisions()
        self.spec_memo = SpecMemo()
        self.priority_classes = PriorityClasses()
        self._created = created
        self._writes: ClusterWrites | None = None
        self._stored_units: set[ObjectKey] = set()

    def load(self, loaded: LoadedCluster) -> None:
        """Take over what the store holds."""
        self.state.revision = loaded.revision
        pods: list[Pod] = []
        for item in loaded.objects:
            if isinstance(item, Pod):
                pods.append(item)
                continue
            self.state.put(item.key, item)
            if isinstance(item, Node):
                self.feed.node_changed(None, item)
        self._load_pods(pods)
        for budget in self.state.objects[POD_DISRUPTION_BUDGET].values():
            if isinstance(budget, PodDisruptionBudget):
                self.budgets.put(budget)
        self.budgets.count()
        self.refresh_priority_classes()
        self.queue.load(loaded.units)
        self._stored_units.update(self.queue.rows)
        running = self.disruption.running | self.disruption.leaving
        self.waits.load(loaded.waits, nominated_pods(self), running)
        self.failed_bindings.load(loaded.failed_bindings)
        self.pending_groups = {row.key: row.missing for row in loaded.pending_groups}
        self.pending_members = {row.key: row.missing for row in loaded.pending_members}
        for row in loaded.pending_members:
            waiting = self.state.pod(row.key.namespace, row.key.name)
            if waiting is not None:
                self.waiting_leaves[waiting.namespace, waiting.group] = row.missing
        self._check_layouts()
        self.feed.flush()

    def _load_pods(self, pods: Sequence[Pod]) -> None:
        """All at once those that run and stay, which most do."""
        self.state.load_pods(pods)
        running: list[Pod] = []
        for pod in pods:
            if is_potential_victim(pod):
                running.append(pod)
            elif pod.node_name:
                self.feed.pod_changed(None, pod)
                self.disruption.pod_changed(None, pod)
                self.note_leaving(pod)
        self.feed.pods_bound(running)
        self.disruption.pods_bound(running)

    def _check_layouts(self) -> None:
        """Faults of trees are not stored: they follow from the objects."""
        for kind in GROUP_KINDS:
            for group in self.state.objects[kind].values():
                if isinstance(group, PodGroup | CompositePodGroup) and parent_key_of(group) is None:
                    self.layouts.check(self.state, group.key)

    def refresh_priority_classes(self) -> None:
        """Take the classes from the objects again, after one of them changed."""
        found = self.state.objects[PRIORITY_CLASS].values()
        self.priority_classes = PriorityClasses(each for each in found if isinstance(each, PriorityClass))

    def forget_signatures(self) -> None:
        """Give up kinds of pods that are no more, with what speaks of kinds by number. No unit may be in work."""
        if self.feed.forget_signatures():
            self.failures.forget_all()
            self.searches.forget_all()

    def events_happened(self, events: Collection[EventKind], edits: Edits, now_us: int) -> None:
        """Wake the units that one of the events of a revision, with these edits, may help."""
        if events:
            change = Change(edits, self.state, self.feed, self.profiles)
            self.queue.happened(events, now_us, change)

    def note_leaving(self, pod: Pod) -> None:
        """Remember when a leaving pod's grace ends (0: never by itself)."""
        if pod.is_leaving and pod.deletion_us is not None:
            self.leaving_until[pod.ordinal] = pod.deletion_us
        else:
            self.leaving_until.pop(pod.ordinal, None)

    def set_pending_group(self, key: ObjectKey, missing: ObjectKey | None) -> None:
        """The group's root is not there (or is, with None)."""
        if missing is None:
            if self.pending_groups.pop(key, None) is not None:
                writes = self.writes()
                writes.pending_group_puts.pop(key, None)
                writes.pending_group_removals.add(key)
        elif self.pending_groups.get(key) != missing:
            self.pending_groups[key] = missing
            writes = self.writes()
            writes.pending_group_removals.discard(key)
            writes.pending_group_puts[key] = PendingGroup(key, missing)

    def set_pending_member(self, key: ObjectKey, missing: ObjectKey | None) -> None:
        """The pod's group or root is not there (or is, with None)."""
        if missing is None:
            if self.pending_members.pop(key, None) is not None:
                writes = self.writes()
                writes.pending_member_puts.pop(key, None)
                writes.pending_member_removals.add(key)
        elif self.pending_members.get(key) != missing:
            self.pending_members[key] = missing
            writes = self.writes()
            writes.pending_member_removals.discard(key)
            writes.pending_member_puts[key] = PendingMember(key, missing)

    def pending_group_rows(self) -> list[PendingGroup]:
        """The groups whose root is not there."""
        return [PendingGroup(key, missing) for key, missing in self.pending_groups.items()]

    def pending_member_rows(self) -> list[PendingMember]:
        """The pods whose group or root is not there."""
        return [PendingMember(key, missing) for key, missing in self.pending_members.items()]

    def _record_failed_binding(self, pod: int, node_name: str, until_us: int | None) -> None:
        writes, key = self.writes(), (pod, node_name)
        if until_us is None:
            writes.failed_binding_puts.pop(key, None)
            writes.failed_binding_removals.add(key)
        else:
            writes.failed_binding_removals.discard(key)
            writes.failed_binding_puts[key] = FailedBinding(pod, node_name, until_us)

    def append(self, entry: LogEntry) -> None:
        """Add a finished revision to what goes to the store."""
        writes = self.writes()
        writes.entries.append(entry)
        writes.revision = entry.revision

    def writes(self) -> ClusterWrites:
        """The writes of the transaction that is being filled."""
        if self._writes is None:
            self._writes = ClusterWrites(self.name, self.token, self.state.revision, created=self._created)
            self._created = False
        return self._writes

    def take_writes(self) -> ClusterWrites | None:
        """Hand over all writes since the last call; None if there are none."""
        taken, self._writes = self._writes, None
        if taken is not None:
            self.coming.taken()
            taken.revision = self.state.revision
            self._stored_units.difference_update(taken.unit_removals)
            self._stored_units.update(taken.unit_puts)
        return taken

    def is_new(self, key: ObjectKey) -> bool:
        """Whether the next transaction will hold the object."""
        return self._writes is not None and key in self._writes.puts

    @property
    def has_writes(self) -> bool:
        return self._writes is not None

    @property
    def open_revisions(self) -> int:
        """Revisions that the next transaction will hold."""
        return len(self._writes.entries) if self._writes is not None else 0

    def remember(self, record: DecisionRecord) -> None:
        """Keep the last decision of the units that were decided last; the store has the others."""
        self.last_decisions.add(record)

    def _record_wait(self, key: ObjectKey, wait: PreemptionWait | None) -> None:
        writes = self.writes()
        if wait is None:
            writes.wait_puts.pop(key, None)
            writes.wait_removals.add(key)
        else:
            writes.wait_removals.discard(key)
            writes.wait_puts[key] = wait

    def _record_unit(self, key: ObjectKey, row: QueuedUnit | None) -> None:
        writes = self.writes()
        if row is None:
            writes.unit_puts.pop(key, None)
            # Most units come and go between two transactions: the store never hears of them.
            if key in self._stored_units:
                writes.unit_removals.add(key)
        else:
            writes.unit_removals.discard(key)
            writes.unit_puts[key] = row
