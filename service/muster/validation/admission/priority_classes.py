"""The priority classes of a cluster, as admission asks for them: by name, and the global default.

Also how a priority is resolved once, when a pod or group is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from muster.model.priority import PREEMPT_LOWER_PRIORITY, SYSTEM_CLASSES, PriorityClass
from muster.validation.priority import Prioritised
from muster.validation.violations import INVALID, Violation


class Resolved(NamedTuple):
    """Class ("" for none), number and preemption policy that a new object gets."""

    priority_class_name: str
    priority: int
    preemption_policy: str


class PriorityClasses:
    """An unchanging set of classes, the built-in ones included."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._own = {each.name: each for each in classes}
        self._by_name = self._own | {each.name: each for each in SYSTEM_CLASSES}
        self._defaults = sorted(each.name for each in self._own.values() if each.global_default)

    def find(self, name: str) -> PriorityClass | None:
        """The class of that name."""
        return self._by_name.get(name)

    def with_written(self, written: Iterable[PriorityClass]) -> PriorityClasses:
        """The classes once those of a call are written: objects of one call count for one another in any order."""
        return PriorityClasses((self._own | {each.name: each for each in written}).values())

    @property
    def global_default(self) -> PriorityClass | None:
        return self._own[self._defaults[0]] if self._defaults else None

    def other_default(self, name: str) -> str | None:
        """The name of a global default beside that class."""
        return next((each for each in self._defaults if each != name), None)


def resolve_priority(path: str, asked: Prioritised, classes: PriorityClasses) -> Resolved | Violation:
    """The priority of a new object from what it asks for; `path` is that of what asks (`spec`).

    Deviates from Kubernetes' Priority admission: a number is taken without a class, and beside one that is not known.
    """
    name, number = asked.priority_class_name, asked.priority
    found = classes.find(name) if name else None
    if name and found is None and number is None:
        return Violation(
            f"{path}.priorityClassName",
            INVALID,
            f"must name a class that exists, or come with a priority: {name!r}",
        )
    if found is not None and number is not None and number != found.value:
        return Violation(
            f"{path}.priority",
            INVALID,
            f"must be {found.value}, as {name!r} says, or be left out, not {number}",
        )
    if found is None and number is None:
        found = classes.global_default
    policy = asked.preemption_policy or (found.preemption_policy if found else None) or PREEMPT_LOWER_PRIORITY
    if found is not None:
        return Resolved(found.name, found.value, policy)
    return Resolved(name, number or 0, policy)
