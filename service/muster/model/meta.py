"""What all kinds share: identity, metadata, owner references, conditions, label selectors.

Field names are Kubernetes' in snake_case. Times are whole microseconds since the epoch (`_us`), None where unset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, Protocol

NODE = "Node"
POD = "Pod"
POD_GROUP = "PodGroup"
COMPOSITE_POD_GROUP = "CompositePodGroup"
WORKLOAD = "Workload"
PRIORITY_CLASS = "PriorityClass"
POD_DISRUPTION_BUDGET = "PodDisruptionBudget"

KINDS = (NODE, POD, POD_GROUP, COMPOSITE_POD_GROUP, WORKLOAD, PRIORITY_CLASS, POD_DISRUPTION_BUDGET)
CLUSTER_SCOPED_KINDS = frozenset({NODE, PRIORITY_CLASS})
ORDINAL_BITS = 20
ORDINAL_OF = attrgetter("ordinal")

GROUP_KINDS = frozenset({POD_GROUP, COMPOSITE_POD_GROUP})


class ObjectKey(NamedTuple):
    """The identity of an object inside its cluster; `namespace` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """A link to an owner; deleting the owner deletes what it owns (semantics of propagation in Delete)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """Kubernetes' condition: `last_transition_us` moves only when `status` does."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_us: int = 0


@dataclass(frozen=True, slots=True)
class SelectorRequirement:
    """One expression of a label or node selector; `operator` is Kubernetes' word (In, NotIn, Exists, ...)."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All of `match_labels` and `match_expressions` must hold; an empty selector selects everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[SelectorRequirement, ...] = ()


class _Keyed:
    """Room for an object's key, which is asked for far more often than objects are made."""

    __slots__ = ("_key",)
    _key: ObjectKey


class HasKey(Protocol):
    @property
    def key(self) -> ObjectKey: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesObject(_Keyed):
    """Identity and metadata, flat in every kind.

    `ordinal` is the creation order that every rule about age uses, and unique in a cluster: the revision of the
    Apply call that made the object, shifted by ORDINAL_BITS, plus the place in that call. It is also the integer
    key of a pod in the store and in a snapshot. `resource_version` is the revision of the last write. Server-owned:
    uid (if the caller gave none), resource_version, generation, ordinal, creation_us, deletion_us,
    deletion_grace_seconds.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: int = 0
    generation: int = 1
    ordinal: int = 0
    creation_us: int = 0
    deletion_us: int | None = None
    deletion_grace_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def kept_key(self, kind: str) -> ObjectKey:
        """The key of a namespaced object, made once."""
        try:
            return self._key
        except AttributeError:
            made = ObjectKey(kind, self.namespace, self.name)
            object.__setattr__(self, "_key", made)
            return made
