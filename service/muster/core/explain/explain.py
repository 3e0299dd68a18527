"""The door to explanations: the present decision on a unit with what stopped it on every level, and what would help.

Nothing is said that was not decided: results are those of the recursion on the snapshot as it is, and every help was
tried on a changed one. Queue, gates and faults are the engine's to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from muster.core.decide import decide
from muster.core.decision import Decision, GroupResult, Reason, SearchEnd, Status
from muster.core.domains import CLUSTER
from muster.core.explain.explanation import (
    FIRST_FAILURE,
    ROOM_PROMISED,
    SEARCH_NOT_MADE,
    SEARCH_PROVED,
    SEARCH_UNDECIDED,
    UNSUCCESSFUL,
    Explanation,
    first_failure,
)
from muster.core.explain.preemption import preemption_reasons
from muster.core.explain.telling_recursion import TellingRecursion
from muster.core.framework import Profile
from muster.core.lockstep import Lockstep
from muster.core.messages import number_of
from muster.core.observer import NullObserver
from muster.core.pod_placement import placer_of
from muster.core.preemption_units import DisruptionUnits
from muster.core.promises import keep_promises
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.core.trial import Ledger, result_of


def explain(
    snapshot: Snapshot, unit: Unit, profile: Profile, victims: Callable[[], DisruptionUnits] = DisruptionUnits
) -> Explanation:
    """The decision that a cycle would make now, and why. Leaves the snapshot as it found it.

    victims: whom the unit may preempt; asked for only if that may help.
    """
    decision = decide(snapshot, unit, profile, NullObserver())
    if decision.asks_for_victims:
        unit = replace(unit, victims=victims(), searched=decision.search)
        decision = decide(snapshot, unit, profile, NullObserver())
    result = decision.result
    if result is None:
        return Explanation(decision, None)
    if _something_failed(unit, decision):
        result = _told(snapshot, unit, profile, result)
    reasons = (
        *_first_failure(result),
        *_promised(unit, result),
        *_search(decision),
        *preemption_reasons(unit, decision),
    )
    return Explanation(decision, replace(result, reasons=(*reasons, *result.reasons)))


def _something_failed(unit: Unit, decision: Decision) -> bool:
    """Whether the recursion came short of anything; what a search found has no failure to tell."""
    return decision.search.end is not SearchEnd.FOUND and len(decision.assignments.pods) < unit.pod_count


def _told(snapshot: Snapshot, unit: Unit, profile: Profile, known: GroupResult) -> GroupResult:
    """The result with what stopped each group; as it is if it came about otherwise, by a nomination."""
    placer = placer_of(snapshot, profile)
    ledger = Ledger(snapshot, placer)
    before = ledger.mark()
    keep_promises(snapshot, unit.promised)
    recursion = TellingRecursion(
        *(snapshot, unit, profile, placer, ledger, NullObserver()), Lockstep(snapshot, unit, profile, placer)
    )
    trial = recursion.minimum(unit.root, CLUSTER)
    if trial.status is Status.SUCCESS:
        recursion.fill(trial, CLUSTER)
    ledger.rollback(before)
    result = result_of(trial)
    return result if result.status is known.status else known


def _first_failure(result: GroupResult) -> list[Reason]:
    """Which group's own check failed, on which level."""
    found = first_failure(result)
    if found is None:
        return []
    blamed, level = found
    details = {
        "kind": blamed.key.kind,
        "namespace": blamed.key.namespace,
        "name": blamed.key.name,
        "level": str(level),
        "status": blamed.status.name,
        "required": str(blamed.required),
        "satisfied": str(blamed.satisfied),
        "remaining": str(blamed.remaining),
        "unschedulable": str(blamed.unschedulable),
        "unresolvable": str(blamed.unresolvable),
    }
    needed = number_of(blamed.required, "group" if blamed.children else "pod")
    text = f"level {level} fails first: {blamed.key}, {blamed.satisfied} of {needed} hold"
    return [Reason(FIRST_FAILURE, text, 0, details)]


def _promised(unit: Unit, result: GroupResult) -> list[Reason]:
    number = len(unit.promised.node_names)
    if not number or result.status not in UNSUCCESSFUL:
        return []
    text = f"room is kept for {number_of(number, 'pod')} of other units"
    return [Reason(ROOM_PROMISED, text, 0, {"pods": str(number)})]


def _search(decision: Decision) -> list[Reason]:
    """How sure it is that no placement exists."""
    result, search = decision.result, decision.search
    if result is None or result.status not in UNSUCCESSFUL:
        return []
    details = {"steps": str(search.steps), "budget": str(search.budget)}
    if search.end is SearchEnd.EXHAUSTED:
        return [Reason(SEARCH_PROVED, "it is proved that no placement exists", 0, details)]
    if search.end is SearchEnd.BUDGET_SPENT:
        text = f"a search ended after {search.steps} steps without a placement or a proof"
        return [Reason(SEARCH_UNDECIDED, text, 0, details)]
    return [Reason(SEARCH_NOT_MADE, "only greedy placement was tried", 0, details)]
