"""Decisions for people: a line for streams, a tree for one, and the state of a unit in the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.tree import Tree

from muster.cli.kinds import shown_ref
from muster.cli.output import table
from muster.cli.tree_drawing import Branch, drawn, held_of, number_of, short_domain, short_ref
from muster.v1.decision_pb2 import (
    Assignments,
    Decision,
    DecisionCode,
    DisruptionUnit,
    GroupResult,
    GroupStatus,
    Reason,
    Search,
    SearchEnd,
)
from muster.v1.queue_pb2 import UnitQueueState, UnitState

RESERVED = "RESERVED"
"""The code of what is reserved for a unit that waits."""
NODES_ON_A_LINE = 4
PODS_SHOWN = 200

CODE_STYLES = {
    "SCHEDULED": "green",
    "UNCHANGED": "green",
    "FITS_WITHOUT_PREEMPTION": "green",
    "WAITING_FOR_PREEMPTION": "cyan",
    "GATED": "yellow",
    "PENDING": "yellow",
    "UNSCHEDULABLE": "yellow",
}

_SHORT_STATUS = {"unschedulable_and_unresolvable": "unresolvable"}
_SEARCH_ENDS = {
    SearchEnd.SEARCH_END_FOUND: "found a placement that greedy placement misses",
    SearchEnd.SEARCH_END_EXHAUSTED: "proved that no placement exists",
    SearchEnd.SEARCH_END_BUDGET_SPENT: "ended without a placement or a proof",
}


def code_name(decision: Decision) -> str:
    """The code without its prefix: "SCHEDULED"."""
    return DecisionCode.Name(decision.code).removeprefix("DECISION_CODE_")


def state_name(state: UnitQueueState) -> str:
    """The state without its prefix: "BACKOFF"."""
    return UnitState.Name(state.state).removeprefix("UNIT_STATE_")


def decision_line(decision: Decision) -> str:
    """One line: the unit, the outcome, and where its pods go or why not."""
    unit = f"[bold]{escape(shown_ref(decision.unit))}[/]"
    summary, words = _summary(decision), _words(decision)
    # "waiting for preemption of 2 pods" says its code itself.
    more = summary.removeprefix(words) if summary.startswith(f"{words} ") else f": {summary}"
    return f"{unit} {outcome_words(decision)}{escape(more)}"


def outcome_words(decision: Decision) -> str:
    """The code in words, coloured."""
    return f"[{CODE_STYLES.get(code_name(decision), 'red')}]{_words(decision)}[/]"


def _words(decision: Decision) -> str:
    return code_name(decision).lower().replace("_", " ")


def decision_view(decision: Decision) -> RenderableType:
    """Everything about one decision: line, facts, the tree of groups, placement, preemption."""
    parts: list[RenderableType] = [decision_line(decision), escape(_facts(decision))]
    parts += search_line(decision.search)
    if decision.HasField("result"):
        parts.append(result_tree(decision.result))
    if decision.HasField("assignments") and decision.assignments.pods:
        parts.append(_placement(decision.assignments, "NODE"))
    if decision.HasField("preemption"):
        parts += _preemption(decision)
    return Group(*parts)


def result_tree(result: GroupResult, notes: Callable[[GroupResult], Iterable[str]] | None = None) -> Tree:
    """The groups of a hierarchy from the root down, with the counts of each, and notes: its reasons unless others are given."""
    return drawn(_branch(result, notes or _own_notes))


def search_line(search: Search) -> list[str]:
    """How the search ended, in one line; none if there was no search."""
    if search.end not in _SEARCH_ENDS:
        return []
    return [f"search: {_SEARCH_ENDS[search.end]}{_steps(search)}"]


def domain_remarks(result: GroupResult) -> tuple[str, ...]:
    """How many of the candidate domains were simulated; a capacity bound ruled out the others."""
    tried, pruned = result.candidates_tried, result.candidates_pruned
    return (f"tried {tried}/{tried + pruned}",) if tried or pruned else ()


def queue_line(state: UnitQueueState) -> str:
    """Where a unit is in the queue, in one line."""
    words = [f"{state_name(state).lower().replace('_', ' ')}, priority {state.priority}"]
    if state.position:
        words.append(f"number {state.position} in line")
    if state.attempts:
        words.append(f"{number_of(state.attempts, 'failed attempt')} in a row")
    if state.HasField("not_before_time"):
        words.append(f"not before {full_seconds(state.not_before_time)}")
    words += [each.message for each in state.reasons if each.code == RESERVED]
    return escape(f"queue: {', '.join(words)}")


def full_seconds(moment: Timestamp) -> str:
    """A time without fractions of a second: 2026-01-31T08:00:00Z."""
    return Timestamp(seconds=moment.seconds).ToJsonString()


def reason_lines(reasons: Iterable[Reason]) -> Iterator[str]:
    """A line of markup a reason, with the number of nodes where there is one."""
    return map(escape, reason_texts(reasons))


def reason_texts(reasons: Iterable[Reason]) -> Iterator[str]:
    """A line of plain text a reason."""
    for reason in reasons:
        nodes = f" ({number_of(reason.node_count, 'node')})" if reason.node_count else ""
        yield ": ".join(filter(None, (reason.code, reason.message))) + nodes


def _summary(decision: Decision) -> str:
    if not decision.assignments.pods:
        return decision.message or "no message"
    counts = Counter(decision.assignments.nodes[index] for index in decision.assignments.node_index)
    places = [
        f"{node} ({count})" if count > 1 else node for node, count in counts.most_common(NODES_ON_A_LINE)
    ]
    beyond = len(counts) - NODES_ON_A_LINE
    more = f" and {number_of(beyond, 'more node')}" if beyond > 0 else ""
    count = len(decision.assignments.pods)
    return f"{number_of(count, 'pod')} on {', '.join(places)}{more}"


def _facts(decision: Decision) -> str:
    facts = [f"decision {decision.id}" if decision.id else "not stored", f"revision {decision.revision}"]
    seconds = decision.duration.ToTimedelta().total_seconds()
    if seconds:
        facts.append(f"took {seconds * 1_000:.1f} ms")
    if decision.profile:
        facts.append(f"profile {decision.profile}")
    if decision.trace_id:
        facts.append(f"trace {decision.trace_id}")
    message = [decision.message] if decision.message and decision.assignments.pods else []
    return "\n".join([*message, ", ".join(facts)])


def _steps(search: Search) -> str:
    spent, budget = search.nodes_spent, search.nodes_budget
    if not spent:
        return ""
    if spent > budget > 0:
        # What comes before the first step is counted too, whatever the budget.
        return f" after {spent:,} steps, {budget:,} allowed"
    return f" after {spent:,}{f' of {budget:,}' if budget else ''} steps"


def _own_notes(result: GroupResult) -> Iterable[str]:
    return reason_texts(result.reasons)


def _branch(result: GroupResult, notes: Callable[[GroupResult], Iterable[str]]) -> Branch:
    status = GroupStatus.Name(result.status).removeprefix("GROUP_STATUS_").lower()
    is_leaf = result.ref.kind != "CompositePodGroup"
    word = "pod" if is_leaf else "group"
    return Branch(
        name=short_ref(result.ref),
        state=_SHORT_STATUS.get(status, status),
        style="green" if status == "success" else "yellow",
        counts=held_of(result.satisfied_count, result.required_count, word),
        pods="" if is_leaf else number_of(_pods_held(result), "pod"),
        domain=short_domain(result.domain_key, result.domain_value) if status == "success" else "",
        remarks=(*_child_remarks(result), *domain_remarks(result)),
        notes=tuple(notes(result)),
        children=[_branch(child, notes) for child in result.children],
    )


def _child_remarks(result: GroupResult) -> tuple[str, ...]:
    """Children that are untried, did not fit, or cannot fit, by the letters that messages use."""
    counts = (
        (result.remaining_count, "R"),
        (result.unschedulable_count, "U"),
        (result.unresolvable_count, "UU"),
    )
    return tuple(f"{letter}={count}" for count, letter in counts if count)


def _pods_held(result: GroupResult) -> int:
    """Pods of the subtree that are on nodes or got one; those of a group that failed were taken back."""
    if result.status != GroupStatus.GROUP_STATUS_SUCCESS:
        return 0
    if result.ref.kind != "CompositePodGroup":
        return result.satisfied_count
    return sum(map(_pods_held, result.children))


def _placement(assignments: Assignments, title: str) -> RenderableType:
    pairs = list(zip(assignments.pods, assignments.node_index, strict=True))
    rows = [(escape(pod), escape(assignments.nodes[index])) for pod, index in pairs[:PODS_SHOWN]]
    placed = table(("POD", title), rows)
    if len(pairs) <= PODS_SHOWN:
        return placed
    return Group(placed, f"and {number_of(len(pairs) - PODS_SHOWN, 'more pod')}; -o json has all")


def _preemption(decision: Decision) -> Iterator[RenderableType]:
    preemption = decision.preemption
    if preemption.not_possible:
        yield escape(f"no preemption: {preemption.not_possible}")
    if preemption.victims:
        yield table(("VICTIM", "PRIORITY", "PODS", "OVER BUDGET", "REASON"), map(_victim, preemption.victims))
    if preemption.nominations.pods:
        yield _placement(preemption.nominations, "NOMINATED NODE")


def _victim(unit: DisruptionUnit) -> tuple[str, ...]:
    over = "yes" if unit.violates_budget else "no"
    return (escape(shown_ref(unit.ref)), str(unit.priority), str(len(unit.pods)), over, escape(unit.reason))
