"""Whatever passes through, each table of the store holds a bounded number of rows, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from operator import or_

import pytest
from sqlalchemy import create_engine, func, select

from muster.engine.api import BindingFailed, PhaseChanged, PodReport, ReportCall, RequestIdentity
from muster.engine.cluster_service import ClusterService
from muster.engine.errors import Refusal
from muster.engine.forgetting import VALUES_SECONDS
from muster.engine.mutation import Mutation
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.reports import report
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.watch_hub import DecisionFeed, RevisionFeed
from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import LabelSelector
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.model.priority import PriorityClass
from muster.store.store import SqlStore
from muster.store.tables import metadata
from tests.engine.container_sizes import sizes
from tests.engine.started_registry import putting
from tests.engine.tree_cluster import PROFILE, composite, leaf, node, pods, workload
from tests.fakes.clock import FakeClock

KEPT = {
    "clusters": 1,
    "leases": 1,
    "nodes": 1,
    "revisions": 0,
    "decisions": 0,
    "assignments": 0,
    "requests": 0,
}
BOUNDS = {
    "muster.engine.kept_records.MOST_UNITS": 4,
    "muster.engine.array_feed.LEAST_SIGNATURES": 8,
    "muster.core.signature.SignatureTable._MOST_IDENTITIES": 16,
    "muster.core.local_keys._MOST_ROWS": 3,
    "muster.core.change_log._KEPT": 16,
    "muster.core.label_columns.LabelColumns._SLACK": 0.5,
}
"""How many things that are gone are kept at most: so few here that a short run shows whether they have an end."""

OPTIONS = EngineOptions(
    workers=0, log_seconds=60, decision_seconds=60, request_seconds=60, finished_seconds=60
)


async def test_after_much_has_come_and_gone_every_table_holds_what_is_there_and_no_more(
    store_url: str, clock: FakeClock
) -> None:
    registry = ClusterRegistry(SqlStore(store_url), clock, {PROFILE.name: PROFILE}, NullTelemetry(), OPTIONS)
    await registry.start()
    service = registry.services["default"]
    apply(service, [node("stays", cpu=8)])

    counts, during = [], dict[str, int]()
    for turn in range(3):
        during = await passed_through(service, f"turn-{turn}", store_url)
        await registry.compact()
        clock.advance(61)
        await registry.compact()
        clock.advance(VALUES_SECONDS)
        await registry.compact()
        await service.durable()
        counts.append(rows(store_url))

    await registry.close(Refusal("SERVER_DRAINING", "the test is over"))
    assert 0 not in during.values()
    assert counts == [{**dict.fromkeys(during, 0), **KEPT}] * 3


async def test_after_much_has_come_and_gone_no_container_in_memory_holds_more_than_before(
    sqlite_database: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in BOUNDS.items():
        monkeypatch.setattr(name, most)
    for feed in (RevisionFeed, DecisionFeed):
        monkeypatch.setattr(feed.__init__, "__defaults__", (32,))
    registry = ClusterRegistry(
        SqlStore(sqlite_database), clock, {PROFILE.name: PROFILE}, NullTelemetry(), OPTIONS
    )
    await registry.start()
    service = registry.services["default"]
    apply(service, [node("stays", cpu=8)])

    held = []
    for turn in range(12):
        await passed_through(service, f"turn-{turn}", sqlite_database)
        for _ in range(3):
            await registry.compact()
            clock.advance(301)
            service._tick()
        await service.durable()
        held.append(sizes(registry))

    await registry.close(Refusal("SERVER_DRAINING", "the test is over"))
    before, after = reduce(or_, held[3:7]), reduce(or_, held[8:])
    assert {path: (before[path], after[path]) for path in after if after[path] > before[path]} == {}


async def passed_through(service: ClusterService, name: str, store_url: str) -> dict[str, int]:
    """Objects of each kind come; some pods run and finish, one cannot be bound, others wait or are hopeless.

    How many rows each table had while most of them were there.
    """
    root = composite(f"{name}-root", 1, workload=f"{name}-wl")
    fits, hopeless = (
        leaf(f"{name}-fits", 2, parent=root, workload=f"{name}-wl"),
        leaf(f"{name}-hopeless", 9, workload=""),
    )
    lost = leaf(f"{name}-lost", 1, parent="nowhere")
    others: list[ClusterObject] = [
        hopeless,
        *pods(hopeless, 9),
        lost,
        *pods(lost, 1),
        workload(f"{name}-of-others"),
        PriorityClass(name=f"{name}-class", value=1),
        PodDisruptionBudget(name=f"{name}-budget", namespace="default", selector=LabelSelector()),
        node(f"{name}-node", cpu=1),
    ]
    members = [replace(pod, labels={"own": pod.name}) for pod in pods(fits, 2)]
    low, high = rivals(name)
    crowded = node(f"{name}-crowded", cpu=1, labels={"own": name})
    others += [crowded, low, high]
    deciding = [asyncio.ensure_future(service.next_decision(each)) for each in (root.key, high.key)]
    await asyncio.sleep(0)
    apply(service, [root, fits, *members, *others])
    assert None not in await asyncio.gather(*deciding)
    await service.durable()
    first = service.cluster.state.pod("default", members[0].name)
    assert first is not None
    tell(service, first.name, BindingFailed(first.node_name, "", ""))
    await service.durable()
    during = rows(store_url)
    for pod in members:
        tell(service, pod.name, PhaseChanged("Failed", "", ""))
    remove(service, others)
    await service.durable()
    return during


def rivals(name: str) -> tuple[Pod, Pod]:
    """A pod that takes its time to leave, and one of higher priority that fits only where it runs."""
    spec = pods(leaf("any"), 1)[0].spec
    low = replace(spec, termination_grace_period_seconds=30)
    high = replace(spec, priority=10, node_selector={"own": name})
    return (
        Pod(name=f"{name}-low", namespace="default", spec=low, node_name=f"{name}-crowded"),
        Pod(name=f"{name}-high", namespace="default", spec=high),
    )


def apply(service: ClusterService, objects: Iterable[ClusterObject]) -> None:
    write(service, putting(objects))


def remove(service: ClusterService, objects: Iterable[ClusterObject]) -> None:
    def out(mutation: Mutation) -> tuple[None, bool]:
        for each in objects:
            mutation.remove(each.key)
        return None, True

    write(service, out)


def tell(service: ClusterService, name: str, said: BindingFailed | PhaseChanged) -> None:
    call = ReportCall("default", [PodReport("default", name, "", said)])

    def step(mutation: Mutation) -> tuple[None, bool]:
        report(mutation, call)
        return None, True

    write(service, step)


def write(service: ClusterService, step: Callable[[Mutation], tuple[None, bool]]) -> None:
    """As a call with a request id."""
    identity = RequestIdentity("Apply", f"request-{service.cluster.state.revision}", b"digest")
    service.write(step, identity, lambda _: b"answer")


def rows(url: str) -> dict[str, int]:
    """How many rows each table has."""
    engine = create_engine(url)
    with engine.connect() as connection:
        counts = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }
    engine.dispose()
    return counts
