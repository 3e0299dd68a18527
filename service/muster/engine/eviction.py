"""Carries out a preemption in the revision of its decision (semantics 5.6 "Delay", 5.7): nominations and marks together.

Before that, the check that it is still what was decided: every victim is there, in its unit and of its priority, and
the nominated pods fit with them gone. Who leaves when is `deletion`'s, how the unit waits `nominations`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from muster.core.bound_pods import grouped
from muster.core.decision import Assignments, Decision, Preemption, PreemptionEnd, UnitFate
from muster.core.framework import Profile
from muster.core.promises import depart_leaving, keep_promises
from muster.core.recheck import first_conflict
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit
from muster.engine.cluster import Cluster
from muster.engine.conditions import TRUE, UNSCHEDULABLE, with_condition
from muster.engine.deletion import evict_pods
from muster.engine.domain_recheck import domains_hold
from muster.engine.hierarchy import subtree
from muster.engine.mutation import Mutation
from muster.engine.nominations import clear_nominations
from muster.engine.ports import DisruptedPods
from muster.engine.units import build_unit
from muster.model.meta import GROUP_KINDS, Condition, ObjectKey
from muster.model.pod import DISRUPTION_TARGET, Pod, PodStatus
from muster.model.variations import varied

PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
SECOND_US = 1_000_000


class Eviction(NamedTuple):
    """Who removes evicted pods, and how long a unit waits for them beyond their grace."""

    by_clients: bool = False
    timeout_seconds: int = 60


def preemption_to_carry_out(decision: Decision) -> Preemption | None:
    """What the decision nominates and evicts; None if it does not."""
    preemption = decision.preemption
    nominates = preemption is not None and preemption.end is PreemptionEnd.NOMINATED
    return preemption if nominates else None


def leaving_for(preemption: Preemption) -> int:
    """How many pods have to leave."""
    return sum(len(victim.pods) for victim in preemption.victims) + len(preemption.awaited)


def carry_out(
    mutation: Mutation,
    unit: ObjectKey,
    preemption: Preemption,
    pods: Mapping[int, Pod],
    message: str,
    eviction: Eviction,
) -> None:
    """Nominate, mark all victims, and begin to wait. `pods`: the unit's pending pods by ordinal, which say `message`."""
    cluster = mutation.cluster
    if cluster.waits.is_nominating(unit):
        clear_nominations(mutation, unit)
    nominated = _nominate(mutation, preemption.nominations, pods, message)
    victims = [
        cluster.disruption.running[ordinal] for victim in preemption.victims for ordinal in victim.pods
    ]
    leaving = cluster.disruption.leaving
    awaited = [leaving[ordinal] for ordinal in preemption.awaited if ordinal in leaving]
    until_us = max(
        (_gone_us(pod, mutation.now_us) for pod in chain(victims, awaited)), default=mutation.now_us
    )
    until_us += eviction.timeout_seconds * SECOND_US
    cluster.waits.begin(unit, nominated, chain(victims, awaited), until_us)
    because = f"preempted by {unit}, which has a higher priority"
    _mark_groups(mutation, preemption.victims, because)
    _mark_pods(mutation, victims, because)
    evict_pods(mutation, [pod.key for pod in victims], clients_evict=eviction.by_clients)


def disrupted_pods(cluster: Cluster, preemption: Preemption) -> DisruptedPods:
    """The pods of all units that the preemption names, before any of them goes."""
    running = cluster.disruption.running
    units = chain(preemption.victims, preemption.reprieved)
    pods = [running[ordinal] for unit in units for ordinal in unit.pods if ordinal in running]
    return DisruptedPods(
        tuple(pod.ordinal for pod in pods),
        tuple(pod.namespace for pod in pods),
        tuple(pod.name for pod in pods),
        tuple(pod.uid for pod in pods),
        tuple(pod.node_name for pod in pods),
        tuple(_grace_of(pod) for pod in pods),
    )


