"""What an explanation takes a client: of a tree of 512 pods that no rack holds, on a live cluster.

The cluster has 5 000 nodes and 100 000 running pods; the copy on which explanations are worked out has been made. Beside
it stands deciding the unit once more, as a dry run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from statistics import median
from typing import Any

from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import CALL_SECONDS, Served, in_loop
from tests.bench.simulation import filled
from tests.endtoend.service import member

GROUPS, PODS_A_GROUP = 8, 64
CPU_A_POD = "30"
TIMES = 5
WAITS = frozenset(
    {DecisionCode.DECISION_CODE_UNSCHEDULABLE, DecisionCode.DECISION_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE}
)
UNIT = ObjectRef(kind="CompositePodGroup", name="waits")


def waiting_tree() -> list[Object]:
    """Eight gangs of 64 pods, each in a rack, all in a block; a rack has nodes for 25."""
    root = Object()
    root.composite_pod_group.metadata.name = UNIT.name
    spec = root.composite_pod_group.spec
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "root"
    spec.scheduling_policy.gang.min_group_count = GROUPS
    spec.scheduling_constraints.topology.add(key="block")
    return [root, *(each for number in range(GROUPS) for each in _leaf(f"{UNIT.name}-{number}"))]


def _leaf(name: str) -> list[Object]:
    group = Object()
    group.pod_group.metadata.name = name
    spec = group.pod_group.spec
    spec.parent_composite_pod_group_name = UNIT.name
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "leaf"
    spec.scheduling_policy.gang.min_count = PODS_A_GROUP
    spec.scheduling_constraints.topology.add(key="rack")
    pods = [member(f"{name}-{number}", name) for number in range(PODS_A_GROUP)]
    for pod in pods:
        pod.pod.spec.containers[0].resources.requests["cpu"] = CPU_A_POD
    return [group, *pods]


def told(*, what_would_help: bool) -> Callable[[Place], Coroutine[Any, Any, Measured]]:
    """Milliseconds until a client knows why the unit waits."""
    request = spb.ExplainRequest(cluster="bench", unit=UNIT, what_would_help=what_would_help)

    async def measure(place: Place) -> Measured:
        async with filled(place) as service:
            await service.apply(waiting_tree())
            dry_runs = [await dry_run(service) for _ in range(TIMES)]
            await explain(service, request)
            before = service.cpu_seconds()
            took = [await explain(service, request) for _ in range(TIMES)]
            cpu = (service.cpu_seconds() - before) / TIMES
            return Measured(median(took) * 1e3, cpu, median(dry_runs) * 1e3)

    return measure


async def explain(service: Served, request: spb.ExplainRequest) -> float:
    started = time.perf_counter()
    answer = await service.scheduler.Explain(request, timeout=CALL_SECONDS)
    took = time.perf_counter() - started
    assert len(answer.result.children) == GROUPS
    assert bool(answer.helps) == request.what_would_help
    return took


async def dry_run(service: Served) -> float:
    """Seconds of a decision that is not stored."""
    request = spb.ScheduleRequest(cluster=service.cluster, unit=UNIT, validate_only=True)
    started = time.perf_counter()
    answer = await service.scheduler.Schedule(request, timeout=CALL_SECONDS)
    took = time.perf_counter() - started
    assert answer.decision.code in WAITS
    return took


ROWS = (
    Row("explain/why/served", "ms", in_loop(told(what_would_help=False)), "a dry run", 100, 1_000),
    Row(
        "explain/what-would-help/served",
        "ms",
        in_loop(told(what_would_help=True)),
        "a dry run",
        2_000,
        20_000,
    ),
)
