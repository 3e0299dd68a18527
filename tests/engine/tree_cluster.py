"""A cluster in memory whose cycles a test runs one by one, and the words for trees: groups, templates, what they say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision, DecisionCode
from muster.core.observer import NullObserver
from muster.core.tree import Unit
from muster.engine.api import DeleteCall, DeleteRef
from muster.engine.binder import commit_decision
from muster.engine.deletion import delete, end_grace
from muster.engine.eviction import Eviction
from muster.engine.mutation import Mutation
from muster.engine.nominations import end_waits
from muster.engine.ports import DecisionRecord, LoadedCluster, PreemptionWait, UnitState
from muster.engine.unit_faults import fault_of
from muster.engine.units import build_unit
from muster.model.group import (
    AllDisruption,
    AnyGroup,
    BasicPolicy,
    CompositePodGroup,
    DisruptionMode,
    GangPolicy,
    GroupSpec,
    PodGroup,
    SchedulingPolicy,
    WorkloadReference,
)
from muster.model.meta import KINDS, Condition, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import POD_SCHEDULED, Container, Pod, PodSpec, Resources
from muster.model.workload import GroupTemplate, Workload, WorkloadSpec
from muster.plugins.profile import default_profile
from tests.engine.small_cluster import SmallCluster

NAMESPACE = "default"
PROFILE = default_profile()


class TreeCluster(SmallCluster):
    """`apply` and `delete` make a revision each; `cycle` decides the next active unit."""

    _made = 0
    eviction = Eviction()

    def apply(self, *objects: ClusterObject) -> None:
        def put(mutation: Mutation) -> None:
            for each in objects:
                mutation.put(self._created(each, mutation))

        self.change(put)

    def delete(self, *objects: ClusterObject, force: bool = False) -> None:
        refs = [DeleteRef(each.key) for each in objects]
        call = DeleteCall(cluster="default", refs=refs, force=force)
        self.change(lambda mutation: delete(mutation, call, clients_evict=False))

    def restarted(self) -> TreeCluster:
        """The cluster as a process that starts finds it in its store."""
        again = TreeCluster()
        again.now_us = self.now_us
        again.eviction = self.eviction
        again.cluster.load(self.stored())
        again.cluster.writes().wait_puts.update((wait.key, wait) for wait in self.stored_waits())
        return again

    def stored(self) -> LoadedCluster:
        """What the store would hold if all were durable; a unit in flight is active there."""
        cluster = self.cluster
        return LoadedCluster(
            name=cluster.name,
            revision=cluster.state.revision,
            compacted_revision=0,
            objects=[item for kind in KINDS for item in cluster.state.objects[kind].values()],
            units=[
                replace(row, state=UnitState.ACTIVE) if row.state is UnitState.IN_FLIGHT else row
                for row in cluster.queue.in_order()
            ],
            pending_groups=cluster.pending_group_rows(),
            pending_members=cluster.pending_member_rows(),
            waits=self.stored_waits(),
            failed_bindings=cluster.failed_bindings.rows(),
        )

    def stored_waits(self) -> list[PreemptionWait]:
        """What the store holds of waits after all that was written."""
        writes = self.cluster.writes()
        return [wait for key, wait in writes.wait_puts.items() if key not in writes.wait_removals]

    def cycle(self) -> Decision | None:
        """The decision on the next active unit, committed; None if no unit is active."""
        row = self.cluster.queue.pop()
        if row is None:
            return None
        unit, decision = self.decided(row.key)
        self.commit(unit, decision)
        return decision

    def decided(self, key: ObjectKey) -> tuple[Unit, Decision]:
        """The unit as it is now, and what is decided for it; nothing is committed."""
        cluster = self.cluster
        unit = build_unit(cluster, key)
        fault = fault_of(cluster.state, cluster.layouts, key)
        if fault is not None:
            return unit, fault
        decision = decide_and_assume(cluster.feed.flush(), unit, PROFILE, NullObserver())
        if not decision.asks_for_victims:
            return unit, decision
        victims = cluster.disruption.below(unit.priority, cluster.budgets)
        unit = replace(unit, victims=victims, searched=decision.search)
        return unit, decide_and_assume(cluster.feed.flush(), unit, PROFILE, NullObserver())

    def commit(self, unit: Unit, decision: Decision) -> DecisionRecord:
        record = DecisionRecord("", 0, self.cluster.state.revision, decision)
        return commit_decision(self.cluster, unit, record, Mutation(self.cluster, self.now_us), self.eviction)

    def later(self, seconds: float) -> None:
        """Time passes: graces and waits end, and units return from their rest."""
        self.now_us += int(seconds * 1_000_000)
        self.change(lambda mutation: end_grace(mutation, clients_evict=self.eviction.by_clients))
        self.change(end_waits)
        self.cluster.queue.due(self.now_us)

    def cycles(self, most: int = 50) -> list[DecisionCode]:
        """Decide until no unit is active; more than `most` cycles are one too many."""
        codes: list[DecisionCode] = []
        while (decision := self.cycle()) is not None:
            codes.append(decision.code)
            assert len(codes) <= most, "the queue does not come to rest"
        return codes

    def state_of(self, unit: ClusterObject) -> UnitState | None:
        row = self.cluster.queue.get(unit.key)
        return row.state if row is not None else None

    def says(self, item: ClusterObject) -> tuple[str, str, str]:
        """Status, reason and message of the condition that tells whether the object is scheduled."""
        found = self.get(item)
        if isinstance(found, Pod):
            return told(found.status.conditions)
        assert isinstance(found, PodGroup | CompositePodGroup)
        return told(found.conditions)

    def bound(self) -> set[str]:
        pods = self.cluster.state.objects["Pod"].values()
        return {pod.name for pod in pods if isinstance(pod, Pod) and pod.node_name}

    def _created(self, item: ClusterObject, mutation: Mutation) -> ClusterObject:
        stored = self.cluster.state.get(item.key)
        if stored is not None:
            return replace(item, uid=stored.uid, ordinal=stored.ordinal, resource_version=mutation.revision)
        TreeCluster._made += 1
        made = TreeCluster._made
        return replace(item, uid=f"uid-{made}", ordinal=made, resource_version=mutation.revision)


def told(conditions: Iterable[Condition]) -> tuple[str, str, str]:
    for each in conditions:
        if each.type == POD_SCHEDULED or each.type.endswith("InitiallyScheduled"):
            return each.status, each.reason, each.message
    return "", "", ""


def node(name: str, *, cpu: int = 8, labels: dict[str, str] | None = None) -> Node:
    return Node(name=name, labels=labels or {}, allocatable={"cpu": str(cpu), "pods": "110"})


def pods(group: AnyGroup, count: int, *, first: int = 0, priority: int = 0, on: str = "") -> list[Pod]:
    """Pods of one core each, named after their group."""
    spec = PodSpec(
        scheduler_name="default-scheduler",
        priority=priority,
        containers=(Container(resources=Resources(requests={"cpu": "1"})),),
    )
    return [
        Pod(name=f"{group.name}-{i}", namespace=NAMESPACE, group=group.name, spec=spec, node_name=on)
        for i in range(first, first + count)
    ]


class GroupFields(TypedDict, total=False):
    """What a group may have beside its policy; the template is `t-` and its name unless it is given."""

    parent: AnyGroup | str
    workload: str
    template: str
    priority: int
    whole: bool
    same: str


def leaf(name: str, minimum: int | None = None, **fields: Unpack[GroupFields]) -> PodGroup:
    """A PodGroup: a gang of `minimum`, or basic without one."""
    return PodGroup(name=name, namespace=NAMESPACE, spec=_spec(name, minimum, **fields))


def composite(name: str, minimum: int | None = None, **fields: Unpack[GroupFields]) -> CompositePodGroup:
    """A CompositePodGroup: a gang of `minimum` groups, or basic without one."""
    return CompositePodGroup(name=name, namespace=NAMESPACE, spec=_spec(name, minimum, **fields))


def _spec(
    name: str,
    minimum: int | None,
    *,
    parent: AnyGroup | str = "",
    workload: str = "wl",
    template: str = "",
    priority: int = 0,
    whole: bool = False,
    same: str = "",
) -> GroupSpec:
    return GroupSpec(
        parent_composite_pod_group_name=parent if isinstance(parent, str) else parent.name,
        workload_ref=WorkloadReference(workload, template or f"t-{name}") if workload else None,
        scheduling_policy=SchedulingPolicy(basic=BasicPolicy())
        if minimum is None
        else SchedulingPolicy(gang=GangPolicy(minimum)),
        topology=(same,) if same else (),
        disruption_mode=DisruptionMode(all=AllDisruption()) if whole else None,
        priority=priority,
    )


def workload(
    name: str, *, composites: tuple[GroupTemplate, ...] = (), leaves: tuple[GroupTemplate, ...] = ()
) -> Workload:
    spec = WorkloadSpec(composite_pod_group_templates=composites, pod_group_templates=leaves)
    return Workload(name=name, namespace=NAMESPACE, spec=spec)


def template(
    name: str, *, composites: tuple[GroupTemplate, ...] = (), leaves: tuple[GroupTemplate, ...] = ()
) -> GroupTemplate:
    return GroupTemplate(name=name, composite_pod_group_templates=composites, pod_group_templates=leaves)


def with_minimum(group: PodGroup | CompositePodGroup, minimum: int) -> PodGroup | CompositePodGroup:
    spec = replace(group.spec, scheduling_policy=SchedulingPolicy(gang=GangPolicy(minimum)))
    return replace(group, spec=spec)
