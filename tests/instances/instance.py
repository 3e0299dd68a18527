"""What an instance file says: a small cluster, what runs on it, one root unit to place, and a verdict proved elsewhere.

A family is a JSON list of `{seed, verdict, instance}`. Its units may evict if any of its records names the `cheapest`
victims. Amounts: cpu in milli, memory in MiB, anything else in pieces. A node without "pods" has 110 slots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POD_SLOTS = 110
FEASIBLE, INFEASIBLE = "FEASIBLE", "INFEASIBLE"


class InstanceFormatError(ValueError):
    """A file is no family of instances."""


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """By Kubernetes' rules: an empty key (with Exists) or effect means any."""
        if self.effect not in {"", taint.effect} or self.key not in {"", taint.key}:
            return False
        return self.operator == "Exists" or (self.key == taint.key and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class NodePlan:
    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()

    @property
    def slots(self) -> int:
        return self.allocatable.get("pods", POD_SLOTS)


@dataclass(frozen=True, slots=True)
class PodPlan:
    """`bound_to` is the node of a running pod, None for one to be placed; `group` None for a pod of its own."""

    name: str
    requests: Mapping[str, int]
    group: str | None = None
    bound_to: str | None = None
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """`minimum` counts pods of a leaf, child groups of a composite; `topology` is a node label or None."""

    name: str
    is_leaf: bool
    parent: str | None
    minimum: int
    is_gang: bool = True
    topology: str | None = None
    evicted_whole: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    name: str
    max_unavailable: int
    selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Instance:
    """Groups, nodes and pods by name; `may_evict` says whether the unit's own policy lets it preempt."""

    target: str
    groups: Mapping[str, GroupPlan]
    nodes: Mapping[str, NodePlan]
    pods: Mapping[str, PodPlan]
    budgets: tuple[Budget, ...] = ()
    may_evict: bool = False

    def children(self, name: str) -> list[GroupPlan]:
        return [group for group in self.groups.values() if group.parent == name]

    def members(self, name: str) -> list[PodPlan]:
        return [pod for pod in self.pods.values() if pod.group == name]

    def ancestors(self, name: str | None) -> Iterator[GroupPlan]:
        """A group and all above it, from below."""
        while name is not None:
            yield self.groups[name]
            name = self.groups[name].parent

    def root(self, name: str) -> GroupPlan:
        *_, root = self.ancestors(name)
        return root

    def depth(self, name: str) -> int:
        """1 for a root."""
        return sum(1 for _ in self.ancestors(name))

    def is_wanted(self, pod: PodPlan) -> bool:
        """Whether a pod waits for a node as a member of the target."""
        return pod.bound_to is None and pod.group is not None and self.root(pod.group).name == self.target


@dataclass(frozen=True, slots=True)
class Case:
    """One instance of a family with the verdict that was proved for it."""

    family: str
    seed: int
    verdict: str
    instance: Instance


def family(path: Path) -> list[Case]:
    """The cases of a file in its order. Raises InstanceFormatError."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        may_evict = any("cheapest" in item for item in listed)
        return [
            Case(path.stem, item["seed"], item["verdict"], instance_of(item["instance"], may_evict=may_evict))
            for item in listed
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InstanceFormatError(f"{path}: no family of instances: {error!r}") from error


def instance_of(written: Mapping[str, Any], *, may_evict: bool = False) -> Instance:
    """An instance as it is written. Raises KeyError or TypeError if something is missing."""
    return Instance(
        target=written["target"],
        groups={each["name"]: _group(each) for each in written["groups"]},
        nodes={each["name"]: _node(each) for each in written["nodes"]},
        pods={each["name"]: _pod(each) for each in written["pods"]},
        budgets=tuple(
            Budget(each["name"], each["max_disruptions"], each["selector"]) for each in written["pdbs"]
        ),
        may_evict=may_evict,
    )


def _group(written: Mapping[str, Any]) -> GroupPlan:
    return GroupPlan(
        name=written["name"],
        is_leaf=written["kind"] == "leaf",
        parent=written["parent"],
        minimum=written["min_count"] if written["policy"] == "gang" else 1,
        is_gang=written["policy"] == "gang",
        topology=written["topology"],
        evicted_whole=written["disruption"] == "All",
        priority=written["priority"],
    )


def _node(written: Mapping[str, Any]) -> NodePlan:
    taints = tuple(Taint(each["key"], each["value"], each["effect"]) for each in written["taints"])
    return NodePlan(written["name"], written["allocatable"], written["labels"], taints)


def _pod(written: Mapping[str, Any]) -> PodPlan:
    return PodPlan(
        name=written["name"],
        requests=written["requests"],
        group=written["group"],
        bound_to=written["bound_to"],
        priority=written["priority"],
        labels=written["labels"],
        node_selector=written["node_selector"],
        tolerations=tuple(
            Toleration(each["key"], each["operator"], each["value"], each["effect"])
            for each in written["tolerations"]
        ),
    )
