"""What admission answers."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.validation.violations import IMMUTABLE, Violation


class Outcome(Enum):
    """What applying did to one object."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    UNCHANGED = "UNCHANGED"


class Admitted(NamedTuple):
    """The object to store; if UNCHANGED, the very one that is stored."""

    object: ClusterObject
    outcome: Outcome


class NewPods(NamedTuple):
    """The pods of a batch, or of a run of pods that share all but their names, of which none existed; at least one, in order."""

    pods: list[Pod]


class Rejected(NamedTuple):
    """Faults with paths relative to the object, at least one."""

    violations: tuple[Violation, ...]


class Conflict(NamedTuple):
    """An object that stands in the way. `type`: RESOURCE_VERSION_MISMATCH, UID_MISMATCH or OBJECT_DELETING."""

    type: str
    subject: str
    description: str


Answer = Admitted | Rejected | Conflict
Faults = tuple[Violation, ...]


def immutable(path: str) -> Violation:
    """The fault of a field that differs from what is stored and may not."""
    return Violation(path, IMMUTABLE, "must not change once the object exists")
