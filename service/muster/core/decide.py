"""The door of the core: one unit and one snapshot in, one decision out (KEP-4671, the workload scheduling cycle)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from muster.core.decision import (
    Assignments,
    Decision,
    DecisionCode,
    GroupResult,
    Preemption,
    PreemptionEnd,
    Search,
    SearchEnd,
    Status,
)
from muster.core.domains import CLUSTER
from muster.core.equal_pods import place_equal_pods, place_equal_units
from muster.core.found_placement import assume_found, tell_found
from muster.core.framework import Profile
from muster.core.lockstep import Lockstep
from muster.core.messages import decision_message, preemption_message
from muster.core.nominated_placement import assume_nominated
from muster.core.observer import NullObserver, Observer
from muster.core.pod_placement import placer_of
from muster.core.preemption.eligible import may_preempt
from muster.core.preemption.preempt import preempt
from muster.core.preemption_units import DisruptionUnits
from muster.core.promises import keep_promises
from muster.core.recursion import Recursion
from muster.core.search.search import budget_of, greedy_is_exact, search
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit, leaves
from muster.core.trial import Ledger, Trial, result_of
from muster.model.meta import ObjectKey
from muster.model.variations import variation

_NO_SEARCH = Search()
_BLANK = Decision(ObjectKey("", "", ""), DecisionCode.PENDING)
_decision = variation(Decision, "unit", "code", "result", "assignments", "search", "message")


def decide(snapshot: Snapshot, unit: Unit, profile: Profile, observer: Observer) -> Decision:
    """Where the unit's pods run, or why they do not. Leaves the snapshot as it found it."""
    before = snapshot.mark()
    decision = decide_and_assume(snapshot, unit, profile, observer)
    snapshot.rollback(before)
    return decision


def decide_and_assume(snapshot: Snapshot, unit: Unit, profile: Profile, observer: Observer) -> Decision:
    """As `decide`, but what the decision assigns stays assumed, so that the next unit is decided on it.

    Leaves the snapshot as it found it if it raises.
    """
    placer = placer_of(snapshot, profile)
    ledger = Ledger(snapshot, placer)
    before = ledger.mark()
    observer.enter("cycle", unit.key)
    try:
        keep_promises(snapshot, unit.promised)
        decision = None if observer.is_recording else place_equal_pods(unit, ledger)
        if decision is None:
            rehearsal = Lockstep(snapshot, unit, profile, placer)
            decision = _decided(Recursion(snapshot, unit, profile, placer, ledger, observer, rehearsal))
        keep_promises(snapshot, unit.promised, -1)
        observer.leave(_attributes(decision) if observer.is_recording else {})
    except BaseException:
        ledger.rollback(before)
        raise
    return decision


def decide_together(snapshot: Snapshot, units: Sequence[Unit], profile: Profile) -> list[Decision]:
    """As `decide_and_assume` for one unit after the other, until one is not placed whole, of which nothing is told.

    units: as `equal_pods.most_together` allows.
    """
    before = snapshot.mark()
    try:
        return place_equal_units(units, snapshot, placer_of(snapshot, profile))
    except BaseException:
        snapshot.rollback(before)
        raise


def assume_decision(snapshot: Snapshot, unit: Unit, decision: Decision) -> None:
    """Assume what an earlier decision assigned; roll back to a mark to undo."""
    assigned = decision.assignments
    if not assigned.pods:
        return
    signature_of: dict[int, int] = {}
    for leaf in leaves(unit.root):
        signature_of.update(zip(leaf.pods.ids, leaf.pods.signatures, strict=True))
    slots = snapshot.nodes.slots_of(assigned.nodes)
    placed = Counter(zip(map(signature_of.__getitem__, assigned.pods), assigned.node_index, strict=True))
    for signature, entries in groupby(sorted(placed.items()), key=lambda item: item[0][0]):
        places, numbers = zip(*((place, number) for (_, place), number in entries), strict=True)
        snapshot.assume_many(signature, slots[list(places)], np.array(numbers, dtype=np.int64))


def _decided(recursion: Recursion) -> Decision:
    """Where the pods go, by nomination or anew; else who must go for them. What it assigns stays assumed."""
    unit, mark = recursion.unit, recursion.ledger.mark()
    trial = assume_nominated(recursion, unit.earlier.nominations)
    decision = _placed(recursion, *((trial, _NO_SEARCH) if trial is not None else _minimum(recursion)))
    if unit.earlier.is_waiting:
        if decision.code is DecisionCode.SCHEDULED and _is_all_that_was_nominated(unit, decision):
            return decision
        recursion.ledger.rollback(mark)
        return replace(decision, code=DecisionCode.WAITING_FOR_PREEMPTION, assignments=Assignments())
    if trial is not None or not may_preempt(unit, decision):
        return decision
    if unit.victims is None:
        return replace(decision, asks_for_victims=True)
    if not unit.victims.keys and not recursion.snapshot.pods.leaving:
        return decision
    recursion.ledger.rollback(mark)
    return _preempting(recursion, unit.victims, decision)


