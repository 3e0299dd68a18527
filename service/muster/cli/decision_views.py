"""Decisions for people: a line for streams, a tree for one, and the state of a unit in the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.tree import Tree

from muster.cli.kinds import shown_ref
from muster.cli.output import table
from muster.v1.decision_pb2 import (
    Assignments,
    Decision,
    DecisionCode,
    DisruptionUnit,
    GroupResult,
    GroupStatus,
    Reason,
    SearchEnd,
)
from muster.v1.queue_pb2 import UnitQueueState, UnitState

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


def code_name(decision: Decision) -> str:
    """The code without its prefix: "SCHEDULED"."""
    return DecisionCode.Name(decision.code).removeprefix("DECISION_CODE_")


def state_name(state: UnitQueueState) -> str:
    """The state without its prefix: "BACKOFF"."""
    return UnitState.Name(state.state).removeprefix("UNIT_STATE_")


def decision_line(decision: Decision) -> str:
    """One line: the unit, the outcome, and where its pods go or why not."""
    code = code_name(decision)
    head = f"[{CODE_STYLES.get(code, 'red')}]{code.lower().replace('_', ' ')}[/]"
    return f"[bold]{escape(shown_ref(decision.unit))}[/] {head}: {escape(_summary(decision))}"


def decision_view(decision: Decision) -> RenderableType:
    """Everything about one decision: line, facts, the tree of groups, placement, preemption."""
    parts: list[RenderableType] = [decision_line(decision), escape(_facts(decision))]
    if decision.HasField("result"):
        parts.append(result_tree(decision.result))
    if decision.HasField("assignments") and decision.assignments.pods:
        parts.append(_placement(decision.assignments, "NODE"))
    if decision.HasField("preemption"):
        parts += _preemption(decision)
    return Group(*parts)


def result_tree(result: GroupResult) -> Tree:
    """The groups of a hierarchy from the root down, with the counts and the reasons of each."""
    tree = Tree(_result_line(result))
    _grow(tree, result)
    return tree


def queue_line(state: UnitQueueState) -> str:
    """Where a unit is in the queue, in one line."""
    words = [f"{state_name(state).lower().replace('_', ' ')}, priority {state.priority}"]
    if state.position:
        words.append(f"number {state.position} in line")
    if state.attempts:
        words.append(f"{state.attempts} failed attempts in a row")
    if state.HasField("not_before_time"):
        words.append(f"not before {state.not_before_time.ToJsonString()}")
    return escape(f"queue: {', '.join(words)}")


def reason_lines(reasons: Iterable[Reason]) -> Iterator[str]:
    """A line a reason, with the number of nodes where there is one."""
    for reason in reasons:
        nodes = f" ({reason.node_count} nodes)" if reason.node_count else ""
        yield escape(f"{reason.code}: {reason.message}{nodes}" if reason.message else f"{reason.code}{nodes}")


def _summary(decision: Decision) -> str:
    if not decision.assignments.pods:
        return decision.message or "no message"
    counts = Counter(decision.assignments.nodes[index] for index in decision.assignments.node_index)
    places = [
        f"{node} ({count})" if count > 1 else node for node, count in counts.most_common(NODES_ON_A_LINE)
    ]
    more = f" and {len(counts) - NODES_ON_A_LINE} more nodes" if len(counts) > NODES_ON_A_LINE else ""
    count = len(decision.assignments.pods)
    return f"{count} {'pod' if count == 1 else 'pods'} on {', '.join(places)}{more}"


def _facts(decision: Decision) -> str:
    facts = [f"decision {decision.id or '(not stored)'}", f"revision {decision.revision}"]
    facts.append(f"took {decision.duration.ToTimedelta().total_seconds() * 1_000:.1f} ms")
    if decision.profile:
        facts.append(f"profile {decision.profile}")
    if decision.trace_id:
        facts.append(f"trace {decision.trace_id}")
    end = SearchEnd.Name(decision.search.end).removeprefix("SEARCH_END_").lower().replace("_", " ")
    if decision.search.nodes_spent:
        facts.append(
            f"search {end} after {decision.search.nodes_spent} of {decision.search.nodes_budget} nodes"
        )
    message = [decision.message] if decision.message and decision.assignments.pods else []
    return "\n".join([*message, ", ".join(facts)])


def _grow(tree: Tree, result: GroupResult) -> None:
    for line in reason_lines(result.reasons):
        tree.add(f"[dim]{line}[/]")
    for child in result.children:
        _grow(tree.add(_result_line(child)), child)


def _result_line(result: GroupResult) -> str:
    status = GroupStatus.Name(result.status).removeprefix("GROUP_STATUS_")
    style = "green" if status == "SUCCESS" else "yellow"
    counts = f"{result.satisfied_count} of {result.required_count} hold"
    for count, word in (
        (result.remaining_count, "untried"),
        (result.unschedulable_count, "unschedulable"),
        (result.unresolvable_count, "unresolvable"),
    ):
        counts += f", {count} {word}" if count else ""
    domain = f", in {result.domain_key}={result.domain_value}" if result.domain_key else ""
    tried = f", {result.candidates_tried} domains tried" if result.candidates_tried else ""
    tried += f", {result.candidates_pruned} ruled out" if result.candidates_pruned else ""
    return f"{escape(shown_ref(result.ref))} [{style}]{status.lower()}[/] {escape(counts + domain + tried)}"


def _placement(assignments: Assignments, title: str) -> RenderableType:
    pairs = list(zip(assignments.pods, assignments.node_index, strict=True))
    rows = [(escape(pod), escape(assignments.nodes[index])) for pod, index in pairs[:PODS_SHOWN]]
    placed = table(("POD", title), rows)
    if len(pairs) <= PODS_SHOWN:
        return placed
    return Group(placed, f"and {len(pairs) - PODS_SHOWN} more pods; -o json has all")


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
