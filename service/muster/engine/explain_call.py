"""The Explain call (api.md): why a unit is where it is, and what would help.

What costs time is asked of the side worker, on a copy of the cluster; the queue and the last decision are read here, as
they are when the answer comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from muster.core.decision import GroupResult, Reason
from muster.core.framework import Profile
from muster.core.messages import number_of
from muster.engine.api import ExplainAnswer, ExplainCall
from muster.engine.backoff import SAFETY_NET_US
from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.errors import UnavailableError
from muster.engine.explaining import WhyQuestion, annotated
from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.positioned_units import positioned
from muster.engine.queueing_hints import EventKind, may_help
from muster.engine.scheduling import LastDecision, root_of
from muster.engine.side_worker import SideWorker, SideWorkerFailedError
from muster.model.meta import ObjectKey

LIMIT_SECONDS = 20.0
NEXT_TRY = "NEXT_TRY"
WAITS_FOR_EVENTS = "WAITS_FOR_EVENTS"
WAITS_FOR_PODS = "WAITS_FOR_PODS"
_SECOND_US = 1_000_000
_MOST_NAMED = 5


async def explain_unit(
    service: ClusterService,
    side: SideWorker,
    profiles: Mapping[str, Profile],
    call: ExplainCall,
    last: LastDecision,
) -> ExplainAnswer:
    """The answer. Raises NotFoundError, FailedPreconditionError, ResourceExhaustedError, UnavailableError."""
    root = root_of(service, call.unit)
    await service.durable()
    question = WhyQuestion(call.unit, profiles, call.what_would_help)
    try:
        told = await side.ask(service.cluster, question, LIMIT_SECONDS)
    except SideWorkerFailedError as error:
        raise UnavailableError("EXPLANATION_FAILED", f"{call.unit} was not explained: {error}") from error
    cluster = service.cluster
    row = cluster.queue.get(root.key) if not root.missing else None
    return ExplainAnswer(
        queue=None if row is None else positioned(cluster, row, cluster.queue.position_of(row.key)),
        last_decision=None if root.missing else await last(root.key),
        result=_with_queue(told.result, cluster, row),
        helps=told.helps,
        revision=told.revision,
    )


def _with_queue(result: GroupResult | None, cluster: Cluster, row: QueuedUnit | None) -> GroupResult | None:
    if result is None or row is None:
        return result
    return annotated(result, {row.key: list(_next_try(cluster, row))})


def _next_try(cluster: Cluster, row: QueuedUnit) -> Iterator[Reason]:
    """When the unit is tried again, and what brings it forward."""
    if row.state is UnitState.ACTIVE:
        position = cluster.queue.position_of(row.key)
        yield Reason(NEXT_TRY, f"tried next, as number {position} in line", 0, {"position": str(position)})
    elif row.state is UnitState.BACKOFF:
        yield _at("tried again at", row.not_before_us)
    elif row.state is UnitState.UNSCHEDULABLE:
        yield from _events(row)
        yield _at("tried again, whatever happens, at", row.last_attempt_us + SAFETY_NET_US)
    elif row.state is UnitState.WAITING_FOR_PREEMPTION:
        yield from _leaving(cluster, row.key)


def _events(row: QueuedUnit) -> Iterator[Reason]:
    events = [event.name for event in EventKind if may_help(event, row.reasons)]
    if len(events) == len(EventKind):
        text = "tried again after any change in the cluster"
    elif events:
        words = [event.lower().replace("_", " ") for event in events]
        text = f"tried again after one of these events: {', '.join(words)}"
    else:
        text = "no event in the cluster helps; a change of its own objects does"
    yield Reason(WAITS_FOR_EVENTS, text, 0, {"events": ",".join(events)})


def _at(text: str, time_us: int) -> Reason:
    time = datetime.fromtimestamp(time_us // _SECOND_US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Reason(NEXT_TRY, f"{text} {time}", 0, {"time": time})


def _leaving(cluster: Cluster, unit: ObjectKey) -> Iterator[Reason]:
    left = sorted(cluster.waits.left(unit))
    pods = [str(cluster.disruption.leaving[pod].key) for pod in left if pod in cluster.disruption.leaving]
    named = f": {', '.join(pods[:_MOST_NAMED])}" if pods else ""
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    text = f"waits for {number_of(len(left), 'pod')} to leave{named}{more}"
    details = {"pods": str(len(left)), "examples": ",".join(pods[:_MOST_NAMED])}
    yield Reason(WAITS_FOR_PODS, text, 0, details)
    until = next((wait.until_us for wait in cluster.waits.rows() if wait.key == unit), 0)
    if until:
        yield _at("gives up those that have not left at", until)
