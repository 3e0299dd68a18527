"""Why a unit is where it is, answered about one cluster that stands still (api.md, Explain).

A unit that a cycle could try is explained by the core; one that none would try (its root is missing, it is at fault,
gated, or has nothing pending) is shown as it stands, with what holds each of its groups. Where it is in the queue and
what it waits for there is told by `explain_call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from muster.core.decision import Decision, DecisionCode, GroupResult, Reason
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explain import explain
from muster.core.explain.explanation import Explanation, Help
from muster.core.explain.what_would_help import what_would_help
from muster.core.framework import Profile
from muster.core.preemption_units import DisruptionUnits, units_of_rows
from muster.core.tree import GroupTree, PendingPods, Unit, leaves
from muster.core.trial import begin, result_of
from muster.engine.cluster import Cluster
from muster.engine.group_holds import group_holds
from muster.engine.hierarchy import pods_of_unit, subtree, unbound_pods, why_nothing_waits
from muster.engine.members import Standing, standing
from muster.engine.ports import UnitState
from muster.engine.scheduling import root_in
from muster.engine.unit_faults import fault_of
from muster.engine.units import build_unit
from muster.engine.untried import as_it_stands, rootless
from muster.model.meta import POD, ObjectKey
from muster.model.node import Node

NOTHING_PENDING = "NOTHING_PENDING"
_ABOVE_ALL = 2**31
_AT_FAULT = frozenset({DecisionCode.INVALID, DecisionCode.SCHEDULER_ERROR})
"""Nothing is tried of such a unit, however much room there is."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was found out: result and helps as in `ExplainAnswer`."""

    result: GroupResult | None
    helps: tuple[Help, ...]
    revision: int


@dataclass(frozen=True)
class WhyQuestion:
    """Asks a cluster about the unit of an object. Raises NotFoundError, FailedPreconditionError."""

    named: ObjectKey
    profiles: Mapping[str, Profile]
    what_would_help: bool

    def __call__(self, cluster: Cluster) -> Told:
        """The answer; leaves the cluster as it found it."""
        root = root_in(cluster.state, self.named)
        revision = cluster.state.revision
        if root.missing:
            return Told(rootless(cluster.state, self.named, root), (), revision)
        unit = build_unit(cluster, root.key)
        profile = profile_of(cluster, unit, self.profiles)
        told = self._explained(cluster, unit, profile)
        helps: tuple[Help, ...] = ()
        if self.what_would_help and told.decision.code not in _AT_FAULT:
            known = circumstances_of(cluster, unit)
            helps = what_would_help(cluster.feed.flush(), _held_back(unit, known), profile, told, known)
        return Told(told.result, helps, revision)

    def _explained(self, cluster: Cluster, unit: Unit, profile: Profile) -> Explanation:
        standing_still = _standing(cluster, unit)
        if standing_still is not None:
            return standing_still
        told = explain(
            cluster.feed.flush(),
            unit,
            profile,
            lambda: cluster.disruption.below(unit.priority, cluster.budgets),
        )
        return replace(told, result=_with_holds(told.result, cluster, unit))


def profile_of(cluster: Cluster, unit: Unit, profiles: Mapping[str, Profile]) -> Profile:
    """The profile that the unit's pods name; the default one where none is pending."""
    signatures = cluster.feed.signatures
    for leaf in leaves(unit.root):
        for index in leaf.pods.signatures[:1]:
            found = profiles.get(signatures[index].spec.scheduler_name)
            if found is not None:
                return found
    return next(iter(profiles.values()))


def circumstances_of(cluster: Cluster, unit: Unit) -> Circumstances:
    """What stands in the way of the unit beside its tree and the arrays."""
    state = cluster.state
    gated: dict[ObjectKey, PendingPods] = {}
    for leaf in leaves(unit.root):
        pods = _gated_pods(cluster, leaf.key)
        if pods.ids:
            gated[leaf.key] = pods
    marked = (group.key for group in subtree(state, unit.key) if group.deletion_us is not None)
    barred = frozenset(group.key for key in marked for group in subtree(state, key))
    own = {pod.ordinal for pod in pods_of_unit(state, unit.key)}
    others = cluster.disruption.below(_ABOVE_ALL, cluster.budgets)
    return Circumstances(_without(others, own), gated, barred)


