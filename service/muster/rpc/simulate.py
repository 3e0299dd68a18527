"""The Simulate RPC: checks a request's sizes and references, and has it simulated aside from the schedulers.

Objects are decoded and checked where the simulation runs; all faults come in one answer.
"""

from __future__ import annotations

from typing import Any

from grpc import aio

from muster.engine.api import SchedulingEngine
from muster.engine.aside import TimeLimit
from muster.engine.errors import UnavailableError
from muster.engine.side_worker import SideWorkerFailedError
from muster.model.meta import ObjectKey
from muster.rpc.codec.simulation import SimulateQuestion
from muster.rpc.codec.times import duration_fault, exact_seconds, seconds_text
from muster.rpc.limits import MAX_SIMULATE_SECONDS, MAX_SIMULATED_UNITS
from muster.rpc.request_checks import UNIT_KINDS, RequestFaults, refuse_too_many
from muster.v1 import object_pb2
from muster.v1 import scheduler_service_pb2 as pb
from muster.validation.violations import INVALID, REQUIRED, TOO_MANY

_DEADLINE_MARGIN_SECONDS = 3.0
"""The answer of a simulation whose time is over must reach a caller who waits no longer than that."""

Context = aio.ServicerContext[Any, Any]


async def simulate(
    engine: SchedulingEngine, request: pb.SimulateRequest, context: Context
) -> pb.SimulateResponse:
    """What would be decided. Raises the refusals of `engine.aside`."""
    refuse_too_many("inline.objects", _object_count(request.inline.objects))
    refuse_too_many("overlay.objects", _object_count(request.overlay.objects))
    refuse_too_many("overlay.removed", len(request.overlay.removed))
    refuse_too_many("overlay.drainedNodes", len(request.overlay.drained_nodes))
    faults = RequestFaults()
    cluster = faults.cluster(request.cluster)
    has_cluster = not faults.violations
    units = _units(request, faults)
    limit = _limit_seconds(request, faults)
    removed = _removed(request, faults)
    if not has_cluster:
        faults.refuse()
    question = SimulateQuestion(request.SerializeToString(), units, removed, tuple(faults.violations))
    base = None if request.HasField("inline") else cluster
    try:
        answer = await engine.aside(base, question, TimeLimit(limit, _within_seconds(context)))
    except SideWorkerFailedError as error:
        raise UnavailableError("SIMULATION_FAILED", f"the simulation came to no end: {error}") from error
    return pb.SimulateResponse.FromString(answer)


def _object_count(objects: Any) -> int:  # noqa: ANN401 - a repeated field
    """Objects and names of pod batches."""
    return sum(map(_count, objects))


def _count(message: object_pb2.Object) -> int:
    return max(1, len(message.pod_batch.names)) if message.HasField("pod_batch") else 1


def _units(request: pb.SimulateRequest, faults: RequestFaults) -> tuple[ObjectKey, ...]:
    """The units that are named; none for the whole queue. Exactly one of the two is asked for."""
    if request.whole_queue and request.units:
        faults.add("wholeQueue", INVALID, "is not asked for together with units")
    elif not request.whole_queue and not request.units:
        faults.add("units", REQUIRED, "at least one is needed, or wholeQueue")
    if len(request.units) > MAX_SIMULATED_UNITS:
        text = f"at most {MAX_SIMULATED_UNITS} units, not {len(request.units)}; wholeQueue takes more"
        faults.add("units", TOO_MANY, text)
        return ()
    return tuple(
        faults.ref(unit, f"units[{index}]", present=True, allowed=UNIT_KINDS)
        for index, unit in enumerate(request.units)
    )


def _removed(request: pb.SimulateRequest, faults: RequestFaults) -> tuple[ObjectKey | None, ...]:
    removed: list[ObjectKey | None] = []
    for index, ref in enumerate(request.overlay.removed):
        before = len(faults.violations)
        key = faults.ref(ref, f"overlay.removed[{index}]", present=True)
        removed.append(key if len(faults.violations) == before else None)
    return tuple(removed)


def _limit_seconds(request: pb.SimulateRequest, faults: RequestFaults) -> float:
    if not request.HasField("time_limit"):
        return MAX_SIMULATE_SECONDS
    fault = duration_fault(request.time_limit)
    seconds = exact_seconds(request.time_limit)
    if fault is not None:
        faults.add("timeLimit", INVALID, f"a time limit must {fault}")
    elif not 0 < seconds <= MAX_SIMULATE_SECONDS:
        shown = seconds_text(request.time_limit)
        text = f"a time limit is above 0 and at most {MAX_SIMULATE_SECONDS:g} seconds, not {shown}"
        faults.add("timeLimit", INVALID, text)
    else:
        return float(seconds)
    return MAX_SIMULATE_SECONDS


def _within_seconds(context: Context) -> float:
    """What is left to the caller, cut so that what was decided by then still reaches it."""
    # A caller without a deadline has none left.
    deadline = min(context.time_remaining() or MAX_SIMULATE_SECONDS, MAX_SIMULATE_SECONDS)
    return max(deadline / 2, deadline - _DEADLINE_MARGIN_SECONDS)
