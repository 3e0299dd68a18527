"""Turns a decision into one revision (semantics 5.7, 6): assignments, conditions, queue state and the record together.

A decision made on the present state is written as it is. One that comes from a worker is checked first: pods that
are gone are left out, every group reported Success must still reach its minimum, and if the cluster changed since
the snapshot all filters run again, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.core.decision import Assignments, Decision, DecisionCode, GroupResult, Status
from muster.core.framework import Profile
from muster.core.messages import pod_message
from muster.core.recheck import first_conflict
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.conditions import (
    SCHEDULED,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    with_group_condition,
)
from muster.engine.hierarchy import subtree, unbound_pods
from muster.engine.members import Standing, standing
from muster.engine.mutation import Mutation
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.engine.settlement import settle_unit
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod
from muster.model.variations import variation, varied

PodsByOrdinal = dict[int, Pod]

_bound = variation(Pod, "node_name", "resource_version", "status")


def pods_by_ordinal(cluster: Cluster, unit: Unit) -> PodsByOrdinal:
    """The unit's pods that still wait for a node."""
    if unit.key.kind == POD:
        pod = cluster.state.pod(unit.key.namespace, unit.key.name)
        return {pod.ordinal: pod} if pod is not None and _is_pending(cluster, pod) else {}
    return {
        pod.ordinal: pod
        for leaf in leaves(unit.root)
        for pod in cluster.state.members(leaf.key.namespace, leaf.key.name).of(Standing.PENDING)
    }


def still_holds(
    cluster: Cluster, unit: Unit, profile: Profile, decision: Decision, *, changed: bool
) -> Decision | None:
    """The decision as it may be committed on the present state: without pods that are gone; None if it must be made anew.

    `changed`: the cluster has changed since the decision's snapshot in a way that placement reads.
    """
    pods = pods_by_ordinal(cluster, unit)
    columns = decision.assignments
    kept = [i for i, ordinal in enumerate(columns.pods) if ordinal in pods]
    if len(kept) < len(columns.pods):
        columns = Assignments(
            tuple(columns.pods[i] for i in kept), columns.nodes, tuple(columns.node_index[i] for i in kept)
        )
        decision = replace(decision, assignments=columns)
        if not _minimums_hold(cluster, unit, decision):
            return None
    if not changed or not columns.pods:
        return decision
    signatures = [cluster.feed.signature_of(pods[ordinal]) for ordinal in columns.pods]
    nodes = [columns.nodes[i] for i in columns.node_index]
    excluded = {
        i: unit.excluded_nodes[ordinal]
        for i, ordinal in enumerate(columns.pods)
        if ordinal in unit.excluded_nodes
    }
    conflict = first_conflict(cluster.feed.flush(), profile, signatures, nodes, excluded)
    return decision if conflict is None else None


def _is_pending(cluster: Cluster, pod: Pod) -> bool:
    return standing(pod, cluster.state.scheduler_names) is Standing.PENDING


def _minimums_hold(cluster: Cluster, unit: Unit, decision: Decision) -> bool:
    """Every leaf gang that was reported Success still reaches its minimum with what is left."""
    placed = set(decision.assignments.pods)
    successes = {r.key for r in results_below(decision.result) if r.status is Status.SUCCESS}
    for leaf in leaves(unit.root):
        if leaf.key in successes and leaf.is_gang:
            members = cluster.state.members(leaf.key.namespace, leaf.key.name)
            new = sum(1 for ordinal in leaf.pods.ids if ordinal in placed)
            if members.counts[Standing.BOUND] + new < leaf.minimum:
                return False
    return True


def results_below(result: GroupResult | None) -> Iterator[GroupResult]:
    """The result and all below it, parents first."""
    if result is not None:
        yield result
        for child in result.children:
            yield from results_below(child)


def commit_decision(
    cluster: Cluster, unit: Unit, record: DecisionRecord, mutation: Mutation
) -> DecisionRecord:
    """Write the decision as one revision; returns the record with its columns. `mutation` is fresh."""
    decision = record.decision
    pods = pods_by_ordinal(cluster, unit)
    mutation.settled_units.add(unit.key)
    columns = _bind(mutation, decision.assignments, pods)
    _write_groups(mutation, unit.key, decision)
    _write_pods_left(mutation, unit, decision, pods)
    _move_unit(mutation, unit.key, decision)
    record = varied(record, revision=mutation.revision, id=str(mutation.revision), assignments=columns)
    if not mutation.finish():
        mutation.commit()
    cluster.writes().decisions.append(record)
    cluster.remember(record)
    return record


