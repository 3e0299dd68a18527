"""Nodes of a test cluster. A rack of `free=n` is one node with room for n pods of one cpu."""

from __future__ import annotations

from dataclasses import replace

from muster.model.node import Node, Taint

HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str,
    cpu: str = "4",
    *,
    memory: str = "64Gi",
    pods: int = 110,
    labels: dict[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    **extended: str,
) -> Node:
    """One node; its host name is a label too. `gpu="2"` and the like are extended resources example.com/gpu."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    amounts |= {f"example.com/{resource}": amount for resource, amount in extended.items()}
    return Node(
        name=name,
        labels={HOSTNAME: name, **(labels or {})},
        taints=taints,
        unschedulable=unschedulable,
        capacity=amounts,
        allocatable=amounts,
    )


def rack(name: str, *, free: int) -> list[Node]:
    """A rack with room for so many pods of one cpu."""
    return [node(f"node-{name}", str(free), labels={"rack": name})]


def block(name: str, *racks: list[Node]) -> list[Node]:
    """Racks that share a block."""
    return [replace(item, labels={**item.labels, "block": name}) for of_rack in racks for item in of_rack]