def _placed(recursion: Recursion, trial: Trial, searched: Search) -> Decision:
    """The decision of a root's minimum that was tried; if it holds, with all that fits beside it."""
    if trial.status is Status.SUCCESS:
        recursion.fill(trial, CLUSTER)
    assignments = recursion.ledger.assignments()
    result = result_of(trial)
    code = _code(result, assignments, recursion.unit)
    message = decision_message(result, code, searched, len(assignments.pods))
    return _decision(_BLANK, recursion.unit.key, code, result, assignments, searched, message)


def _is_all_that_was_nominated(unit: Unit, decision: Decision) -> bool:
    """Whether as many pods are placed as nodes are nominated for: else victims would have gone in vain."""
    pending = {pod for leaf in leaves(unit.root) for pod in leaf.pods.ids}
    return len(decision.assignments.pods) >= len(pending.intersection(unit.earlier.nominations.pods))


def _preempting(recursion: Recursion, units: DisruptionUnits, decision: Decision) -> Decision:
    """The decision with what preemption came to. Nothing of it is assumed before; what it assigns is, afterwards."""
    preemption = _preempted(recursion, units, decision)
    message = preemption_message(preemption, decision.message)
    if preemption.end is PreemptionEnd.NOMINATED:
        code = DecisionCode.WAITING_FOR_PREEMPTION
        return replace(decision, code=code, assignments=Assignments(), message=message, preemption=preemption)
    trial = assume_nominated(recursion, preemption.nominations)
    if trial is not None:
        return replace(_placed(recursion, trial, decision.search), preemption=preemption)
    assume_decision(recursion.snapshot, recursion.unit, decision)
    return replace(decision, message=message, preemption=preemption)


def _preempted(recursion: Recursion, units: DisruptionUnits, decision: Decision) -> Preemption:
    recursion.observer.enter("preemption", recursion.unit.key)
    unheard = replace(recursion, unit=replace(recursion.unit, searched=None), observer=NullObserver())
    preemption = preempt(unheard, units, _minimum, len(decision.assignments.pods))
    recursion.observer.leave(
        {
            "end": preemption.end.value,
            "candidates": len(units.keys),
            "victims": len(preemption.victims),
            "pods": sum(len(victim.pods) for victim in preemption.victims),
            "steps": preemption.steps,
        }
    )
    return preemption


def _minimum(recursion: Recursion) -> tuple[Trial, Search]:
    """The root's minimum by the recursion, or by search where that fails though removing pods might help."""
    trial = recursion.minimum(recursion.unit.root, CLUSTER)
    if trial.status is Status.SUCCESS:
        return trial, _NO_SEARCH
    if trial.status is Status.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return trial, Search(SearchEnd.EXHAUSTED)
    snapshot, unit, placer = recursion.snapshot, recursion.unit, recursion.placer
    if greedy_is_exact(unit, snapshot, placer) or recursion.is_proof(trial):
        return trial, Search(SearchEnd.EXHAUSTED)
    if recursion.unit.searched is not None:
        return trial, recursion.unit.searched
    if not budget_of(recursion.unit, recursion.profile):
        return trial, _NO_SEARCH
    recursion.observer.enter("search", recursion.unit.key)
    found, searched = _searched(recursion)
    recursion.observer.leave({"end": searched.end.value, "steps": searched.steps, "budget": searched.budget})
    return found or trial, searched


def _searched(recursion: Recursion) -> tuple[Trial | None, Search]:
    """The root's minimum as the search found it, assumed; None without one."""
    snapshot, unit, placer = recursion.snapshot, recursion.unit, recursion.placer
    outcome = search(snapshot, unit, recursion.profile, placer)
    end, found = outcome.end, None
    if outcome.placement is not None:
        found = assume_found(snapshot, unit, placer, recursion.ledger, outcome.placement)
        if found is None:
            end = SearchEnd.BUDGET_SPENT
        elif recursion.observer.is_recording:
            tell_found(found, recursion.observer)
    return found, Search(end, outcome.steps, outcome.budget)


def _attributes(decision: Decision) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "status": decision.code.value,
        "pods": len(decision.assignments.pods),
    }
    if decision.search.end is not SearchEnd.NOT_NEEDED:
        attributes |= {"search": decision.search.end.value, "search_steps": decision.search.steps}
    return attributes


def _code(result: GroupResult, assignments: Assignments, unit: Unit) -> DecisionCode:
    """Scheduled if pods are bound or none is left to bind; else what the root, or its best failed pod, is."""
    if result.status is Status.SUCCESS:
        if assignments.pods or not unit.pod_count:
            return DecisionCode.SCHEDULED
        if not _lost_for_good(result):
            return DecisionCode.UNSCHEDULABLE
    elif result.status is Status.UNSCHEDULABLE:
        return DecisionCode.UNSCHEDULABLE
    return DecisionCode.UNSCHEDULABLE_AND_UNRESOLVABLE


def _lost_for_good(result: GroupResult) -> bool:
    """Whether pods or groups were tried and none of them could be helped by removing pods."""
    if result.unschedulable or any(child.unschedulable for child in result.children):
        return False
    return bool(result.unresolvable) or any(_lost_for_good(child) for child in result.children)
