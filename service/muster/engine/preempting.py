"""The Preempt call (api.md): one cycle for a unit now, backoff or not, that may evict others and binds nothing.

It says what came of it: that the unit fits as things are, whom it waits for, or which rule keeps preemption from
helping. A unit that fits is left active, for its own next cycle to bind.
"""

from __future__ import annotations

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import PreemptAnswer, PreemptCall
from muster.engine.binder import pods_by_ordinal
from muster.engine.cluster_service import ClusterService
from muster.engine.hierarchy import Root, why_gated, why_nothing_waits
from muster.engine.layouts import faults_message
from muster.engine.ports import Clock, DecisionRecord, UnitState
from muster.engine.scheduling import GONE, root_of
from muster.engine.uncommitted import fitting, uncommitted
from muster.engine.units import build_unit
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import ObjectKey
from muster.model.pod import Pod
from muster.model.priority import NEVER

_RULES = {
    DecisionCode.UNSCHEDULABLE_AND_UNRESOLVABLE: "no eviction makes a node fit for it",
    DecisionCode.UNSCHEDULABLE: "no unit of lower priority is in the way of the pods that were not placed",
}


async def preempt(service: ClusterService, clock: Clock, call: PreemptCall) -> PreemptAnswer:
    """What one cycle that may preempt comes to. Raises NotFoundError, FailedPreconditionError."""
    root = root_of(service, call.unit)
    found: Decision | DecisionRecord | None = _held(service, root)
    if found is None and call.validate_only:
        found = await _tried(service, clock, root.key)
    elif found is None:
        found = await _decided(service, root.key)
    await service.durable()
    if isinstance(found, Decision):
        return _refused(service, found)
    return PreemptAnswer(found, _why_not(service, found.decision))


async def _decided(service: ClusterService, key: ObjectKey) -> DecisionRecord | Decision:
    """What the unit's next cycle comes to; if it is gated or goes before that, what holds then."""
    record = await service.cycles.preempt(key)
    if record is not None:
        return record
    if service.cluster.state.get(key) is None:
        return Decision(key, DecisionCode.UNCHANGED, message=GONE)
    return _held(service, Root(key)) or await _decided(service, key)


async def _tried(service: ClusterService, clock: Clock, key: ObjectKey) -> DecisionRecord:
    """What a cycle would come to now."""
    unit = build_unit(service.cluster, key)
    pods = pods_by_ordinal(service.cluster, unit)
    verdict = await service.cycles.verdict(unit)
    decision = verdict.decision
    if decision.assignments.pods:
        decision = fitting(decision)
    return uncommitted(service.cluster, pods, verdict, decision, clock.now_us())


def _held(service: ClusterService, root: Root) -> Decision | None:
    """The decision where no cycle can run: root missing, nothing pending, gated, invalid."""
    cluster, key = service.cluster, root.key
    if root.missing:
        code = DecisionCode.INVALID if root.cycle else DecisionCode.PENDING
        return Decision(key, code, message=root.why_pending)
    row = cluster.queue.get(key)
    if row is None:
        return Decision(key, DecisionCode.UNCHANGED, message=why_nothing_waits(cluster.state, key))
    if row.state is UnitState.GATED:
        return Decision(key, DecisionCode.GATED, message=why_gated(cluster.state, key))
    if key in cluster.layouts.faults:
        return Decision(key, DecisionCode.INVALID, message=faults_message(cluster.layouts.faults[key]))
    return None


def _refused(service: ClusterService, decision: Decision) -> PreemptAnswer:
    revision = service.cluster.state.revision
    return PreemptAnswer(DecisionRecord("", revision, revision, decision), decision.message)


def _why_not(service: ClusterService, decision: Decision) -> str:
    """The rule that kept preemption from being tried; "" if it was, which the decision tells, or is not needed."""
    code = decision.code
    if code is DecisionCode.FITS_WITHOUT_PREEMPTION or decision.preemption is not None:
        return ""
    if code is DecisionCode.WAITING_FOR_PREEMPTION:
        return f"nobody else is evicted while the unit is {decision.message}"
    if _policy(service, decision.unit) == NEVER:
        return "its preemption policy is Never"
    return _RULES.get(code, decision.message)


def _policy(service: ClusterService, unit: ObjectKey) -> str | None:
    found = service.cluster.state.get(unit)
    return found.spec.preemption_policy if isinstance(found, Pod | PodGroup | CompositePodGroup) else None
