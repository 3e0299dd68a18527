"""Rules of a Node: its taints and its amounts."""

from __future__ import annotations

from muster.model.meta import NODE
from muster.model.names import label_key_fault, label_value_fault
from muster.model.node import Node, Taint
from muster.model.selectors import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from muster.validation.fields import (
    Faults,
    choice_faults,
    count_faults,
    name_faults,
    optional_name_faults,
    quantity_faults,
    resource_count_faults,
)
from muster.validation.metadata import metadata_faults
from muster.validation.violations import DUPLICATE, Violation

MOST_TAINTS = 256
TAINT_EFFECTS = frozenset({NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE})


def node_faults(node: Node) -> Faults:
    """All faults of a node."""
    yield from metadata_faults(NODE, node)
    yield from _taint_faults(node.taints)
    yield from resource_count_faults("status", node.capacity, node.allocatable)
    yield from quantity_faults("status.capacity", node.capacity)
    yield from quantity_faults("status.allocatable", node.allocatable)


def _taint_faults(taints: tuple[Taint, ...]) -> Faults:
    yield from count_faults("spec.taints", len(taints), MOST_TAINTS, "taints")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"spec.taints[{index}]"
        yield from name_faults(f"{path}.key", taint.key, label_key_fault)
        yield from optional_name_faults(f"{path}.value", taint.value, label_value_fault)
        yield from choice_faults(f"{path}.effect", taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in seen:
            yield Violation(path, DUPLICATE, f"must be the only taint {taint.key}:{taint.effect}")
        seen.add((taint.key, taint.effect))