def named_columns(assigned: Assignments, pods: PodsByOrdinal) -> AssignmentColumns:
    """The assignments as the API gives them; pods that are gone meanwhile have left `assigned` already."""
    chosen = [pods[ordinal] for ordinal in assigned.pods]
    return AssignmentColumns(
        chosen[0].namespace if chosen else "",
        assigned.nodes,
        tuple(pod.name for pod in chosen),
        tuple(pod.uid for pod in chosen),
        assigned.node_index,
    )


def _bind(mutation: Mutation, assigned: Assignments, pods: PodsByOrdinal) -> AssignmentColumns:
    columns = named_columns(assigned, pods)
    for ordinal, place in zip(assigned.pods, assigned.node_index, strict=True):
        pod = pods.pop(ordinal)
        status = mutation.pod_conditions.scheduled(pod.status, pod.generation)
        mutation.put(_bound(pod, assigned.nodes[place], mutation.revision, status))
    return columns


def _write_groups(mutation: Mutation, unit: ObjectKey, decision: Decision) -> None:
    """Every group of the hierarchy gets its condition; one below a failed ancestor names the group whose own check failed."""
    results = {result.key: result for result in results_below(decision.result)}
    failed = next((r for r in results.values() if r.status is not Status.SUCCESS), None)
    error = decision.code is DecisionCode.SCHEDULER_ERROR
    for group in list(subtree(mutation.state, unit)):
        result = results.get(group.key)
        if result is not None and result.status is Status.SUCCESS:
            scheduled, reason, message = True, SCHEDULED, ""
        else:
            scheduled, reason = False, SCHEDULER_ERROR if error else UNSCHEDULABLE
            message = decision.message
            if result is None and failed is not None:
                message = f"{failed.key.kind} {failed.key.name}: {message}"
        changed = with_group_condition(
            group, scheduled=scheduled, reason=reason, message=message, now_us=mutation.now_us
        )
        mutation.set_group(group, changed)


def _write_pods_left(mutation: Mutation, unit: Unit, decision: Decision, pods: PodsByOrdinal) -> None:
    """Pods that were not placed say why: for their own shape where the cycle knows it, else with the unit's message."""
    reason = SCHEDULER_ERROR if decision.code is DecisionCode.SCHEDULER_ERROR else UNSCHEDULABLE
    own: dict[int, str] = {}
    for result in results_below(decision.result):
        for signature, reasons in result.pod_reasons.items():
            own[signature] = pod_message(reasons)
    for leaf in leaves(unit.root):
        for ordinal, signature in zip(leaf.pods.ids, leaf.pods.signatures, strict=True):
            pod = pods.get(ordinal)
            if pod is not None:
                message = own.get(signature) or decision.message
                status = mutation.pod_conditions.waiting(pod.status, reason, message, pod.generation)
                mutation.set_pod_status(pod, status)


def _move_unit(mutation: Mutation, unit: ObjectKey, decision: Decision) -> None:
    """The unit's next state in the queue (semantics 4, "After a cycle")."""
    cluster, now_us = mutation.cluster, mutation.now_us
    queue = cluster.queue
    events = queue.events_in_flight(unit)
    changed = queue.landed(unit)
    pending, _ = unbound_pods(mutation.state, unit)
    if unit not in queue.rows:
        return
    if decision.code is DecisionCode.SCHEDULER_ERROR and decision.result is None:
        queue.errored(unit, now_us, decision.message)
    elif changed or not pending:
        settle_unit(mutation, unit)
    elif decision.assignments.pods:
        queue.succeeded(unit, now_us)
    else:
        queue.failed(unit, now_us, reason_codes(decision), decision.message)
        queue.happened(events, now_us)


def reason_codes(decision: Decision) -> tuple[str, ...]:
    """Codes of all reasons in the result tree, each once, in order."""
    codes: dict[str, None] = {}
    for result in results_below(decision.result):
        for reason in result.reasons:
            codes[reason.code] = None
        for reasons in result.pod_reasons.values():
            codes.update(dict.fromkeys(r.code for r in reasons))
    return tuple(codes)
