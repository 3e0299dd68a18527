"""Filter: taints NoSchedule and NoExecute that the pod does not tolerate. Score: the fewest such PreferNoSchedule.

A score is relative to the node of the cluster with the most of them, so that it reads one node and a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.framework import MAX_SCORE
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.model.node import Taint
from muster.model.pod import PodSpec
from muster.model.selectors import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Tolerance

_REFUSING = frozenset({NO_SCHEDULE, NO_EXECUTE})


@dataclass(frozen=True)
class TaintFilter:
    code = "NODE_TAINTED"
    message = "node(s) had untolerated taint(s)"

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        return tolerated_nodes(signature.spec, nodes)


@dataclass(frozen=True)
class TaintScore:
    def score(self, signature: Signature, nodes: NodeTable) -> IntArray | None:
        tolerance = Tolerance(signature.spec.tolerations)
        counts = _per_node(nodes, lambda taints: _avoided(taints, tolerance))
        most = int(counts[nodes.present].max(initial=0))
        return (most - counts) * MAX_SCORE // most if most else None


def tolerated_nodes(spec: PodSpec, nodes: NodeTable) -> BoolArray | None:
    """True per slot whose taints let the pod in; None if all do."""
    if not any(nodes.taint_sets):
        return None
    tolerance = Tolerance(spec.tolerations)
    return _per_node(nodes, lambda taints: not _refused(taints, tolerance)) > 0


def _refused(taints: tuple[Taint, ...], tolerance: Tolerance) -> bool:
    return any(taint.effect in _REFUSING and not tolerance.bears(taint) for taint in taints)


def _avoided(taints: tuple[Taint, ...], tolerance: Tolerance) -> int:
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerance.bears(taint) for taint in taints)


def _per_node(nodes: NodeTable, verdict: Callable[[tuple[Taint, ...]], int]) -> IntArray:
    """The verdict on each node's taints, asked once per distinct set of them."""
    verdicts = np.array([verdict(taints) for taints in nodes.taint_sets], dtype=np.int64)
    per_node: IntArray = verdicts[nodes.taint_codes]
    return per_node
