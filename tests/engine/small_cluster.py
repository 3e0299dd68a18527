"""A real cluster in memory for tests of its revisions: objects as Apply would have stored them, at times that a test names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muster.engine.cluster import Cluster
from muster.engine.mutation import Mutation
from muster.model.group import (
    AnyGroup,
    BasicPolicy,
    CompositePodGroup,
    GangPolicy,
    GroupSpec,
    PodGroup,
    SchedulingPolicy,
)
from muster.model.meta import POD, Condition, ObjectKey, OwnerReference
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import DISRUPTION_TARGET, Pod, PodSpec, PodStatus

NOW_US = 1_000_000_000
SECOND_US = 1_000_000
WAITING = PodStatus()
EVICTED = PodStatus(phase="Running", conditions=(Condition(DISRUPTION_TARGET, "True"),))

Answer = TypeVar("Answer")


class SmallCluster:
    """`change` makes one revision at `now_us`, which a test moves."""

    def __init__(self, *objects: ClusterObject) -> None:
        self.cluster = Cluster("default", 1, frozenset({"default-scheduler"}))
        self.now_us = NOW_US
        mutation = Mutation(self.cluster, self.now_us)
        for each in objects:
            mutation.put(each)
        mutation.finish()

    def change(self, act: Callable[[Mutation], Answer]) -> Answer:
        mutation = Mutation(self.cluster, self.now_us)
        answer = act(mutation)
        mutation.finish()
        return answer

    def names(self, kind: str = POD) -> set[str]:
        return {name for _, name in self.cluster.state.objects[kind]}

    def pod(self, name: str) -> Pod:
        found = self.cluster.state.pod("default", name)
        assert found is not None, name
        return found

    def get(self, item: ClusterObject) -> ClusterObject:
        found = self.cluster.state.get(item.key)
        assert found is not None, item.key
        return found

    def has(self, item: ClusterObject) -> bool:
        return self.cluster.state.get(item.key) is not None


class _Order:
    """Ordinals in the order of making."""

    last = 0

    @classmethod
    def next(cls) -> int:
        cls.last += 1
        return cls.last


def pod(
    name: str,
    *,
    group: str = "",
    on: str = "",
    grace: int | None = None,
    status: PodStatus = WAITING,
    owners: tuple[OwnerReference, ...] = (),
    finalizers: tuple[str, ...] = (),
) -> Pod:
    return Pod(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        resource_version=1,
        ordinal=_Order.next(),
        spec=PodSpec(scheduler_name="default-scheduler", termination_grace_period_seconds=grace, priority=0),
        group=group,
        node_name=on,
        status=status,
        owner_references=owners,
        finalizers=finalizers,
    )


def pod_group(
    name: str, *, minimum: int = 1, parent: str = "", owners: tuple[OwnerReference, ...] = ()
) -> PodGroup:
    return PodGroup(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        resource_version=1,
        ordinal=_Order.next(),
        spec=GroupSpec(
            parent_composite_pod_group_name=parent,
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(minimum)),
            priority=0,
        ),
        owner_references=owners,
    )


def composite(name: str, *, parent: str = "") -> CompositePodGroup:
    return CompositePodGroup(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        resource_version=1,
        ordinal=_Order.next(),
        spec=GroupSpec(
            parent_composite_pod_group_name=parent,
            scheduling_policy=SchedulingPolicy(basic=BasicPolicy()),
            priority=0,
        ),
    )


def node(name: str, *, finalizers: tuple[str, ...] = ()) -> Node:
    return Node(
        name=name,
        uid=f"uid-{name}",
        resource_version=1,
        ordinal=_Order.next(),
        allocatable={"cpu": "8", "pods": "10"},
        finalizers=finalizers,
    )


def owned_by(owner: Pod | AnyGroup | ObjectKey, *, blocking: bool = False) -> OwnerReference:
    key = owner if isinstance(owner, ObjectKey) else owner.key
    return OwnerReference(kind=key.kind, name=key.name, uid=f"uid-{key.name}", block_owner_deletion=blocking)
