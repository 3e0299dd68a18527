"""Results in words, in the style of Kubernetes: counts and reasons first, then what was missing.

Text is made of a result's reasons and counters alone, so the same decision always reads the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.core.decision import (
    DecisionCode,
    GroupResult,
    Preemption,
    PreemptionEnd,
    Reason,
    Search,
    SearchEnd,
    Status,
)
from muster.model.meta import POD

_MOST_CHILDREN = 3
_NO_SEARCH = Search()


def number_of(count: int, word: str) -> str:
    """A count with its word: 1 pod, 2 pods."""
    return f"{count} {_noun(word, count)}"


def pod_message(reasons: Sequence[Reason]) -> str:
    """Why no node takes a pod: "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable.".

    reasons: in the order in which they are told, what most nodes fail first.
    """
    if not reasons:
        return ""
    total = reasons[0].details.get("nodes", "0")
    texts = [f"{item.node_count} {item.message}" if item.node_count else item.message for item in reasons]
    return f"0/{total} nodes are available: {', '.join(texts)}."


def group_message(result: GroupResult, search: Search = _NO_SEARCH) -> str:
    """Why a group does not hold its minimum, "" if it does: its own counters, and what failed below it.

    search: of a root, the search that followed.
    """
    if result.status is Status.SUCCESS:
        return ""
    if result.key.kind == POD:
        return " ".join(_failures(result))
    reasons = [item.message for item in result.reasons]
    if result.satisfied >= result.required:
        return "; ".join((_met(result), *_domains(result), *reasons, *_failures(result)))
    return "; ".join(
        (_counters(result), *_search_end(search), *_domains(result), *reasons, *_failures(result))
    )


def decision_message(result: GroupResult, code: DecisionCode, search: Search, placed: int) -> str:
    """The root's message: what was placed, or why nothing was and how the search for it ended."""
    failed = group_message(result, search)
    if failed:
        return failed
    left = " ".join(dict.fromkeys(_left_over(result)))
    if code is DecisionCode.SCHEDULED:
        done = f"placed {number_of(placed, 'pod')}"
        if search.end is SearchEnd.FOUND:
            done = f"{done} where a search found room"
        return f"{done}; left over: {left}" if left else done
    return (
        f"the minimum holds, no further pod fits: {left}" if left else "the minimum holds, no pod was tried"
    )


def preemption_message(preemption: Preemption, placement: str) -> str:
    """The root's message once preemption was tried. placement: what it would have been without."""
    match preemption.end:
        case PreemptionEnd.NOMINATED:
            return "; ".join((_waiting(preemption), placement))
        case PreemptionEnd.NO_FIT:
            return f"{placement}; preemption: it would not fit without all units of lower priority either"
        case PreemptionEnd.NOT_FOUND:
            return f"{placement}; preemption: no room was found without all units of lower priority either"
        case PreemptionEnd.NO_GAIN:
            return (
                f"{placement}; preemption: no more pods would fit without all units of lower priority either"
            )
    return placement


def _waiting(preemption: Preemption) -> str:
    """For whom a unit waits, and for what."""
    evicted = sum(len(victim.pods) for victim in preemption.victims)
    text = f"waiting for preemption of {number_of(evicted + len(preemption.awaited), 'pod')}"
    if preemption.victims:
        text += f" ({number_of(len(preemption.victims), 'unit')})"
    return f"{text}; {number_of(len(preemption.nominations.pods), 'pod')} nominated"


def _counters(result: GroupResult) -> str:
    """What holds of what is needed; or what could at all, where that is too little to try anything."""
    child = "pod" if _is_leaf(result) else "group"
    counters = f"S={result.satisfied} R={result.remaining} U={result.unschedulable} UU={result.unresolvable}"
    known = result.satisfied + result.remaining + result.unschedulable + result.unresolvable
    number, word = (known, "ready") if known < result.required else (result.satisfied, "fit")
    return f"{number} of {result.required} required {_noun(child, result.required)} {word} ({counters})"


def _met(result: GroupResult) -> str:
    """Of a group that runs: what it has is enough, and yet nothing can be added."""
    child = "pod" if _is_leaf(result) else "group"
    held = f"{result.satisfied} of {result.required} required {_noun(child, result.required)}"
    return f"{held} run, no further pod can be placed"


def _noun(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _search_end(search: Search) -> Iterator[str]:
    if search.end is SearchEnd.EXHAUSTED:
        yield "no placement exists"
    elif search.end is SearchEnd.BUDGET_SPENT:
        if search.steps < search.budget:
            yield "the search ended without a placement or a proof"
        else:
            yield f"search budget spent after {search.steps} steps"


def _is_leaf(result: GroupResult) -> bool:
    return not result.children and result.key.kind != "CompositePodGroup"


def _domains(result: GroupResult) -> Iterator[str]:
    if result.tried or result.pruned:
        yield f"no domain holds the minimum ({result.tried} tried, {result.pruned} ruled out by capacity)"


def _failures(result: GroupResult) -> Iterator[str]:
    yield from dict.fromkeys(pod_message(reasons) for reasons in result.pod_reasons.values())
    failed = [
        child
        for child in result.children
        if child.status in (Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE)
    ]
    for child in failed[:_MOST_CHILDREN]:
        yield f"{child.key}: {group_message(child)}"
    if len(failed) > _MOST_CHILDREN:
        yield f"and {len(failed) - _MOST_CHILDREN} more groups"


def _left_over(result: GroupResult) -> Iterator[str]:
    for reasons in result.pod_reasons.values():
        yield pod_message(reasons)
    for child in result.children:
        if child.status is Status.SUCCESS:
            yield from _left_over(child)
        elif child.status is not Status.WAIT:
            yield f"{child.key}: {group_message(child)}"