def preemption_holds(
    cluster: Cluster, unit: Unit, profile: Profile, preemption: Preemption, pods: Mapping[int, Pod]
) -> bool:
    """Whether it may be carried out on the present state, which has changed since it was decided."""
    nominations = preemption.nominations
    if any(ordinal not in pods for ordinal in nominations.pods):
        return False
    if not all(_is_unit_still(cluster, unit, victim) for victim in preemption.victims):
        return False
    if not _asks_no_more(unit.root, build_unit(cluster, unit.key).root):
        return False
    snapshot = cluster.feed.flush()
    if not domains_hold(cluster, unit, snapshot.nodes, nominations):
        return False
    mark = snapshot.mark()
    keep_promises(snapshot, unit.promised)
    depart_leaving(snapshot, unit.earlier.stayed)
    _remove(snapshot, preemption.victims)
    excluded = {
        place: unit.excluded_nodes[ordinal]
        for place, ordinal in enumerate(nominations.pods)
        if ordinal in unit.excluded_nodes
    }
    signatures = [cluster.feed.signature_of(pods[ordinal]) for ordinal in nominations.pods]
    names = [nominations.nodes[place] for place in nominations.node_index]
    conflict = first_conflict(snapshot, profile, signatures, names, excluded)
    snapshot.rollback(mark)
    return conflict is None


def _asks_no_more(then: GroupTree, now: GroupTree) -> bool:
    """Whether the room that was found for the tree will do as it is now: minimums, who is ready, who runs already."""
    return (
        now.key == then.key
        and now.minimum <= then.minimum
        and now.admissible >= then.admissible
        and now.satisfied >= then.satisfied
        and len(now.children) == len(then.children)
        and all(map(_asks_no_more, then.children, now.children))
    )


def _is_unit_still(cluster: Cluster, preemptor: Unit, victim: UnitFate) -> bool:
    """Whether the victim is made of the same pods, and of the same, lower priority."""
    table = cluster.disruption
    if table.pods_of(victim.unit) != set(victim.pods):
        return False
    now = table.unit_of(table.running[victim.pods[0]])
    return now == (victim.unit, victim.priority) and now.priority < preemptor.priority


def _remove(snapshot: Snapshot, victims: Iterable[UnitFate]) -> None:
    ordinals = np.array([ordinal for victim in victims for ordinal in victim.pods], dtype=np.int64)
    if len(ordinals):
        signatures, slots, _ = snapshot.pods.places(ordinals)
        for signature, at, numbers in grouped(signatures[slots >= 0], slots[slots >= 0]):
            snapshot.assume_many(signature, at, -numbers)


def _nominate(
    mutation: Mutation, nominations: Assignments, pods: Mapping[int, Pod], message: str
) -> list[ObjectKey]:
    """Write the node in view of each pod. Pods that share a status and a node share one again."""
    made: dict[tuple[int, int], PodStatus] = {}
    nominated = []
    for ordinal, place in zip(nominations.pods, nominations.node_index, strict=True):
        pod = mutation.state.pod(pods[ordinal].namespace, pods[ordinal].name) or pods[ordinal]
        waiting = mutation.pod_conditions.waiting(pod.status, UNSCHEDULABLE, message, pod.generation)
        status = made.get((id(waiting), place))
        if status is None:
            status = varied(waiting, nominated_node_name=nominations.nodes[place])
            made[id(waiting), place] = status
        mutation.set_pod_status(pod, status)
        nominated.append(pod.key)
    return nominated


def _mark_groups(mutation: Mutation, victims: Iterable[UnitFate], message: str) -> None:
    """The group that is taken whole and all groups below it say so."""
    for victim in victims:
        if victim.unit.kind in GROUP_KINDS:
            for group in list(subtree(mutation.state, victim.unit)):
                told = _target(message, group.generation, mutation.now_us)
                conditions = with_condition(group.conditions, told)
                if conditions is not group.conditions:
                    mutation.set_group(group, varied(group, conditions=conditions))


def _mark_pods(mutation: Mutation, victims: Sequence[Pod], message: str) -> None:
    made: dict[tuple[int, int], tuple[PodStatus, PodStatus]] = {}
    for pod in victims:
        status = pod.status
        known = made.get((id(status), pod.generation))
        if known is None:
            told = _target(message, pod.generation, mutation.now_us)
            marked = varied(status, conditions=with_condition(status.conditions, told))
            known = made[id(status), pod.generation] = (status, marked)
        mutation.set_pod_status(pod, known[1])


def _target(message: str, generation: int, now_us: int) -> Condition:
    return Condition(DISRUPTION_TARGET, TRUE, PREEMPTION_BY_SCHEDULER, message, generation, now_us)


def _grace_of(pod: Pod) -> int:
    return pod.spec.termination_grace_period_seconds or 0


def _gone_us(pod: Pod, now_us: int) -> int:
    """When the pod's grace ends: that of its deletion mark, or of one that is set now."""
    return pod.deletion_us if pod.deletion_us is not None else now_us + _grace_of(pod) * SECOND_US
