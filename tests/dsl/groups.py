"""Groups and pods of a test, as descriptions that a cluster turns into a tree with signatures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    Resources,
    Toleration,
    TopologySpreadConstraint,
)

NAMESPACE = "default"


@dataclass(frozen=True)
class Policy:
    is_gang: bool
    minimum: int


@dataclass(frozen=True)
class GroupPlan:
    """A group to be scheduled: leaf if it has no children."""

    name: str
    policy: Policy
    topology_key: str | None = None
    pods: tuple[Pod, ...] = ()
    children: tuple[GroupPlan, ...] = ()
    is_leaf: bool = True
    admissible: bool = True
    bound: tuple[str, ...] = field(default=())
    """Nodes on which members run already."""


def gang(minimum: int) -> Policy:
    return Policy(is_gang=True, minimum=minimum)


def basic() -> Policy:
    return Policy(is_gang=False, minimum=1)


def pod(
    name: str = "pod",
    *,
    cpu: str = "1",
    memory: str = "0",
    labels: dict[str, str] | None = None,
    priority: int = 0,
    node_selector: dict[str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: tuple[Toleration, ...] = (),
    spread: tuple[TopologySpreadConstraint, ...] = (),
    host_port: int = 0,
    **extended: str,
) -> Pod:
    """One pod with one container."""
    amounts = {"cpu": cpu, "memory": memory}
    amounts |= {f"example.com/{resource}": amount for resource, amount in extended.items()}
    ports = (ContainerPort(host_port=host_port, container_port=host_port),) if host_port else ()
    spec = PodSpec(
        containers=(Container(resources=Resources(requests=amounts), ports=ports),),
        node_selector=node_selector or {},
        affinity=affinity,
        tolerations=tolerations,
        topology_spread_constraints=spread,
        priority=priority,
    )
    return Pod(name=name, namespace=NAMESPACE, labels=labels or {}, spec=spec)


def pod_group(
    name: str,
    policy: Policy,
    *,
    pods: int | tuple[Pod, ...] = 0,
    cpu: str = "1",
    same: str | None = None,
    bound: tuple[str, ...] = (),
    admissible: bool = True,
) -> GroupPlan:
    """A leaf group: `pods` equal pods of `cpu`, or the given ones. `same` is the label of its topology constraint."""
    members = tuple(pod(f"{name}-{i}", cpu=cpu) for i in range(pods)) if isinstance(pods, int) else pods
    members = tuple(replace(item, name=item.name) for item in members)
    return GroupPlan(name, policy, same, members, bound=bound, admissible=admissible)


def composite(name: str, policy: Policy, *children: GroupPlan, same: str | None = None) -> GroupPlan:
    """A group of groups."""
    return GroupPlan(name, policy, same, children=children, is_leaf=False)
