"""The Schedule call (api.md): one cycle for a unit now, or what keeps it from having one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import ScheduleAnswer, ScheduleCall
from muster.engine.binder import pods_by_ordinal
from muster.engine.cluster_service import ClusterService
from muster.engine.cluster_state import ClusterState
from muster.engine.errors import FailedPreconditionError, NotFoundError, Precondition
from muster.engine.hierarchy import Root, find_root, unit_of_pod, why_gated, why_nothing_waits
from muster.engine.ports import Clock, DecisionRecord, UnitState
from muster.engine.positioned_units import positioned
from muster.engine.uncommitted import uncommitted
from muster.engine.units import build_unit
from muster.model.meta import GROUP_KINDS, POD, ObjectKey
from muster.model.pod import Pod

GONE = "the unit is gone"


def root_of(service: ClusterService, named: ObjectKey) -> Root:
    """The unit that an object belongs to. Raises as `root_in`."""
    return root_in(service.cluster.state, named)


def root_in(state: ClusterState, named: ObjectKey) -> Root:
    """The unit that an object belongs to. Raises NotFoundError, or FailedPreconditionError for a foreign pod."""
    found = state.get(named) if named.kind in state.objects else None
    if found is None or named.kind not in GROUP_KINDS | {POD}:
        raise NotFoundError("OBJECT_NOT_FOUND", f"{named} does not exist", [(named.kind, str(named))])
    if not isinstance(found, Pod):
        return find_root(state, named)
    if found.spec.scheduler_name not in state.scheduler_names:
        text = f"scheduler {found.spec.scheduler_name!r} is none of ours"
        raise FailedPreconditionError(
            "FOREIGN_SCHEDULER", f"{named}: {text}", [Precondition("FOREIGN_SCHEDULER", str(named), text)]
        )
    return unit_of_pod(state, found)


def unit_named(service: ClusterService, named: ObjectKey) -> ObjectKey:
    """The unit that an object belongs to; what is none of ours, or is gone, is itself what was decided on if anything was."""
    try:
        return root_of(service, named).key
    except (NotFoundError, FailedPreconditionError):
        return named


LastDecision = Callable[[ObjectKey], Awaitable[DecisionRecord | None]]


async def schedule(
    service: ClusterService,
    clock: Clock,
    call: ScheduleCall,
    last: LastDecision,
) -> ScheduleAnswer:
    """The first cycle that sees everything acknowledged before the call; with `wait` further ones until it is over.

    `last` finds the unit's last decision, which is the answer for a unit with nothing pending.
    """
    root = root_of(service, call.unit)
    held = await _held(service, root, last)
    deadline = clock.monotonic() + call.wait_seconds if call.wait_seconds is not None else None
    answer = await _first_cycle(service, root.key, last) if held is None else held
    if deadline is not None and not _is_over(service, answer):
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - clock.monotonic())):
                while not _is_over(service, answer):
                    answer = await _later(service, call.unit, answer, last)
    await service.durable()
    return answer


async def dry_run(
    service: ClusterService, clock: Clock, named: ObjectKey, last: LastDecision
) -> ScheduleAnswer:
    """What a cycle would decide now; nothing is stored and no queue is moved."""
    root = root_of(service, named)
    held = await _held(service, root, last)
    if held is not None:
        return held
    unit = build_unit(service.cluster, root.key)
    pods = pods_by_ordinal(service.cluster, unit)
    verdict = await service.cycles.verdict(unit)
    record = uncommitted(service.cluster, pods, verdict, verdict.decision, clock.now_us())
    await service.durable()
    return _answer(service, root.key, record, fresh=True)


async def _first_cycle(service: ClusterService, unit: ObjectKey, last: LastDecision) -> ScheduleAnswer:
    """What the unit's next cycle decides; if it is gated or goes before that, what holds then."""
    service.cluster.queue.bring_forward(unit)
    record = await service.next_cycle(unit)
    if record is not None:
        return _answer(service, unit, record, fresh=True)
    if service.cluster.state.get(unit) is None:
        return _gone(service, unit)
    held = await _held(service, Root(unit), last)
    return held if held is not None else await _first_cycle(service, unit, last)


async def _later(
    service: ClusterService, named: ObjectKey, answer: ScheduleAnswer, last: LastDecision
) -> ScheduleAnswer:
    """What comes after an answer: the unit's next decision, that it is gone, or what holds of the unit it is part of by now."""
    before = answer.decision
    unit, seen = (
        (root_of(service, named).key, 0) if before is None else (before.decision.unit, before.revision)
    )
    known = service.cluster.last_decisions.get(unit)
    if known is not None and known.revision > seen:
        return _answer(service, unit, known, fresh=True)  # cycles do not wait for those who follow them
    record = await service.next_decision(unit)
    if record is not None:
        return _answer(service, unit, record, fresh=True)
    try:
        root = root_of(service, named)
    except NotFoundError:
        return _gone(service, unit)
    if root.key == unit:
        return _gone(service, unit)
    return await _held(service, root, last) or await _first_cycle(service, root.key, last)


def _gone(service: ClusterService, unit: ObjectKey) -> ScheduleAnswer:
    return _synthetic(service, unit, DecisionCode.UNCHANGED, GONE)


async def _held(service: ClusterService, root: Root, last: LastDecision) -> ScheduleAnswer | None:
    """The answer where no cycle can run: root missing, nothing pending, gated, invalid and recorded as such."""
    cluster = service.cluster
    if root.missing:
        code = DecisionCode.INVALID if root.cycle else DecisionCode.PENDING
        return _synthetic(service, root.key, code, root.why_pending)
    row = cluster.queue.get(root.key)
    if row is None:
        record = await last(root.key)
        if record is not None:
            return _answer(service, root.key, record, fresh=False)
        nothing = why_nothing_waits(cluster.state, root.key)
        return _synthetic(service, root.key, DecisionCode.UNCHANGED, nothing)
    if row.state is UnitState.GATED:
        return _synthetic(service, root.key, DecisionCode.GATED, why_gated(cluster.state, root.key))
    if row.state is UnitState.UNSCHEDULABLE and root.key in cluster.layouts.faults:
        return _answer(service, root.key, await last(root.key), fresh=False)
    return None


def _synthetic(service: ClusterService, unit: ObjectKey, code: DecisionCode, message: str) -> ScheduleAnswer:
    revision = service.cluster.state.revision
    record = DecisionRecord("", revision, revision, Decision(unit, code, message=message))
    return _answer(service, unit, record, fresh=False)


def _answer(
    service: ClusterService, unit: ObjectKey, record: DecisionRecord | None, *, fresh: bool
) -> ScheduleAnswer:
    held, queue = service.cluster, service.cluster.queue
    row = queue.get(unit)
    if row is None:
        return ScheduleAnswer(record, fresh, None)
    return ScheduleAnswer(record, fresh, positioned(held, row, queue.position_of(unit)))


def _is_over(service: ClusterService, answer: ScheduleAnswer) -> bool:
    """Scheduled with nothing left to place, or nothing more can come. A unit that is gone by now has that told."""
    decision = answer.decision.decision if answer.decision is not None else None
    if decision is None:
        return False
    if decision.code is DecisionCode.INVALID:
        return service.cluster.state.get(decision.unit) is None
    return decision.code in (DecisionCode.SCHEDULED, DecisionCode.UNCHANGED)
