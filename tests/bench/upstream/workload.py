"""Workloads that carry the names of Kubernetes' own scheduler benchmarks, so that figures can be set side by side.

Says what is on the nodes, and what comes; how it is decided and served is said elsewhere. Nodes, pods and counts are
those of the benchmarks of the same name: a node has 4 cpus, 32 GiB and room for 110 pods, a pod wants a tenth of a cpu.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
RACKS, ZONES = 50, 10


class Policy(Enum):
    """Of every group of a unit."""

    BASIC = "basic"
    GANG = "gang"


@dataclass(frozen=True, slots=True)
class Targets:
    """Pods a second: decided; served with a unit in each Apply, on each database; with a hundred of them in one."""

    decided: float | None = None
    served: float | None = None
    served_on_postgresql: float | None = None
    served_by_hundreds: float | None = None


@dataclass(frozen=True, slots=True)
class Victims:
    """What runs on all nodes evenly: so many groups (none: pods by themselves) of so many pods, of so many milli-cpus.

    The pods of a group are on neighbouring nodes.
    """

    pods: int
    milli_cpus: int
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """`units` equal ones: each has `groups` (none: one pod by itself; several: below a root) of `pods` pods.

    root_key, group_key: labels of which the root, and each group, wants one domain. running: pods that are there before,
    which nobody evicts.
    """

    name: str
    nodes: int
    units: int
    groups: int = 1
    pods: int = 1
    policy: Policy = Policy.GANG
    root_key: str | None = None
    group_key: str | None = None
    milli_cpus: int = 100
    running: int = 0
    victims: Victims | None = None
    targets: Targets = Targets()

    @property
    def pods_a_unit(self) -> int:
        return max(1, self.groups) * self.pods

    @property
    def is_large(self) -> bool:
        """Whether a unit is worth a transaction of its own."""
        return self.pods_a_unit >= LARGE

    def on(self, nodes: int) -> Workload:
        """The same on another number of nodes."""
        return replace(self, nodes=nodes)


LARGE = 500
SMALL_UNITS = Targets(decided=20_000, served=3_000, served_by_hundreds=10_000)
SMALL_IN_DOMAINS = replace(SMALL_UNITS, decided=15_000)
LARGE_UNITS = Targets(decided=200_000, served=30_000, served_on_postgresql=15_000)
LARGE_IN_DOMAINS = replace(LARGE_UNITS, decided=15_000)


def rack_of(node: int, nodes: int) -> int:
    """Racks, and zones of racks, are runs of neighbouring nodes."""
    return node * RACKS // nodes


def zone_of(node: int, nodes: int) -> int:
    return node * ZONES // nodes
