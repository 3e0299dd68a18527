"""Filter: nodes marked unschedulable take only pods that tolerate it, as Kubernetes' NodeUnschedulable."""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.arrays import BoolArray
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.model.node import Taint
from muster.model.selectors import NO_SCHEDULE, is_tolerated

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


@dataclass(frozen=True)
class UnschedulableFilter:
    code = "NODE_UNSCHEDULABLE"
    message = "node(s) were unschedulable"

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        if is_tolerated(_UNSCHEDULABLE, signature.spec.tolerations):
            return None
        return ~nodes.unschedulable
