"""Where validation begins: from any object of a request to the list of all that is wrong with it.

Paths are relative to the object and spelled as in manifests.
Decides nothing that needs another object: that is for admission, and for the checks before scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from muster.model.disruption import PodDisruptionBudget
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import CLUSTER_SCOPED_KINDS, ObjectKey
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.priority import PriorityClass
from muster.model.workload import Workload
from muster.validation.disruption_budget import disruption_budget_faults
from muster.validation.fields import Faults
from muster.validation.group import GroupRules
from muster.validation.node import node_faults
from muster.validation.pod import PodRules
from muster.validation.priority import priority_class_faults
from muster.validation.violations import Violation
from muster.validation.workload import workload_faults

_FAULTS: dict[type[ClusterObject], Callable[[Any], Faults]] = {
    Node: node_faults,
    Workload: workload_faults,
    PriorityClass: priority_class_faults,
    PodDisruptionBudget: disruption_budget_faults,
}


class Rules:
    """What is remembered of pods and groups that share much, over calls and in bounded memory."""

    def __init__(self) -> None:
        self.pods = PodRules()
        self.groups = GroupRules()


def validate(sent: ClusterObject | PodBatch, rules: Rules | None = None) -> list[Violation]:
    """Every fault of an object as a client sent it, in the order of its fields; none: the list is empty.

    Give objects the same `rules`, those of later calls too, so that what they share is looked at once.
    """
    rules = rules or Rules()
    if isinstance(sent, Pod):
        faults = rules.pods.pod_faults(sent)
    elif isinstance(sent, PodBatch):
        faults = rules.pods.batch_faults(sent)
    elif isinstance(sent, PodGroup | CompositePodGroup):
        faults = rules.groups.group_faults(sent)
    else:
        faults = tuple(_FAULTS[type(sent)](sent))
    return name_in_texts(subject_of(sent), faults) if faults else []


def name_in_texts(subject: str, faults: Iterable[Violation]) -> list[Violation]:
    """The faults with what they concern in front of their texts."""
    return [fault._replace(description=f"{subject}: {fault.description}") for fault in faults]


def key_of(sent: ClusterObject) -> ObjectKey:
    """The key under which an object is stored: namespaced kinds that name no namespace belong to the default one."""
    key = sent.key
    if key.namespace or key.kind in CLUSTER_SCOPED_KINDS:
        return key
    return ObjectKey(key.kind, DEFAULT_NAMESPACE, key.name)


def subject_of(sent: ClusterObject | PodBatch) -> str:
    """Kind, namespace and name, as descriptions give them."""
    if isinstance(sent, PodBatch):
        return f"PodBatch {sent.template.namespace or DEFAULT_NAMESPACE}/{_span(sent.names)}"
    return str(key_of(sent))


def _span(names: tuple[str, ...]) -> str:
    if not names:
        return "(no names)"
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
