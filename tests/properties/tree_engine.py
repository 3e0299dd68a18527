"""A real engine on a real store, of which every commit is judged while its state is the commit's own.

What must hold is written down here a second time, from objects alone, so that it does not share the engine's mistakes.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from muster.core.decision import GroupResult, Status
from muster.engine.api import ApplyCall, DeleteCall, DeleteRef, PodReport, ReportCall
from muster.engine.cluster_service import ClusterService
from muster.engine.cluster_state import ClusterState
from muster.engine.engine import Engine
from muster.engine.errors import Refusal
from muster.engine.ports import DecisionRecord, QueuedUnit, UnitState
from muster.engine.registry import EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import KINDS, POD, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.store.store import SqlStore
from tests.engine.held_pool import HeldPool
from tests.engine.tree_cluster import NAMESPACE, PROFILE
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds

MOST_STEPS = 2_000


class TreeEngine:
    """`faults` holds what was wrong with a commit; nothing should be in it."""

    def __init__(self, folder: str) -> None:
        self._url = f"sqlite:///{Path(folder) / 'muster.db'}"
        self.clock = FakeClock()
        self.faults: list[str] = []
        self._ids = FakeIds()
        self._engine: Engine | None = None

    @property
    def service(self) -> ClusterService:
        assert self._engine is not None
        return self._engine._registry.services["default"]

    @property
    def state(self) -> ClusterState:
        return self.service.cluster.state

    async def start(self) -> None:
        profiles = {PROFILE.name: PROFILE}
        self._engine = Engine(
            self.new_store(), self.clock, self._ids, profiles, NullTelemetry(), EngineOptions(workers=1)
        )
        await self._engine.start()
        service = self.service
        decided = service._decided

        def judge(record: DecisionRecord) -> None:
            self.faults += committed_faults(self.state, record)
            decided(record)

        # Those of a cluster that is loaded again are judged as well.
        service.cycles._decided = service._decided = judge  # type: ignore[method-assign]

    def new_store(self) -> SqlStore:
        return SqlStore(self._url)

    async def stop(self) -> None:
        assert self._engine is not None
        self.pool.answer()
        draining = asyncio.create_task(self._engine.drain())
        while not draining.done():
            self.pool.answer()
            await asyncio.sleep(0)
        await draining

    @property
    def pool(self) -> HeldPool:
        pool = self.service._tools.pool
        assert isinstance(pool, HeldPool)
        return pool

    async def restart(self) -> None:
        """Stop, start again on the same store, and compare."""
        before_state = self.state
        await self.stop()
        before = _everything(before_state), _rows(self.service)
        await self.start()
        assert (_everything(self.state), _rows(self.service)) == before

    async def apply(self, objects: Iterable[ClusterObject]) -> None:
        sent = list(objects)
        call = ApplyCall("default", sent, [f"objects[{i}]." for i in range(len(sent))])
        await self._called(self._running.apply(call))

    async def delete(self, keys: Iterable[ObjectKey], *, force: bool) -> None:
        refs = [DeleteRef(key) for key in keys]
        await self._called(self._running.delete(DeleteCall("default", refs, allow_missing=True, force=force)))

    async def report(self, report: PodReport) -> None:
        await self._called(self._running.report_pods(ReportCall("default", [report])))

    async def step(self, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)

    async def rest(self) -> None:
        """Until no unit is active or in flight; backoffs end at once."""
        rows: list[QueuedUnit] = []
        for _ in range(MOST_STEPS):
            self.pool.answer()
            await asyncio.sleep(0)
            rows = self.service.cluster.queue.in_order()
            if any(row.state is UnitState.BACKOFF for row in rows):
                self.clock.advance(61)
                self.service._tick()
            elif not any(row.state in (UnitState.ACTIVE, UnitState.IN_FLIGHT) for row in rows):
                return
        raise AssertionError(f"the queue does not come to rest: {rows}")

    @property
    def _running(self) -> Engine:
        assert self._engine is not None
        return self._engine

    async def _called(self, call: Awaitable[object]) -> None:
        with suppress(Refusal):
            await call


def _everything(state: ClusterState) -> dict[ObjectKey, ClusterObject]:
    return {item.key: item for kind in KINDS for item in state.objects[kind].values()}


def _rows(service: ClusterService) -> object:
    cluster = service.cluster
    return cluster.queue.rows, cluster.pending_groups, cluster.pending_members


def committed_faults(state: ClusterState, record: DecisionRecord) -> Iterator[str]:
    """What is wrong with a commit, seen from the objects just after it."""
    decision = record.decision
    bound = set(record.assignments.pods)
    result = decision.result
    if bound and decision.unit.kind != POD:
        root = state.group(decision.unit)
        if root is None or root.spec.parent_composite_pod_group_name:
            yield f"{decision.unit} is no root, yet {sorted(bound)} were bound"
        elif broken(state, decision.unit):
            yield f"{decision.unit} has a broken layout, yet {sorted(bound)} were bound"
        elif not holds(state, root):
            yield f"{decision.unit} does not hold, yet {sorted(bound)} were bound"
        yield from _partial(state, bound)
    if result is not None:
        yield from _unkept(state, result)
    yield from overcommitted(state)


def _partial(state: ClusterState, bound: set[str]) -> Iterator[str]:
    """Every group on the way from a new pod to its root holds, and none of them is being deleted."""
    for name in bound:
        pod = state.pod(NAMESPACE, name)
        assert pod is not None
        for group in ancestors(state, pod):
            if not holds(state, group):
                yield f"{name} was bound, but {group.key} does not hold"
            if group.deletion_us is not None:
                yield f"{name} was bound, but {group.key} is being deleted"


def _unkept(state: ClusterState, result: GroupResult) -> Iterator[str]:
    if result.status is not Status.SUCCESS or result.key.kind == POD:
        return
    group = state.group(result.key)
    if group is None or not holds(state, group):
        yield f"{result.key} was reported a success, but does not hold"
    for child in result.children:
        yield from _unkept(state, child)


def overcommitted(state: ClusterState) -> Iterator[str]:
    used: Counter[str] = Counter()
    for pod in all_pods(state):
        if pod.node_name and not pod.is_terminal:
            used[pod.node_name] += 1
    for node in state.objects["Node"].values():
        assert isinstance(node, Node)
        if used[node.name] > int(node.allocatable["cpu"]):
            yield f"{node.name} has {used[node.name]} pods"


def all_pods(state: ClusterState) -> Iterator[Pod]:
    for pod in state.objects[POD].values():
        assert isinstance(pod, Pod)
        yield pod


def all_groups(state: ClusterState) -> Iterator[AnyGroup]:
    for kind in ("CompositePodGroup", "PodGroup"):
        for group in state.objects[kind].values():
            assert isinstance(group, PodGroup | CompositePodGroup)
            yield group


def children_of(state: ClusterState, group: AnyGroup) -> list[AnyGroup]:
    if isinstance(group, PodGroup):
        return []
    return [each for each in all_groups(state) if each.spec.parent_composite_pod_group_name == group.name]


def below(state: ClusterState, group: AnyGroup) -> list[AnyGroup]:
    return [group, *(each for child in children_of(state, group) for each in below(state, child))]


def members_of(state: ClusterState, group: AnyGroup) -> list[Pod]:
    return [pod for pod in all_pods(state) if pod.group == group.name] if isinstance(group, PodGroup) else []


def ancestors(state: ClusterState, pod: Pod) -> Iterator[AnyGroup]:
    group = state.group(ObjectKey("PodGroup", NAMESPACE, pod.group))
    while group is not None:
        yield group
        parent = group.spec.parent_composite_pod_group_name
        group = state.group(ObjectKey("CompositePodGroup", NAMESPACE, parent)) if parent else None


def root_of(state: ClusterState, group: AnyGroup) -> tuple[str, AnyGroup | None]:
    """The name that climbing ended at, and the root if there is one."""
    seen: set[str] = set()
    while (parent := group.spec.parent_composite_pod_group_name) and parent not in seen:
        seen.add(parent)
        above = state.group(ObjectKey("CompositePodGroup", NAMESPACE, parent))
        if above is None:
            return parent, None
        group = above
    return ("", None) if parent else (group.name, group)


def broken(state: ClusterState, root: ObjectKey) -> bool:
    """Whether groups of the tree refer to different Workloads, the one fault of layout that these trees may have."""
    top = state.group(root)
    assert top is not None
    references = {group.spec.workload_ref for group in below(state, top)}
    return len({each.workload_name if each is not None else "" for each in references}) > 1


def holds(state: ClusterState, group: AnyGroup) -> bool:
    """Whether what is bound, or finished in a tree that was scheduled, meets the group's minimum."""
    minimum = group.spec.required_minimum
    if isinstance(group, PodGroup):
        return held_pods(state, group) >= minimum
    return sum(holds(state, child) for child in children_of(state, group)) >= minimum


def held_pods(state: ClusterState, group: PodGroup) -> int:
    """How many pods of a leaf count for its minimum without being placed."""
    return sum(_counts(state, group, pod) for pod in members_of(state, group))


def _counts(state: ClusterState, group: AnyGroup, pod: Pod) -> bool:
    if pod.status.phase == "Succeeded":
        _, root = root_of(state, group)
        return root is not None and is_scheduled(root)
    return bool(pod.node_name) and pod.is_member


def is_scheduled(group: AnyGroup) -> bool:
    return any(
        each.status == "True" and each.type.endswith("InitiallyScheduled") for each in group.conditions
    )


def is_admissible(state: ClusterState, group: AnyGroup) -> bool:
    if group.deletion_us is not None:
        return False
    minimum = group.spec.required_minimum
    if isinstance(group, PodGroup):
        held = held_pods(state, group)
        waiting = [pod for pod in members_of(state, group) if pod.is_member and not pod.node_name]
        is_held_back = held < minimum and any(pod.gates for pod in waiting)
        return held + len(waiting) >= minimum and not is_held_back
    return sum(is_admissible(state, child) for child in children_of(state, group)) >= minimum


def fresh_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="muster-trees-")
