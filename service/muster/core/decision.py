"""What a cycle decides: the value that the engine commits, and that determinism compares.

Names and numbers only; messages are composed from reasons by `core.messages`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from muster.model.meta import ObjectKey


class Status(IntEnum):
    """Status of a group after each child (semantics 5.2), from M, S, R, U, UU."""

    SUCCESS = 1
    WAIT = 2
    UNSCHEDULABLE = 3
    UNSCHEDULABLE_AND_UNRESOLVABLE = 4


class DecisionCode(Enum):
    """What became of the unit; the values are the names in the API without their prefix."""

    SCHEDULED = "SCHEDULED"
    WAITING_FOR_PREEMPTION = "WAITING_FOR_PREEMPTION"
    FITS_WITHOUT_PREEMPTION = "FITS_WITHOUT_PREEMPTION"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UNSCHEDULABLE_AND_UNRESOLVABLE"
    INVALID = "INVALID"
    SCHEDULER_ERROR = "SCHEDULER_ERROR"
    GATED = "GATED"
    PENDING = "PENDING"
    UNCHANGED = "UNCHANGED"


class SearchEnd(Enum):
    """How the bounded search ended (semantics 5.5)."""

    NOT_NEEDED = "NOT_NEEDED"
    FOUND = "FOUND"
    EXHAUSTED = "EXHAUSTED"
    BUDGET_SPENT = "BUDGET_SPENT"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something failed: a machine-readable code, its text, how many nodes it concerns, further facts."""

    code: str
    message: str
    node_count: int = 0
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """One level of the recursion.

    required, satisfied, remaining, unschedulable, unresolvable are M, S, R, U, UU of semantics 5.2.
    domain_key/domain_value: the chosen domain of a constrained group that succeeded, else "".
    tried, pruned: candidates that were simulated, and that a capacity bound ruled out.
    pod_reasons: per signature index, why pods of that signature were not placed (leaf groups).
    """

    key: ObjectKey
    status: Status
    required: int = 1
    satisfied: int = 0
    remaining: int = 0
    unschedulable: int = 0
    unresolvable: int = 0
    domain_key: str = ""
    domain_value: str = ""
    tried: int = 0
    pruned: int = 0
    reasons: tuple[Reason, ...] = ()
    pod_reasons: dict[int, tuple[Reason, ...]] = field(default_factory=dict)
    children: tuple[GroupResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignments:
    """Pod to node in columns, in the order in which the pods were placed.

    pods: ordinals; nodes: each node's name once, sorted; node_index: for each pod its place in `nodes`.
    """

    pods: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    node_index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """The bounded search of one cycle. budget: the steps that it might have taken; 0 if it was not allowed any."""

    end: SearchEnd = SearchEnd.NOT_NEEDED
    steps: int = 0
    budget: int = 0


class PreemptionEnd(Enum):
    """What preemption came to."""

    NOMINATED = "NOMINATED"
    """Nodes are nominated; the unit waits for victims, for pods that leave already, or for both."""
    NOT_NEEDED = "NOT_NEEDED"
    """The unit fits where nobody needs to leave; it is assigned there."""
    NO_FIT = "NO_FIT"
    """It would not fit even if all units of lower priority were gone."""
    NOT_FOUND = "NOT_FOUND"
    """No placement was found though all units of lower priority were taken as gone; that none exists is not proved."""
    NO_GAIN = "NO_GAIN"
    """Nothing more of it would fit even if all units of lower priority were gone."""


class Fate(Enum):
    """What became of a potential victim, and why."""

    EVICTED = "EVICTED"
    ABOVE_THRESHOLD = "ABOVE_THRESHOLD"
    """Stays: enough room is to be had from units of lower priority."""
    NOT_IN_THE_WAY = "NOT_IN_THE_WAY"
    """Stays: there is room for it beside the preemptor's pods as they were placed."""
    MADE_WAY_FOR = "MADE_WAY_FOR"
    """Stays: the preemptor's pods found other nodes."""


class UnitFate(NamedTuple):
    """A disruption unit and what became of it.

    pods: ordinals of its bound pods, ascending. breaks_budget: it could not be evicted without going past a budget.
    reason: the fate in words.
    """

    unit: ObjectKey
    priority: int
    fate: Fate
    breaks_budget: bool
    pods: tuple[int, ...]
    reason: str


class BudgetBreach(NamedTuple):
    """A budget that the victims go past: how many of its pods are evicted, and how many it allows."""

    budget: ObjectKey
    evicted: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """What preemption came to, if it was tried. Only with NOMINATED is there anything to carry out.

    nominations: where the unit's pods are to run, all that can be placed. victims: units to evict whole, most important
    first; may be empty. awaited: ordinals of pods that were leaving already and whose room the nominations use.
    reprieved: the other potential victims, most important first. pods_over_budget: evicted pods past zero in a budget
    that selects them; breaches: those budgets by key. steps: what was spent of the profile's move budget.
    """

    end: PreemptionEnd
    nominations: Assignments = Assignments()
    victims: tuple[UnitFate, ...] = ()
    reprieved: tuple[UnitFate, ...] = ()
    awaited: tuple[int, ...] = ()
    pods_over_budget: int = 0
    breaches: tuple[BudgetBreach, ...] = ()
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one cycle for one unit. `message` is the root's, as conditions carry it.

    preemption: None if it was not tried. WAITING_FOR_PREEMPTION without it: the unit still waits for an earlier
    preemption, whose nominations and victims stand as they are.
    asks_for_victims: nothing is settled yet. Preemption may help, and the unit came without its potential victims: it
    is to be decided again on the same snapshot with `Unit.victims`, and with this decision's `search` as `searched`.
    Whoever does not want preemption takes the decision as it is.
    """

    unit: ObjectKey
    code: DecisionCode
    result: GroupResult | None = None
    assignments: Assignments = Assignments()
    search: Search = Search()
    message: str = ""
    preemption: Preemption | None = None
    asks_for_victims: bool = False
