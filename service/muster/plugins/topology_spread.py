"""Filters: topology spread with DoNotSchedule. Score: with ScheduleAnyway (Kubernetes' PodTopologySpread).

Pods of the same namespace that a constraint selects are counted per domain of its key, over the nodes that have the
keys of all constraints and that its node policies let count; pods with a deletion mark do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.domains import value_totals
from muster.core.framework import MAX_SCORE
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.model.meta import SelectorRequirement
from muster.model.pod import PodSpec
from muster.model.selectors import labels_match
from muster.plugins.node_affinity import required_nodes
from muster.plugins.pod_terms import selector_requirements
from muster.plugins.taint_toleration import tolerated_nodes

FILTERING = "DoNotSchedule"
SCORING = "ScheduleAnyway"
_LOGARITHM_STEPS = 64


@dataclass(frozen=True)
class SpreadPods:
    """Selects the pods that a constraint counts; `requirements` None selects nothing."""

    namespace: str
    requirements: tuple[SelectorRequirement, ...] | None
    skips_leaving = True

    def selects(self, signature: Signature) -> bool:
        if self.requirements is None or signature.namespace != self.namespace:
            return False
        return labels_match(self.requirements, signature.labels)


@dataclass(frozen=True)
class Constraint:
    """A constraint of one signature with its selector filled in."""

    key: str
    max_skew: int
    min_domains: int
    pods: SpreadPods
    honors_affinity: bool
    honors_taints: bool


@dataclass(frozen=True)
class SpreadKeyFilter:
    """A node without the key of a constraint can never hold the pod."""

    code = "TOPOLOGY_SPREAD_KEY"
    message = "node(s) didn't match pod topology spread constraints (missing required label)"

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        keys = _keys(signature.spec, FILTERING)
        return _labelled(keys, nodes) if keys else None


@dataclass(frozen=True)
class SpreadFilter:
    """The pod may go where its domain stays within `max_skew` of the emptiest."""

    code = "TOPOLOGY_SPREAD"
    message = "node(s) didn't match pod topology spread constraints"
    reads_one_node = False

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        return bool(_keys(signature.spec, FILTERING))

    def mask(self, signature: Signature, snapshot: Snapshot) -> BoolArray:
        mask = np.ones(snapshot.nodes.size, dtype=np.bool_)
        counting = _CountingNodes(signature, FILTERING, snapshot.nodes)
        for constraint in constraints_of(signature, FILTERING):
            mask &= self._within_skew(constraint, signature, snapshot, counting.of(constraint))
        return mask

    def excludes_itself(self, signature: Signature) -> bool:
        return False

    def _within_skew(
        self, constraint: Constraint, signature: Signature, snapshot: Snapshot, eligible: BoolArray
    ) -> BoolArray:
        nodes = snapshot.nodes
        column = nodes.column(constraint.key)
        counts = value_totals(snapshot.count(constraint.pods).per_slot, column, eligible)
        exists = value_totals(np.ones(nodes.size, dtype=np.int64), column, eligible) > 0
        fewest = int(counts[exists].min()) if exists.any() else 0
        if int(exists.sum()) < constraint.min_domains:
            fewest = 0
        ours = int(constraint.pods.selects(signature))
        may = np.append(counts + ours - fewest <= constraint.max_skew, False)
        within: BoolArray = may[column.codes]
        return within


@dataclass(frozen=True)
class SpreadScore:
    """Prefers domains with few of the pods; constraints with many domains weigh a little more, as upstream."""

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        return bool(_keys(signature.spec, SCORING))

    def score(self, signature: Signature, snapshot: Snapshot, slots: Slots) -> IntArray:
        nodes = snapshot.nodes
        constraints = constraints_of(signature, SCORING)
        counting = _CountingNodes(signature, SCORING, nodes)
        crowd = np.zeros(len(slots), dtype=np.int64)
        for constraint in constraints:
            crowd += self._crowd(constraint, snapshot, slots, counting.of(constraint))
        return _inverted(crowd, counting.labelled[slots])

    def _crowd(
        self, constraint: Constraint, snapshot: Snapshot, slots: Slots, eligible: BoolArray
    ) -> IntArray:
        column = snapshot.nodes.column(constraint.key)
        counts = value_totals(snapshot.count(constraint.pods).per_slot, column, eligible)
        codes = column.codes[slots]
        domains = len(np.unique(codes[codes >= 0]))
        per_value = counts * _logarithm(domains + 2) + (constraint.max_skew - 1) * _LOGARITHM_STEPS
        crowd: IntArray = np.append(per_value, 0)[codes]
        return crowd


def constraints_of(signature: Signature, when: str) -> tuple[Constraint, ...]:
    """The signature's constraints of one kind, in order."""
    return _constraints(signature, when)


@lru_cache(maxsize=16384)
def _constraints(signature: Signature, when: str) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(
            key=item.topology_key,
            max_skew=item.max_skew,
            min_domains=item.min_domains or 1,
            pods=SpreadPods(
                signature.namespace,
                selector_requirements(item.label_selector, item.match_label_keys, signature),
            ),
            honors_affinity=item.node_affinity_policy != "Ignore",
            honors_taints=item.node_taints_policy == "Honor",
        )
        for item in signature.spec.topology_spread_constraints
        if item.when_unsatisfiable == when
    )


def _keys(spec: PodSpec, when: str) -> tuple[str, ...]:
    if not spec.topology_spread_constraints:
        return ()
    return tuple(
        item.topology_key for item in spec.topology_spread_constraints if item.when_unsatisfiable == when
    )


def _labelled(keys: tuple[str, ...], nodes: NodeTable) -> BoolArray:
    mask = nodes.present.copy()
    for key in keys:
        mask &= nodes.column(key).codes >= 0
    return mask


class _CountingNodes:
    """The nodes whose pods count for the constraints of one kind, found once for all that honor the same.

    labelled: those that have the keys of all constraints.
    """

    def __init__(self, signature: Signature, when: str, nodes: NodeTable) -> None:
        self.labelled = _labelled(_keys(signature.spec, when), nodes)
        self._spec = signature.spec
        self._nodes = nodes
        self._found: dict[tuple[bool, bool], BoolArray] = {}

    def of(self, constraint: Constraint) -> BoolArray:
        """Those of one constraint, not to be changed."""
        honored = (constraint.honors_affinity, constraint.honors_taints)
        found = self._found.get(honored)
        if found is None:
            found = self._found[honored] = self._honoring(constraint)
        return found

    def _honoring(self, constraint: Constraint) -> BoolArray:
        mask = self.labelled.copy()
        demands = (
            required_nodes(self._spec, self._nodes) if constraint.honors_affinity else None,
            tolerated_nodes(self._spec, self._nodes) if constraint.honors_taints else None,
        )
        for demand in demands:
            if demand is not None:
                mask &= demand
        return mask


def _logarithm(number: int) -> int:
    """log2 in 64ths, rounded up, from whole numbers alone so that it is the same everywhere."""
    return int((number**_LOGARITHM_STEPS - 1).bit_length())


def _inverted(crowd: IntArray, labelled: BoolArray) -> IntArray:
    """The emptiest node gets 100, nodes without a label 0."""
    if not labelled.any():
        return np.zeros_like(crowd)
    most, least = int(crowd[labelled].max()), int(crowd[labelled].min())
    scores = (most + least - crowd) * MAX_SCORE // most if most else np.full_like(crowd, MAX_SCORE)
    return np.where(labelled, scores, 0)
