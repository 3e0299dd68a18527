"""What an explanation is made of: results with more reasons than a decision keeps, and changes that would help.

Codes are for programs, texts for people; every number that a text names is in the details too. A decision's own
codes (filters, domains) keep their meaning, those below are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from muster.core.decision import Decision, GroupResult, Status
from muster.model.meta import ObjectKey

FIRST_FAILURE = "FIRST_FAILURE"
"""On the root: the group whose own check failed, not only that of a child."""
DOMAIN_FAILED = "DOMAIN_FAILED"
"""A domain that was tried for the group: what stopped it there."""
DOMAIN_RULED_OUT = "DOMAIN_RULED_OUT"
"""A domain whose capacity cannot hold the minimum: what it lacks."""
MORE_DOMAINS = "MORE_DOMAINS"
"""Domains that lack more than those that are told one by one."""
MISSING_ROOM = "MISSING_ROOM"
"""Of a leaf: pods that found no room, by a resource that keeps nodes from taking one more."""
MISSING_NODES = "MISSING_NODES"
"""Of a leaf: pods that no node takes, whatever is free on it."""
ROOM_PROMISED = "ROOM_PROMISED"
"""On the root: room that is kept for pods of other units, nominated or with a reservation."""
SEARCH_PROVED = "SEARCH_PROVED"
SEARCH_UNDECIDED = "SEARCH_UNDECIDED"
SEARCH_NOT_MADE = "SEARCH_NOT_MADE"
PREEMPTION_POSSIBLE = "PREEMPTION_POSSIBLE"
PREEMPTION_UNDER_WAY = "PREEMPTION_UNDER_WAY"
PREEMPTION_CANNOT_HELP = "PREEMPTION_CANNOT_HELP"
PREEMPTION_FORBIDDEN = "PREEMPTION_FORBIDDEN"

UNSUCCESSFUL = (Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE)


class HelpCode(Enum):
    """What to change; the values are the codes in the API."""

    LOWER_MINIMUM = "LOWER_MINIMUM"
    RELAX_CONSTRAINT = "RELAX_CONSTRAINT"
    UNCORDON_NODES = "UNCORDON_NODES"
    ADD_NODES = "ADD_NODES"
    ADD_MEMBERS = "ADD_MEMBERS"
    REMOVE_GATES = "REMOVE_GATES"
    RELEASE_ROOM = "RELEASE_ROOM"
    REMOVE_PODS = "REMOVE_PODS"


@dataclass(frozen=True, slots=True)
class Help:
    """One change that lets the unit be scheduled: it was tried. By itself it is enough.

    refs: objects to change; for ADD_NODES a node like those to add. count: nodes to add, pods to remove, members to
    add, or what the minimum would be; 0 where nothing is counted. size: how much changes, to compare helps by.
    proved: less of the same would not do; otherwise none smaller was found.
    """

    code: HelpCode
    message: str
    refs: tuple[ObjectKey, ...] = ()
    count: int = 0
    size: int = 1
    proved: bool = True
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The present decision on a unit, and its result with what stopped each group. helps: the smallest first."""

    decision: Decision
    result: GroupResult | None
    helps: tuple[Help, ...] = ()


def first_failure(result: GroupResult, level: int = 1) -> tuple[GroupResult, int] | None:
    """The failed group none of whose children failed, the first on the way down, and its level; None if all hold."""
    if result.status not in UNSUCCESSFUL:
        return None
    for child in result.children:
        below = first_failure(child, level + 1)
        if below is not None:
            return below
    return result, level


def failed_path(result: GroupResult) -> Iterator[GroupResult]:
    """The failed groups from the root down to the first failure."""
    current: GroupResult | None = result if result.status in UNSUCCESSFUL else None
    while current is not None:
        yield current
        current = next((child for child in current.children if child.status in UNSUCCESSFUL), None)


def results_below(result: GroupResult) -> Iterator[GroupResult]:
    """The result and all below it, parents first."""
    yield result
    for child in result.children:
        yield from results_below(child)
