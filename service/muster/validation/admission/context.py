"""What admission needs to know beside the two objects, and what it remembers of pods and groups over calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.model.group import GroupSpec
from muster.model.meta import ORDINAL_BITS
from muster.model.pod import PodSpec
from muster.validation.admission.priority_classes import PriorityClasses
from muster.validation.admission.results import Faults
from muster.validation.violations import Violation

Spec = TypeVar("Spec", PodSpec, GroupSpec)
Merged = PodSpec | Faults

SERVER_OWNED = (
    "namespace",
    "uid",
    "resource_version",
    "generation",
    "ordinal",
    "creation_us",
    "deletion_us",
    "deletion_grace_seconds",
)
"""Fields of a new object that no caller sets, or not as it is kept, in the order of `AdmissionContext.of_new`."""
_MOST = 4096


class SpecMemo:
    """Resolved specs by the identity of what was sent, so that pods of one shape share one in every call, as groups do.

    Keeps what it has seen alive, in bounded number. When classes change, a spec that they do not concern stays the same
    object. One a cluster.
    """

    def __init__(self) -> None:
        self._created: dict[int, tuple[object, PriorityClasses, Any]] = {}
        self._merged: dict[tuple[int, int], tuple[PodSpec, PodSpec, Merged]] = {}

    def created(
        self,
        sent: Spec,
        classes: PriorityClasses,
        resolve: Callable[[Spec, PriorityClasses], Spec | Violation],
    ) -> Spec | Violation:
        """The spec that a new pod or group gets where these classes are in force."""
        known = self._created.get(id(sent))
        before: Spec | Violation | None = None if known is None else known[2]
        if known is not None and before is not None and known[1] is classes:
            return before
        resolved = resolve(sent, classes)
        if before == resolved:
            resolved = before
        if len(self._created) >= _MOST:
            self._created.clear()
        self._created[id(sent)] = (sent, classes, resolved)
        return resolved

    def merged(self, sent: PodSpec, stored: PodSpec, merge: Callable[[PodSpec, PodSpec], Merged]) -> Merged:
        """The spec that an existing pod gets."""
        key = (id(sent), id(stored))
        known = self._merged.get(key)
        if known is None:
            if len(self._merged) >= _MOST:
                self._merged.clear()
            known = self._merged[key] = (sent, stored, merge(sent, stored))
        return known[2]


@dataclass(slots=True)
class AdmissionContext:
    """One call: the revision that it becomes, its time, where uids come from, the classes in force.

    `classes` are those of the cluster with the PriorityClasses of this call written over them; keep the same value while
    none changes. `memo` outlives the call. `place` counts the objects created so far.
    """

    revision: int
    time_us: int
    make_uid: Callable[[], str]
    make_uids: Callable[[int], Sequence[str]]
    classes: PriorityClasses
    memo: SpecMemo
    place: int = 0

    def of_new(self, namespace: str, uid: str, ordinal: int) -> tuple[str | int | None, ...]:
        """The values of SERVER_OWNED in a new object."""
        return namespace, uid, self.revision, 1, ordinal, self.time_us, None, None

    def next_ordinal(self) -> int:
        """The creation order of the next new object: unique in the cluster."""
        ordinal = (self.revision << ORDINAL_BITS) + self.place
        self.place += 1
        return ordinal

    def next_ordinals(self, count: int) -> range:
        """Those of the next new objects."""
        first = (self.revision << ORDINAL_BITS) + self.place
        self.place += count
        return range(first, first + count)
