"""What preemption may take and must respect, in columns (KEP-5710): disruption units, budgets, rooms promised earlier.

The engine builds these from live objects, and only for a unit that needs them; the core reads them and never changes
them. Which units are potential victims is for the engine to say; which of them go is for `core.preemption`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.core.decision import Assignments
from muster.model.meta import ObjectKey


@dataclass(frozen=True, slots=True)
class DisruptionBudgets:
    """The PodDisruptionBudgets that select a pod of a potential victim, one entry a budget.

    allowed: how many of its pods may go now, by the budget's own arithmetic; below 0 counts as 0.
    pods: ordinals of the potential victims' pods that it selects.
    """

    keys: tuple[ObjectKey, ...] = ()
    allowed: tuple[int, ...] = ()
    pods: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class DisruptionUnits:
    """The potential victims of one unit, one entry each, in any order: the same units give the same decision.

    A unit is listed if its priority is below the preemptor's and a pod of it is bound, live and not leaving, whatever
    its scheduler; only such pods are listed.
    keys: the highest ancestor whose disruption mode is All, else the pod. priorities: as victims, that is of the
    topmost known group above. starts: when the earliest of its pods began to run (`start_time`, else time of
    binding), in any unit that compares. pods: ordinals, ascending. What a pod takes and where it runs is in the
    snapshot; pods that are not bound there, or leaving, are left out.
    """

    keys: tuple[ObjectKey, ...] = ()
    priorities: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    pods: tuple[tuple[int, ...], ...] = ()
    budgets: DisruptionBudgets = DisruptionBudgets()


@dataclass(frozen=True, slots=True)
class PromisedRoom:
    """Nominated pods of other units, of equal or higher priority than this one; columns, one entry a pod.

    Lower ones are not listed: their room may be taken. Pods that are bound by now are not listed either.
    """

    signatures: tuple[int, ...] = ()
    node_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierPreemption:
    """What an earlier preemption left behind for the unit that is decided now.

    nominations: its own, as they were decided. is_waiting: whether pods that it waits for are still leaving; then
    nobody else is evicted for it. stayed: pods that were to leave and did not in time; for this unit they count as
    staying.
    """

    nominations: Assignments = field(default_factory=Assignments)
    is_waiting: bool = False
    stayed: frozenset[int] = frozenset()
