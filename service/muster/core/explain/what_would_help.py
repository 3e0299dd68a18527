"""What would let a unit be scheduled, smallest change first: every help was tried before it is told."""

from __future__ import annotations

from collections.abc import Iterator

from muster.core.decision import DecisionCode, PreemptionEnd, SearchEnd
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.constraints import relaxed_constraints
from muster.core.explain.departures import departures
from muster.core.explain.explanation import Explanation, Help, HelpCode
from muster.core.explain.members import gates_to_remove, missing_members
from muster.core.explain.nodes_to_add import nodes_to_add
from muster.core.explain.smaller_minimums import lower_minimums
from muster.core.explain.trials import Trials, trials_of
from muster.core.framework import Profile
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit

_KINDS = list(HelpCode)


def what_would_help(
    snapshot: Snapshot, unit: Unit, profile: Profile, told: Explanation, known: Circumstances
) -> tuple[Help, ...]:
    """Helps for a unit that was explained so on this snapshot; none for one that is scheduled, or only waits for others to go."""
    trials = trials_of(snapshot, unit, profile)
    if told.result is None or _needs_none(told):
        return ()
    found = list(_found(trials, told, known))
    return tuple(sorted(found, key=lambda each: (each.size, _KINDS.index(each.code), each.message)))


def _found(trials: Trials, told: Explanation, known: Circumstances) -> Iterator[Help]:
    if told.result is None:
        return
    proved = not trials.unit.root.admissible or told.decision.search.end is SearchEnd.EXHAUSTED
    yield from missing_members(trials, known)
    yield from gates_to_remove(trials, known)
    yield from lower_minimums(trials, told.result, known, now_proved=proved)
    if not trials.unit.root.admissible:
        return
    yield from relaxed_constraints(trials)
    yield from nodes_to_add(trials, told.result, now_proved=proved)
    if not _preempts(told):
        yield from departures(trials, known)


def _needs_none(told: Explanation) -> bool:
    """Scheduled, or waiting for those that it preempted."""
    code = told.decision.code
    return code is DecisionCode.SCHEDULED or (
        code is DecisionCode.WAITING_FOR_PREEMPTION and told.decision.preemption is None
    )


def _preempts(told: Explanation) -> bool:
    preemption = told.decision.preemption
    return preemption is not None and preemption.end is PreemptionEnd.NOMINATED
