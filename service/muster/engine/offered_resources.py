"""Which resources the nodes of one cluster offer: each is a row over all nodes, in every process that has the arrays.

So nodes with names of their own cost memory by the square of their number, and how many names there may be has a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from muster.model.node import Node
from muster.validation.violations import TOO_MANY, Violation

MOST_RESOURCES_A_CLUSTER = 1_024


class OfferedResources:
    """`node_changed` keeps it right; `faults` asks."""

    def __init__(self) -> None:
        self._nodes_with: Counter[str] = Counter()

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Note a node that came, changed or went."""
        before, after = _names_of(old), _names_of(new)
        for name in after - before:
            self._nodes_with[name] += 1
        for name in before - after:
            self._nodes_with[name] -= 1
            if not self._nodes_with[name]:
                del self._nodes_with[name]

    def faults(self, sent: Sequence[tuple[str, Node]]) -> Iterable[Violation]:
        """What is wrong with nodes, each with the path of its object, because of those that are there besides."""
        new = {name for _, node in sent for name in _names_of(node) if name not in self._nodes_with}
        number = len(self._nodes_with) + len(new)
        if not new or number <= MOST_RESOURCES_A_CLUSTER:
            return
        text = f"all nodes may offer at most {MOST_RESOURCES_A_CLUSTER} resources between them, not {number}"
        for path, node in sent:
            if not new.isdisjoint(_names_of(node)):
                yield Violation(f"{path}status", TOO_MANY, f"{node.key}: {text}")


def _names_of(node: Node | None) -> set[str]:
    return set() if node is None else set(node.allocatable or node.capacity)
