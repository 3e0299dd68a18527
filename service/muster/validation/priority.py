"""Rules of priorities: the three fields that pods, groups and templates share, and PriorityClass itself.

Whether class and number agree is for admission to say: it knows the classes.
"""

from __future__ import annotations

from typing import Protocol

from muster.model.meta import PRIORITY_CLASS
from muster.model.names import dns_subdomain_fault
from muster.model.priority import (
    HIGHEST_USER_PRIORITY,
    NEVER,
    PREEMPT_LOWER_PRIORITY,
    SYSTEM_CLASSES,
    PriorityClass,
)
from muster.validation.fields import Faults, optional_choice_faults, optional_name_faults, range_faults
from muster.validation.metadata import metadata_faults
from muster.validation.violations import INVALID, Violation

PREEMPTION_POLICIES = frozenset({PREEMPT_LOWER_PRIORITY, NEVER})
RESERVED_PREFIX = "system-"
LOWEST_PRIORITY = -(2**31)

_SYSTEM_NAMES = frozenset(system_class.name for system_class in SYSTEM_CLASSES)


class Prioritised(Protocol):
    """What has a priority: a pod's spec, a group's spec, a template."""

    @property
    def priority_class_name(self) -> str: ...

    @property
    def priority(self) -> int | None: ...

    @property
    def preemption_policy(self) -> str | None: ...


def priority_faults(path: str, spec: Prioritised) -> Faults:
    """Class, number and preemption policy; `path` is that of what has them (`spec`).

    A number beyond what users may ask for stands only beside the name of a built-in class.
    """
    yield from optional_name_faults(
        f"{path}.priorityClassName", spec.priority_class_name, dns_subdomain_fault
    )
    if spec.priority_class_name not in _SYSTEM_NAMES:
        yield from range_faults(f"{path}.priority", spec.priority, LOWEST_PRIORITY, HIGHEST_USER_PRIORITY)
    yield from optional_choice_faults(f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)


def priority_class_faults(priority_class: PriorityClass) -> Faults:
    """All faults of a PriorityClass."""
    yield from metadata_faults(PRIORITY_CLASS, priority_class)
    if priority_class.name.startswith(RESERVED_PREFIX):
        yield Violation(
            "metadata.name", INVALID, f"must not begin with {RESERVED_PREFIX!r}, which is reserved"
        )
    yield from range_faults("value", priority_class.value, LOWEST_PRIORITY, HIGHEST_USER_PRIORITY)
    yield from optional_choice_faults(
        "preemptionPolicy", priority_class.preemption_policy, PREEMPTION_POLICIES
    )
