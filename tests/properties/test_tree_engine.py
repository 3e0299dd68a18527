"""Trees that come, change and go while workers decide about them: nothing of a tree is ever bound in part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.api import BindingFailed, PhaseChanged, PodReport, Removed
from muster.engine.cluster_state import ClusterState
from muster.engine.ports import UnitState
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import POD, ObjectKey
from muster.model.objects import ClusterObject
from tests.engine.held_pool import HeldPool
from tests.engine.tree_cluster import NAMESPACE, composite, leaf, node, pods, with_minimum
from tests.properties.tree_engine import (
    TreeEngine,
    all_groups,
    all_pods,
    below,
    broken,
    fresh_folder,
    is_admissible,
    is_scheduled,
    members_of,
    overcommitted,
    root_of,
)


@dataclass(frozen=True)
class Act:
    """One thing that happens; `name` tells a failed story."""

    name: str
    act: Callable[[TreeEngine], Coroutine[Any, Any, None]]

    def __repr__(self) -> str:
        return self.name


NODES = ("n-0", "n-1", "n-2")
COMPOSITES = {"root": "", "mid": "root", "ring-1": "ring-2", "ring-2": "ring-1"}
LEAVES = {"a": "root", "b": "mid", "c": "mid", "odd": "mid", "low": "ring-1", "lone": ""}
POD_NAMES = tuple(f"{name}-{i}" for name in LEAVES for i in range(3))
minimums = st.sampled_from([None, 1, 1, 2, 2, 3])


def groups_of(draw: st.DrawFn) -> dict[str, ClusterObject]:
    """The groups of one example: the same names and parents, other policies."""
    composites = {name: composite(name, draw(minimums), parent=parent) for name, parent in COMPOSITES.items()}
    leaves = {
        name: leaf(name, draw(minimums), parent=parent, workload="another" if name == "odd" else "wl")
        for name, parent in LEAVES.items()
    }
    return {**composites, **leaves}


def key_of(name: str) -> ObjectKey:
    kind = "CompositePodGroup" if name in COMPOSITES else "PodGroup" if name in LEAVES else POD
    return ObjectKey(kind, NAMESPACE, name) if name not in NODES else ObjectKey("Node", "", name)


@st.composite
def stories(draw: st.DrawFn) -> list[Act]:
    """What happens: objects come in any order and portions, change and go; workers answer, processes restart."""
    groups = groups_of(draw)
    objects: dict[str, ClusterObject] = dict(groups)
    objects |= {name: node(name, cpu=draw(st.integers(1, 5))) for name in NODES}
    for name in LEAVES:
        group = groups[name]
        assert isinstance(group, PodGroup)
        objects |= {pod.name: pod for pod in pods(group, 3)}
    usual = [name for name in objects if name != "odd" or draw(st.integers(0, 3)) == 0]
    arrivals = draw(st.permutations(usual))
    acts: list[Act] = []
    while arrivals:
        portion, arrivals = arrivals[: (size := draw(st.integers(1, 14)))], arrivals[size:]
        acts.append(_applying([objects[name] for name in portion]))
        acts += draw(st.lists(events(groups, objects), max_size=2))
    return acts + draw(st.lists(events(groups, objects), max_size=8))


def _applying(sent: list[ClusterObject]) -> Act:
    return Act(f"apply {[each.name for each in sent]}", lambda engine: engine.apply(sent))


@st.composite
def events(draw: st.DrawFn, groups: dict[str, ClusterObject], objects: dict[str, ClusterObject]) -> Act:
    names = draw(st.lists(st.sampled_from(sorted(objects)), min_size=1, max_size=4, unique=True))
    pod, where = draw(st.sampled_from(POD_NAMES)), draw(st.sampled_from(NODES))
    group, minimum = groups[draw(st.sampled_from(sorted(groups)))], draw(st.integers(1, 3))
    force = draw(st.booleans())
    assert isinstance(group, AnyGroup)
    choices = [
        Act(f"delete {names} {force=}", lambda engine: engine.delete(map(key_of, names), force=force)),
        _applying([objects[name] for name in names]),
        _applying([with_minimum(group, minimum)]),
        Act(f"report {pod} {where} {minimum}", lambda engine: reported(engine, pod, where, minimum)),
        Act(f"step {minimum}", lambda engine: engine.step(minimum)),
        Act("answer", answered),
        Act("rest", TreeEngine.rest),
        Act("restart", TreeEngine.restart),
    ]
    return draw(st.sampled_from(choices))


async def reported(engine: TreeEngine, pod: str, where: str, kind: int) -> None:
    """A report of one kind or another about the pod where it is."""
    stored = engine.state.pod(NAMESPACE, pod)
    on = stored.node_name if stored is not None else ""
    report: BindingFailed | PhaseChanged | Removed = Removed()
    if kind == 1:
        report = BindingFailed(on or where, "NoLuck", "no luck")
    elif kind == 2:
        report = PhaseChanged("Succeeded" if where == NODES[0] else "Failed", "", "")
    await engine.report(PodReport(NAMESPACE, pod, "", report))


async def answered(engine: TreeEngine) -> None:
    engine.pool.answer()
    await engine.step(1)


async def told(story: list[Act], folder: str) -> None:
    engine = TreeEngine(folder)
    await engine.start()
    for act in story:
        await act.act(engine)
        assert engine.faults == []
    await engine.rest()
    faults = [
        *engine.faults,
        *overcommitted(engine.state),
        *queue_faults(engine),
        *condition_faults(engine.state),
    ]
    await engine.restart()
    await engine.stop()
    assert faults == []


def queue_faults(engine: TreeEngine) -> Iterator[str]:
    """Where units and pending objects are, and where they belong, once nothing is in work."""
    state, cluster = engine.state, engine.service.cluster
    rows = {key: row.state for key, row in cluster.queue.rows.items()}
    pending = {group.key for group in all_groups(state) if root_of(state, group)[1] is None}
    if set(cluster.pending_groups) != pending:
        yield f"pending groups are {set(cluster.pending_groups)}, not {pending}"
    waiting = {pod.key for pod in all_pods(state) if _waits(pod) and _unit_of(state, pod.group) is None}
    if set(cluster.pending_members) != waiting:
        yield f"pending members are {set(cluster.pending_members)}, not {waiting}"
    expected = {}
    for pod in all_pods(state):
        root = _unit_of(state, pod.group)
        if _waits(pod) and root is not None:
            is_ready = broken(state, root.key) or is_admissible(state, root)
            expected[root.key] = UnitState.UNSCHEDULABLE if is_ready else UnitState.GATED
    if rows != expected:
        yield f"the queue is {rows}, not {expected}"


def _waits(pod: Any) -> bool:
    return bool(pod.is_member and not pod.node_name)


def _unit_of(state: ClusterState, group: str) -> AnyGroup | None:
    found = state.group(ObjectKey("PodGroup", NAMESPACE, group))
    return root_of(state, found)[1] if found is not None else None


def condition_faults(state: ClusterState) -> Iterator[str]:
    """Every group that waits says so, those of a broken tree call it Invalid, and so does every pod that waits."""
    for group in all_groups(state):
        name, root = root_of(state, group)
        said = [each for each in group.conditions if each.type.endswith("InitiallyScheduled")]
        if root is None:
            wrong = not is_scheduled(group) and [c.reason for c in said] != [
                "Unschedulable" if name else "Invalid"
            ]
        elif broken(state, root.key):
            wrong = not is_scheduled(group) and [c.reason for c in said] != ["Invalid"]
        else:
            wrong = any(c.reason == "Invalid" for c in said)
            waits = any(_waits(pod) for each in below(state, root) for pod in members_of(state, each))
            wrong = wrong or (waits and not said)
        if wrong:
            yield f"{group.key} says {said}"


@pytest.fixture
def held_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All units with more than one pod go to workers, which answer when they are told."""
    monkeypatch.setattr("muster.engine.registry.WorkerPool", HeldPool)
    monkeypatch.setattr("muster.engine.deciding.INLINE_PODS", 0)


@pytest.mark.usefixtures("held_workers")
@given(story=stories())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
def test_no_decision_binds_part_of_a_tree_whatever_arrives_goes_or_restarts_around_it(
    story: list[Act],
) -> None:
    with fresh_folder() as folder:
        asyncio.run(told(story, folder))
