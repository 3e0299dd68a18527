"""Turns a decision into one revision (semantics 5.7, 6): assignments or a preemption, conditions, queue state, the record.

A decision made on the present state is written as it is. One that comes from a worker is checked first: pods that
are gone are left out, every group reported Success must still reach its minimum, and if the cluster changed since
the snapshot all filters run again, in order, and each group must still be in one domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from muster.core.candidate_outcomes import BEST_DOMAIN, CLOSEST_DOMAIN
from muster.core.decision import Assignments, Decision, DecisionCode, GroupResult, Status
from muster.core.framework import Profile
from muster.core.needs import Needs, needs_of
from muster.core.promises import keep_promises
from muster.core.recheck import first_conflict
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.conditions import (
    INVALID,
    SCHEDULED,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    with_group_condition,
)
from muster.engine.domain_recheck import domains_hold
from muster.engine.eviction import (
    Eviction,
    carry_out,
    disrupted_pods,
    leaving_for,
    preemption_holds,
    preemption_to_carry_out,
)
from muster.engine.hierarchy import held_count, is_initially_scheduled, shortages, subtree, unbound_pods
from muster.engine.members import Standing, standing
from muster.engine.mutation import Mutation
from muster.engine.nominations import clear_nominations, stayed_message, waiting_message
from muster.engine.outcomes import Outcome, all_admissible, has_pods_to_try, holding, outcomes
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.engine.queueing_hints import NOT_READY
from muster.engine.settlement import settle_unit
from muster.engine.tree_conditions import tell_group, tell_pod
from muster.model.group import PodGroup
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod
from muster.model.variations import varied

PodsByOrdinal = dict[int, Pod]
_CHOICES = (BEST_DOMAIN, CLOSEST_DOMAIN)
_SERVER_EVICTS = Eviction()
_REASONS = {DecisionCode.SCHEDULER_ERROR: SCHEDULER_ERROR, DecisionCode.INVALID: SCHEDULER_ERROR}
"""What pods say of a unit that was not tried."""

_GROUP_REASONS = {**_REASONS, DecisionCode.INVALID: INVALID}


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
    elif decision.code is DecisionCode.WAITING_FOR_PREEMPTION:
        preemption = preemption_to_carry_out(decision)
        if preemption is None or preemption_holds(cluster, unit, profile, preemption, pods):
            return decision
        return None
    if not _minimums_hold(cluster, unit, decision):
        return None
    if not changed or not columns.pods:
        return decision
    signatures = cluster.feed.signatures_of([pods[ordinal] for ordinal in columns.pods])
    nodes = [columns.nodes[i] for i in columns.node_index]
    excluded = {
        i: unit.excluded_nodes[ordinal]
        for i, ordinal in enumerate(columns.pods)
        if ordinal in unit.excluded_nodes
    }
    snapshot = cluster.feed.flush()
    if not domains_hold(cluster, unit, snapshot.nodes, columns):
        return None
    mark = snapshot.mark()
    keep_promises(snapshot, unit.promised)
    conflict = first_conflict(snapshot, profile, signatures, nodes, excluded)
    snapshot.rollback(mark)
    return decision if conflict is None else None


def _is_pending(cluster: Cluster, pod: Pod) -> bool:
    return standing(pod, cluster.state.scheduler_names) is Standing.PENDING


def _minimums_hold(cluster: Cluster, unit: Unit, decision: Decision) -> bool:
    """Every group whose assignments stand still reaches its minimum, as it is now, with what is left."""
    if decision.result is None or unit.key.kind == POD:
        return True
    root = cluster.state.group(unit.key)
    root_is_scheduled = root is not None and is_initially_scheduled(root)
    placed = set(decision.assignments.pods)
    pending = {leaf.key: leaf.pods.ids for leaf in leaves(unit.root)}
    for result in holding(decision.result):
        group = cluster.state.group(result.key)
        if group is None:
            return False
        if isinstance(group, PodGroup):
            members = cluster.state.members(group.namespace, group.name)
            held = held_count(members, root_is_scheduled=root_is_scheduled)
            held += len(placed.intersection(pending[group.key]))
        else:
            held = sum(child.status is Status.SUCCESS for child in result.children)
        if held < group.spec.required_minimum:
            return False
    return True


def results_below(result: GroupResult | None) -> Iterator[GroupResult]:
    """The result and all below it, parents first."""
    if result is not None:
        yield result
        for child in result.children:
            yield from results_below(child)


def commit_decision(
    cluster: Cluster,
    unit: Unit,
    record: DecisionRecord,
    mutation: Mutation,
    eviction: Eviction = _SERVER_EVICTS,
) -> DecisionRecord:
    """Write the decision as one revision; returns the record with its columns. `mutation` is fresh."""
    decision = as_told(cluster, record.decision)
    pods = pods_by_ordinal(cluster, unit)
    mutation.settled_units.add(unit.key)
    columns = _bind(mutation, decision.assignments, pods)
    told: dict[str, object] = {"decision": decision, "assignments": columns}
    preemption = preemption_to_carry_out(decision)
    if preemption is not None:
        told["nominations"] = named_columns(preemption.nominations, pods)
        told["disrupted"] = disrupted_pods(cluster, decision.preemption or preemption)
        # The record tells of the placement too; the conditions say what is waited for.
        decision = varied(decision, message=waiting_message(leaving_for(preemption)))
        carry_out(mutation, unit.key, preemption, pods, decision.message, eviction)
    elif not _keeps_nominations(decision):
        _end_wait(mutation, unit.key)
    if pods or unit.key.kind != POD:
        found = _outcomes(cluster, unit, decision)
        _write_groups(mutation, unit.key, decision, found)
        _write_pods_left(mutation, unit, decision, pods, found)
    _move_unit(mutation, unit, decision, record.profile)
    record = varied(record, **told, revision=mutation.revision, id=str(mutation.revision))
    if not mutation.finish():
        mutation.commit()
    cluster.writes().decisions.append(record)
    cluster.remember(record)
    return record


def as_told(cluster: Cluster, decision: Decision) -> Decision:
    """The decision with a message that tells of the pods that the unit waits for, or waited for in vain."""
    if decision.code is DecisionCode.WAITING_FOR_PREEMPTION and decision.preemption is None:
        return varied(decision, message=waiting_message(len(cluster.waits.left(decision.unit))))
    fits = decision.assignments.pods or decision.code is DecisionCode.FITS_WITHOUT_PREEMPTION
    more = "" if fits else stayed_message(cluster, decision.unit)
    message = _joined(_joined(decision.message, more), _kept_from(cluster, decision))
    return decision if message == decision.message else varied(decision, message=message)


def _kept_from(cluster: Cluster, decision: Decision) -> str:
    """Whose reservation binds a unit that found no room where there might be some; "" if none does."""
    row = cluster.queue.rows.get(decision.unit)
    if row is None or decision.code is not DecisionCode.UNSCHEDULABLE:
        return ""
    held = cluster.reservations.binding(cluster.state, row.key, row.priority)
    return "" if held is None else held.told_to_others


def _joined(message: str, more: str) -> str:
    return f"{message.removesuffix('.')}; {more}" if more else message


def _keeps_nominations(decision: Decision) -> bool:
    """A unit that waits still, or whose cycle broke, has its nodes in view for the next one."""
    broke = decision.code is DecisionCode.SCHEDULER_ERROR and decision.result is None
    return broke or decision.code is DecisionCode.WAITING_FOR_PREEMPTION


def _end_wait(mutation: Mutation, unit: ObjectKey) -> None:
    """The unit was placed, or cannot be: what it had in view and does not use is free for others."""
    waits = mutation.cluster.waits
    if waits.is_nominating(unit):
        clear_nominations(mutation, unit)
    waits.end(unit)


def set_back(mutation: Mutation, unit: ObjectKey) -> None:
    """The unit in flight is not admissible any more: it is gated again, without a decision. `mutation` is fresh."""
    mutation.cluster.queue.landed(unit)
    settle_unit(mutation, unit)
    mutation.finish()


def named_columns(assigned: Assignments, pods: PodsByOrdinal) -> AssignmentColumns:
    """The assignments as the API gives them; pods that are gone meanwhile have left `assigned` already."""
    chosen = [pods[ordinal] for ordinal in assigned.pods]
    return AssignmentColumns(
        chosen[0].namespace if chosen else "",
        assigned.nodes,
        tuple([pod.name for pod in chosen]),
        tuple([pod.uid for pod in chosen]),
        assigned.node_index,
    )


def _bind(mutation: Mutation, assigned: Assignments, pods: PodsByOrdinal) -> AssignmentColumns:
    columns = named_columns(assigned, pods)
    chosen = [pods.pop(ordinal) for ordinal in assigned.pods]
    mutation.bind(chosen, map(assigned.nodes.__getitem__, assigned.node_index))
    return columns


def _outcomes(cluster: Cluster, unit: Unit, decision: Decision) -> dict[ObjectKey, Outcome]:
    """What becomes of each group; nothing of a unit that was not tried, or that waits for room as a whole."""
    if decision.code in _REASONS or decision.code is DecisionCode.WAITING_FOR_PREEMPTION:
        return {}
    root = cluster.state.group(unit.key)
    is_short = root is not None and not all_admissible(unit.root)
    return outcomes(unit.root, decision, shortages(cluster.state, root) if root and is_short else {})


def _write_groups(
    mutation: Mutation, unit: ObjectKey, decision: Decision, found: Mapping[ObjectKey, Outcome]
) -> None:
    """Every group of the hierarchy gets its condition; those that came since the decision wait for the next one."""
    reason = _GROUP_REASONS.get(decision.code, UNSCHEDULABLE)
    for group in list(subtree(mutation.state, unit)):
        outcome = found.get(group.key)
        if outcome is not None and outcome.scheduled:
            changed = with_group_condition(
                group, scheduled=True, reason=SCHEDULED, message="", now_us=mutation.now_us
            )
            mutation.set_group(group, changed)
        elif outcome is not None or not found:
            tell_group(mutation, group, reason, outcome.message if outcome is not None else decision.message)


def _write_pods_left(
    mutation: Mutation,
    unit: Unit,
    decision: Decision,
    pods: PodsByOrdinal,
    found: Mapping[ObjectKey, Outcome],
) -> None:
    """Pods that were not placed say why: for their own shape where the cycle knows it, else as their group, or the unit."""
    if not pods:
        return
    reason, kept = _REASONS.get(decision.code, UNSCHEDULABLE), _kept_from(mutation.cluster, decision)
    for leaf in leaves(unit.root):
        outcome = found.get(leaf.key)
        own = (
            {} if outcome is None else {at: _joined(text, kept) for at, text in outcome.by_signature.items()}
        )
        of_group = outcome.message if outcome is not None and not outcome.scheduled else decision.message
        for ordinal, signature in zip(leaf.pods.ids, leaf.pods.signatures, strict=True):
            # As it is now: the nomination of a pod may have been written, or cleared, in this revision.
            pod = mutation.state.pod(*pods[ordinal].key[1:]) if ordinal in pods else None
            if pod is not None:
                tell_pod(mutation, pod, reason, own.get(signature) or of_group)


def _move_unit(mutation: Mutation, tried: Unit, decision: Decision, profile: str) -> None:
    """The unit's next state in the queue (semantics 4, "After a cycle")."""
    cluster, now_us, unit = mutation.cluster, mutation.now_us, tried.key
    queue = cluster.queue
    events = queue.events_in_flight(unit)
    changed = queue.landed(unit)
    pending, _ = unbound_pods(mutation.state, unit)
    if unit not in queue.rows:
        return
    if decision.code is DecisionCode.SCHEDULER_ERROR and decision.result is None:
        queue.errored(unit, now_us, decision.message)
    elif changed or not (pending or decision.code is DecisionCode.INVALID):
        settle_unit(mutation, unit)
    elif decision.assignments.pods:
        queue.succeeded(unit, now_us)
    elif decision.code is DecisionCode.WAITING_FOR_PREEMPTION:
        _wait(mutation, decision)
        queue.learn_needs(unit, _needs(cluster, tried, decision, profile))
        queue.happened(events, now_us)
    else:
        tried_any = decision.code in _REASONS or has_pods_to_try(tried.root)
        reasons = reason_codes(decision) if tried_any else (NOT_READY,)
        queue.failed(unit, now_us, reasons, decision.message)
        queue.learn_needs(unit, _needs(cluster, tried, decision, profile))
        queue.happened(events, now_us)


def _needs(cluster: Cluster, tried: Unit, decision: Decision, profile: str) -> Needs | None:
    """What a node must have to be of use for the unit, by the profile that it was tried with."""
    known, feed = cluster.profiles.get(profile), cluster.feed
    return None if known is None else needs_of(tried, decision, feed.signatures, feed.snapshot.pods, known)


def _wait(mutation: Mutation, decision: Decision) -> None:
    """The unit waits for pods to leave; if they are gone already, or it gave up meanwhile, it is tried at once."""
    queue, waits, unit = mutation.cluster.queue, mutation.cluster.waits, decision.unit
    is_new = preemption_to_carry_out(decision) is not None
    waiting = queue.nominated if is_new else queue.still_waiting
    waiting(unit, mutation.now_us, reason_codes(decision), decision.message)
    if not waits.left(unit):
        queue.victims_gone(unit)


def reason_codes(decision: Decision) -> tuple[str, ...]:
    """Codes of all that stood in the way in the result tree, each once, in order; which domain was best did not."""
    codes: dict[str, None] = {}
    for result in results_below(decision.result):
        for reason in chain(result.reasons, *result.pod_reasons.values()):
            codes[reason.code] = None
    return tuple(code for code in codes if code not in _CHOICES)
