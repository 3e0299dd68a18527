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
from tests.bench.simulation import filled, tree

GROUPS, PODS_A_GROUP = 8, 64
CPU_A_POD = "30"
TIMES = 5
WAITS = frozenset(
    {DecisionCode.DECISION_CODE_UNSCHEDULABLE, DecisionCode.DECISION_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE}
)
UNIT = ObjectRef(kind="CompositePodGroup", name="waits")


def waiting_tree() -> list[Object]:
    """A rack has nodes for 25 of the 64 pods of each gang."""
    return tree(UNIT.name, GROUPS, PODS_A_GROUP, CPU_A_POD)


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
