"""What preemption means for a unit, in one reason: with whom it is possible, or which rule keeps it from helping."""

from __future__ import annotations

from muster.core.decision import Decision, DecisionCode, Preemption, PreemptionEnd, Reason, Status
from muster.core.explain.explanation import (
    PREEMPTION_CANNOT_HELP,
    PREEMPTION_FORBIDDEN,
    PREEMPTION_POSSIBLE,
    PREEMPTION_UNDER_WAY,
)
from muster.core.messages import number_of
from muster.core.tree import Unit
from muster.model.priority import NEVER

_MOST_NAMED = 5
_NOBODY = "no unit of lower priority runs"
_ENDS = {
    PreemptionEnd.NO_FIT: "it would not fit without all units of lower priority either",
    PreemptionEnd.NOT_FOUND: "no room was found without all units of lower priority either",
    PreemptionEnd.NO_GAIN: "no more of it would fit without all units of lower priority either",
}


def preemption_reasons(unit: Unit, decision: Decision) -> list[Reason]:
    """At most one; none for a unit that fits."""
    if decision.preemption is not None:
        nobody = unit.victims is not None and not unit.victims.keys and not decision.preemption.awaited
        return [_forbidden("NOBODY_LOWER", _NOBODY)] if nobody else _tried(decision.preemption)
    if decision.code is DecisionCode.WAITING_FOR_PREEMPTION:
        text = "nodes are nominated; nobody else is evicted while pods that it waits for are leaving"
        return [Reason(PREEMPTION_UNDER_WAY, text)]
    if decision.result is None or decision.code is DecisionCode.SCHEDULED:
        return []
    if decision.result.status is Status.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return [_forbidden("UNRESOLVABLE", "no eviction makes a node fit for it")]
    if unit.preemption_policy == NEVER:
        return [_forbidden("NEVER", "its preemption policy is Never")]
    return [_forbidden("NOBODY_LOWER", _NOBODY)]


def _tried(preemption: Preemption) -> list[Reason]:
    if preemption.end is PreemptionEnd.NOMINATED:
        return [_possible(preemption)]
    if preemption.end not in _ENDS:
        return []
    text = f"preemption cannot help: {_ENDS[preemption.end]}"
    return [Reason(PREEMPTION_CANNOT_HELP, text, 0, {"rule": preemption.end.value})]


def _possible(preemption: Preemption) -> Reason:
    victims = [str(victim.unit) for victim in preemption.victims]
    pods = sum(len(victim.pods) for victim in preemption.victims)
    details = {
        "units": str(len(victims)),
        "pods": str(pods),
        "victims": ",".join(victims[:_MOST_NAMED]),
        "awaited": str(len(preemption.awaited)),
        "overBudget": str(preemption.pods_over_budget),
    }
    if not victims:
        return Reason(PREEMPTION_POSSIBLE, "it fits once pods that are leaving are gone", 0, details)
    more = f" and {len(victims) - _MOST_NAMED} more" if len(victims) > _MOST_NAMED else ""
    of_pods = number_of(pods, "pod")
    text = f"preemption is possible: {of_pods} of {', '.join(victims[:_MOST_NAMED])}{more} would go"
    return Reason(PREEMPTION_POSSIBLE, text, 0, details)


def _forbidden(rule: str, why: str) -> Reason:
    return Reason(PREEMPTION_FORBIDDEN, f"no preemption: {why}", 0, {"rule": rule})
