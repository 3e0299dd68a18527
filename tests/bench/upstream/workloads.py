"""All workloads of upstream's names: basic pods, gangs, groups in racks, trees, preemption; and small ones of each kind."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.upstream.workload import (
    LARGE_IN_DOMAINS,
    LARGE_UNITS,
    RACK,
    SMALL_IN_DOMAINS,
    SMALL_UNITS,
    ZONE,
    Policy,
    Targets,
    Victims,
    Workload,
)

NODES = 5_000
PREEMPTOR_NODES = 100
FEW_NODES, FEW_UNITS, FEW_PODS, FEW_GROUPS, TENTH = 100, 4, 4, 10, 10


def basic(pods: int, running: int = 0) -> Workload:
    name = f"SchedulingBasic/5000Nodes_{pods}Pods"
    return Workload(name, NODES, pods, groups=0, running=running)


def small_gangs(gangs: int) -> Workload:
    name = f"GangScheduling/5000Nodes_{gangs}Gangs_{3 * gangs}Pods"
    return Workload(name, NODES, gangs, pods=3, targets=SMALL_UNITS)


def large_gangs(gangs: int, pods: int = 1_000) -> Workload:
    name = f"GangScheduling/5000Nodes_{gangs}Gangs_{gangs * pods}Pods_{pods}PerGroup"
    return Workload(name, NODES, gangs, pods=pods, targets=LARGE_UNITS)


def in_racks(workload: Workload, targets: Targets) -> Workload:
    name = workload.name.replace("GangScheduling", "TopologyAwareScheduling")
    return replace(workload, name=name, group_key=RACK, targets=targets)


def small_groups_in_racks(gangs: int) -> Workload:
    name = f"GangScheduling/5000Nodes_{gangs}Gangs_{4 * gangs}Pods"
    return in_racks(Workload(name, NODES, gangs, pods=4), SMALL_IN_DOMAINS)


def trees(kind: str, units: int, pods: int) -> Workload:
    """Roots with two groups of so many pods: "Basic", "Gang", or "TopologyAware", a zone for a root, a rack for a group."""
    name = f"CPG{kind}Scheduling/5000Nodes_{units}CPGs_{2 * units}Groups_{2 * units * pods}Pods"
    made = Workload(name, NODES, units, groups=2, pods=pods)
    large = made.is_large
    if kind == "TopologyAware":
        targets = LARGE_IN_DOMAINS if large else SMALL_IN_DOMAINS
        return replace(made, root_key=ZONE, group_key=RACK, targets=targets)
    policy = Policy.BASIC if kind == "Basic" else Policy.GANG
    return replace(made, policy=policy, targets=LARGE_UNITS if large else SMALL_UNITS)


TREES = tuple(
    trees(kind, units, pods)
    for kind in ("Basic", "Gang", "TopologyAware")
    for units, pods in (
        (500, 4 if kind == "TopologyAware" else 3),
        (1_000, 4 if kind == "TopologyAware" else 3),
        (1_500, 4 if kind == "TopologyAware" else 3),
        (3, 500),
        (3, 1_000),
        (3, 1_500),
    )
)
PREEMPTION = (
    Workload(
        "GangPreemptionBasic/100Nodes_1PreemptorGang_100Pods_Evicting_1000InitPods",
        PREEMPTOR_NODES,
        1,
        pods=100,
        milli_cpus=3_970,
        victims=Victims(1_000, 40),
    ),
    Workload(
        "GangPreemptionPodGroups/100Nodes_1PreemptorGang_100Pods_Evicting_5LowPriorityGangs",
        PREEMPTOR_NODES,
        1,
        pods=100,
        milli_cpus=3_500,
        victims=Victims(500, 600, groups=5),
    ),
    Workload(
        "PodPreemptionPodGroups/1000Nodes_100PreemptorPods_1000LowPriorityGangs",
        1_000,
        100,
        groups=0,
        milli_cpus=3_900,
        victims=Victims(10_000, 390, groups=1_000),
    ),
)
WORKLOADS = (
    basic(10_000, running=1_000),
    basic(50_000),
    *map(small_gangs, (1_000, 2_000, 3_000)),
    *map(large_gangs, (3, 6, 9)),
    large_gangs(10, 5_000),
    *map(small_groups_in_racks, (750, 1_500, 2_250)),
    *(in_racks(large_gangs(gangs), LARGE_IN_DOMAINS) for gangs in (3, 6, 9)),
    *TREES,
    *PREEMPTION,
)


def small(workload: Workload) -> Workload:
    """The same shape in a size that takes no time: it shows that a workload runs, not how fast."""
    victims = workload.victims
    if victims is None:
        return replace(
            workload,
            nodes=FEW_NODES,
            units=min(workload.units, FEW_UNITS),
            pods=min(workload.pods, FEW_PODS),
            running=min(workload.running, FEW_NODES),
        )
    groups = victims.groups if victims.groups <= FEW_GROUPS else victims.groups // TENTH
    return replace(
        workload,
        nodes=workload.nodes // TENTH,
        units=max(1, workload.units // TENTH),
        pods=max(1, workload.pods // TENTH),
        victims=replace(victims, pods=victims.pods // TENTH, groups=groups),
    )


SMALL = tuple({workload.name.partition("/")[0]: small(workload) for workload in WORKLOADS}.values())
