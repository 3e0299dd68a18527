"""How conditions change (semantics 6): an unchanged one is not written, a same-status update keeps its time. Pure."""

from __future__ import annotations

from dataclasses import replace

from muster.model.group import (
    COMPOSITE_POD_GROUP_INITIALLY_SCHEDULED,
    POD_GROUP_INITIALLY_SCHEDULED,
    AnyGroup,
    PodGroup,
)
from muster.model.meta import Condition
from muster.model.pod import POD_SCHEDULED, PodStatus
from muster.model.variations import varied

TRUE = "True"
FALSE = "False"
SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
SCHEDULING_GATED = "SchedulingGated"
INVALID = "Invalid"


def with_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with `new` in place of its type; the very same tuple if nothing but the time would differ."""
    old = next((c for c in conditions if c.type == new.type), None) if conditions else None
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = replace(new, last_transition_us=old.last_transition_us)
    return conditions if new == old else tuple(new if c is old else c for c in conditions)


def group_condition_type(group: AnyGroup) -> str:
    """The name of the condition that tells whether the group has been scheduled."""
    is_leaf = isinstance(group, PodGroup)
    return POD_GROUP_INITIALLY_SCHEDULED if is_leaf else COMPOSITE_POD_GROUP_INITIALLY_SCHEDULED


def with_group_condition(
    group: AnyGroup, *, scheduled: bool, reason: str, message: str, now_us: int
) -> AnyGroup:
    """The group with its condition set; the same object if unchanged, or True already (which is final)."""
    kind = group_condition_type(group)
    if any(c.type == kind and c.status == TRUE for c in group.conditions):
        return group
    new = Condition(kind, TRUE if scheduled else FALSE, reason, message, group.generation, now_us)
    conditions = with_condition(group.conditions, new)
    return group if conditions is group.conditions else varied(group, conditions=conditions)


class PodConditions:
    """Makes pod statuses so that pods in the same state share one: asked for the same change twice, it answers the same object."""

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us
        self._made: dict[tuple[int, str, str, str, int], tuple[PodStatus, PodStatus]] = {}
        self._bare: dict[int, tuple[PodStatus, PodStatus]] = {}
        self._scheduled: tuple[PodStatus, int, PodStatus] | None = None

    def scheduled(self, status: PodStatus, generation: int) -> PodStatus:
        """PodScheduled True. Mostly asked for one pod after the other of the same gang."""
        last = self._scheduled
        if last is None or last[0] is not status or last[1] != generation:
            last = self._scheduled = (status, generation, self._set(status, TRUE, "", "", generation))
        return last[2]

    def waiting(self, status: PodStatus, reason: str, message: str, generation: int) -> PodStatus:
        """PodScheduled False with a reason of Kubernetes: Unschedulable, SchedulingGated, SchedulerError."""
        return self._set(status, FALSE, reason, message, generation)

    def without_nomination(self, status: PodStatus) -> PodStatus:
        """No node in view any more."""
        made = self._bare.get(id(status))
        if made is None:
            made = self._bare[id(status)] = (status, varied(status, nominated_node_name=""))
        return made[1]

    def _set(self, status: PodStatus, value: str, reason: str, message: str, generation: int) -> PodStatus:
        key = (id(status), value, reason, message, generation)
        made = self._made.get(key)
        if made is None:
            new = Condition(POD_SCHEDULED, value, reason, message, generation, self._now_us)
            conditions = with_condition(status.conditions, new)
            changed = status if conditions is status.conditions else varied(status, conditions=conditions)
            made = self._made[key] = (status, changed)
        return made[1]