def _gated_pods(cluster: Cluster, leaf: ObjectKey) -> PendingPods:
    pods = [
        pod
        for pod in pods_of_unit(cluster.state, leaf)
        if standing(pod, cluster.state.scheduler_names) is Standing.GATED
    ]
    ordered = sorted(pods, key=lambda pod: pod.ordinal)
    return PendingPods(
        tuple(pod.ordinal for pod in ordered), tuple(cluster.feed.signature_of(pod) for pod in ordered)
    )


def _held_back(unit: Unit, known: Circumstances) -> Unit:
    """A gated pod without a group as a leaf that holds it back, like any other."""
    root = unit.root
    if root.key.kind != POD or root.key not in known.gated:
        return unit
    return replace(unit, root=replace(root, admissible=False, pods=PendingPods()))


def _without(units: DisruptionUnits, own: set[int]) -> DisruptionUnits:
    """The units that hold none of these pods."""
    if not np.isin(units.ordinals, list(own)).any():
        return units
    pods = np.split(units.ordinals, np.cumsum(units.sizes)[:-1])
    columns = zip(units.keys, units.priorities.tolist(), units.starts.tolist(), pods, strict=True)
    rows = (
        (key, priority, start, tuple(ordinals.tolist()))
        for key, priority, start, ordinals in columns
        if own.isdisjoint(ordinals.tolist())
    )
    return units_of_rows(rows, units.budgets)


def _standing(cluster: Cluster, unit: Unit) -> Explanation | None:
    """A unit that no cycle would try, as it stands; None for one that a cycle would."""
    fault = fault_of(cluster.state, cluster.layouts, unit.key)
    if fault is not None and fault.result is not None:
        root = cluster.state.group(unit.key)
        shown = fault.result if root is None else as_it_stands(cluster.state, root)
        reasons = (*fault.result.reasons, *shown.reasons)
        return Explanation(fault, replace(shown, status=fault.result.status, reasons=reasons))
    shown = _with_holds(_as_it_stands(cluster, unit), cluster, unit)
    row = cluster.queue.get(unit.key)
    if row is None or not sum(unbound_pods(cluster.state, unit.key)):
        reason = Reason(NOTHING_PENDING, why_nothing_waits(cluster.state, unit.key))
        shown = replace(shown, reasons=(reason, *shown.reasons))
        return Explanation(Decision(unit.key, DecisionCode.SCHEDULED, shown), shown)
    if row.state is UnitState.GATED or not unit.root.admissible:
        return Explanation(Decision(unit.key, DecisionCode.GATED, shown), shown)
    return None


def _as_it_stands(cluster: Cluster, unit: Unit) -> GroupResult:
    """Each group with what holds of it already, before anything is tried; constrained ones with their domain."""
    return _with_domains(cluster, unit.root, result_of(begin(unit.root)))


def _with_domains(cluster: Cluster, tree: GroupTree, result: GroupResult) -> GroupResult:
    children = zip(tree.children, result.children, strict=True)
    shown = replace(result, children=tuple(_with_domains(cluster, *pair) for pair in children))
    if tree.topology_key is None:
        return shown
    bound = next((name for leaf in leaves(tree) for name in leaf.bound_nodes), None)
    node = cluster.state.get(ObjectKey("Node", "", bound)) if bound is not None else None
    value = node.labels.get(tree.topology_key) if isinstance(node, Node) else None
    return shown if value is None else replace(shown, domain_key=tree.topology_key, domain_value=value)


def _with_holds(result: GroupResult | None, cluster: Cluster, unit: Unit) -> GroupResult:
    """The result with what keeps each group that is not ready from being tried."""
    if result is None:
        raise ValueError(f"nothing was decided about {unit.key}")
    return annotated(result, group_holds(cluster.state, unit.key))


def annotated(result: GroupResult, notes: Mapping[ObjectKey, Iterable[Reason]]) -> GroupResult:
    """The result with these reasons before the others of each group."""
    children = tuple(annotated(child, notes) for child in result.children)
    return replace(result, children=children, reasons=(*notes.get(result.key, ()), *result.reasons))
