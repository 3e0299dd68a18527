"""How a decision was made, as spans on one axis: cycle, groups, their pods, fill, search and preemption, nested.

The times are those of the decision made again (`engine.rerun`), since the record keeps none. Where that is not possible
the groups of the recorded result stand in the order of the recursion, one unit of length for each domain looked at, and
`timed` is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from muster.engine.rerun import Rerun
from muster.v1.decision_pb2 import GroupResult, GroupStatus

MOST_SPANS = 2_000
MOST_CANDIDATES = 5_000
STATUS_PREFIX = "GROUP_STATUS_"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A domain that was tried, or ruled out by its capacity (`pruned`)."""

    domain: str
    status: str
    pruned: bool


@dataclass(slots=True)
class Span:
    """A section of the recursion. Times in nanoseconds since the timeline's start, or in domains if it is not timed."""

    depth: int
    section: str
    name: str
    start: int
    length: int = 0
    attributes: dict[str, str | int] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """reason: why it is not timed. equal: the decision made again is the recorded one. hidden: spans left out."""

    timed: bool
    length: int
    spans: list[Span]
    hidden: int = 0
    equal: bool = False
    reason: str = ""


def timeline_of(rerun: Rerun, recorded: GroupResult) -> Timeline:
    """The timeline of a decision: of its re-run, or else of its recorded result."""
    if rerun.again is None or not rerun.events:
        spans = list(_in_order(recorded)) if recorded.HasField("ref") else []
        length = spans[0].length if spans else 0
        reason = rerun.not_possible or "nothing was tried"
        return _cut(Timeline(timed=False, length=length, spans=spans, reason=reason))
    spans = _timed(rerun.events)
    length = max(span.start + span.length for span in spans)
    return _cut(Timeline(timed=True, length=length, spans=spans, equal=not rerun.differences))


def _cut(timeline: Timeline) -> Timeline:
    hidden = max(0, len(timeline.spans) - MOST_SPANS)
    return replace(timeline, spans=timeline.spans[:MOST_SPANS], hidden=hidden)


def _timed(events: Sequence[tuple[object, ...]]) -> list[Span]:
    """Spans in the order in which they were entered."""
    spans: list[Span] = []
    open_spans: list[Span] = []
    begin, now = cast("int", events[0][1]), 0
    candidates = 0
    for kind, at, *rest in events:
        now = cast("int", at) - begin
        if kind == "enter":
            section, name = cast("tuple[str, str]", tuple(rest))
            open_spans.append(Span(len(open_spans), section, name, now))
            spans.append(open_spans[-1])
        elif kind == "leave":
            left = open_spans.pop()
            left.length = now - left.start
            left.attributes = cast("dict[str, str | int]", rest[0])
        elif candidates < MOST_CANDIDATES:
            candidates += 1
            open_spans[-1].candidates.append(_candidate(rest[0]))
    for unfinished in open_spans:
        # There were more events than a re-run tells.
        unfinished.length = now - unfinished.start
    return spans


def _candidate(attributes: object) -> Candidate:
    told = cast("dict[str, str | int]", attributes)
    return Candidate(str(told["domain"]), str(told["status"]), bool(told["pruned"]))


def _in_order(result: GroupResult, depth: int = 0, start: int = 0) -> Iterator[Span]:
    """The group and all below it, each after those before it."""
    own = max(1, result.candidates_tried + result.candidates_pruned)
    span = Span(depth, "group", _name(result), start, own, _attributes(result))
    below: list[Span] = []
    for child in result.children:
        spans = list(_in_order(child, depth + 1, start + span.length))
        span.length += spans[0].length
        below += spans
    yield span
    yield from below


def _name(result: GroupResult) -> str:
    return f"{result.ref.kind} {result.ref.namespace}/{result.ref.name}"


def _attributes(result: GroupResult) -> dict[str, str | int]:
    return {
        "m": result.required_count,
        "s": result.satisfied_count,
        "r": result.remaining_count,
        "u": result.unschedulable_count,
        "uu": result.unresolvable_count,
        "status": GroupStatus.Name(result.status).removeprefix(STATUS_PREFIX),
        "domain": result.domain_value,
        "tried": result.candidates_tried,
        "pruned": result.candidates_pruned,
    }
