"""The groups that the domain search moves about, with all that it asks of them again and again.

Groups that placement cannot tell apart have the same kind, and equal leaves stand at equal places of them, so that
what is known of one answers for the other. A group that bound members pin is like no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.node_table import NodeTable
from muster.core.search.domain_measures import Measures
from muster.core.search.problem import SearchLeaf, SearchNode
from muster.core.tree import leaves

_NONE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A group that needs its minimum.

    key: the label of its constraint, None if it has none or its domain is settled. keys: those in the subtree.
    kind: equal for parts that are alike. leaves: indexes in the problem; alike parts have them in the same order.
    pins: nodes that its own domain must hold. all_pins: those of the subtree. least: [M] what it takes at least.
    """

    node: SearchNode
    key: str | None
    keys: frozenset[str]
    kind: int
    need: int
    children: tuple[Part, ...]
    leaves: tuple[int, ...]
    pins: IntArray
    all_pins: IntArray
    least: IntArray
    inside: Part | None = None
    """A constrained part as it is once its domain is chosen."""

    @property
    def settled(self) -> Part:
        return self if self.inside is None else self.inside

    def may_fit(self, fits: IntArray) -> BoolArray:
        """[C] whether each of C cells can hold enough pods of each leaf, taken by itself. fits: [C, T]."""
        if isinstance(self.node, SearchLeaf):
            types, numbers = zip(*self.node.supply, strict=True)
            enough: BoolArray = np.minimum(fits[:, types], numbers).sum(axis=1) >= self.need
            return enough
        able: IntArray = np.zeros(len(fits), dtype=np.int64)
        for child in self.children:
            able += child.may_fit(fits)
        return np.greater_equal(able, self.need)


Parts = tuple[Part, ...]


def in_order(parts: Iterable[Part]) -> Parts:
    """The parts by kind, so that alike collections are alike place by place."""
    return tuple(sorted(parts, key=lambda part: (part.kind, part.leaves)))


def kinds_of(parts: Parts) -> tuple[int, ...]:
    """What alike collections of parts have in common."""
    return tuple(part.kind for part in parts)


def leaves_of(parts: Parts) -> tuple[int, ...]:
    """The leaves of all parts: a place in this is what an answer calls a leaf."""
    return tuple(leaf for part in parts for leaf in part.leaves)


@dataclass(slots=True)
class PartTable:
    """Makes parts of a problem's groups and gives alike ones the same kind."""

    nodes: NodeTable
    measures: Measures
    _kinds: dict[Hashable, int] = field(default_factory=dict)

    def part(self, node: SearchNode) -> Part | None:
        """The group as a part; None if it has too few pods or children that could ever hold."""
        if isinstance(node, SearchLeaf):
            if sum(number for _, number in node.supply) < node.need:
                return None
            return self._part(node, (), (node.index,), self._least_of_leaf(node))
        able = [part for child in node.children if (part := self.part(child)) is not None]
        if len(able) < node.need:
            return None
        children = in_order(able)
        costs = np.sort(np.stack([child.least for child in children]), axis=0) if children else None
        least = self._nothing() if costs is None else costs[: node.need].sum(axis=0)
        return self._part(node, children, leaves_of(children), least)

    def _part(self, node: SearchNode, children: Parts, leaves_: tuple[int, ...], least: IntArray) -> Part:
        supply = node.supply if isinstance(node, SearchLeaf) else None
        content = (node.need, supply, kinds_of(children))
        inside = Part(
            node=node,
            key=None,
            keys=frozenset[str]().union(*(child.keys for child in children)),
            kind=self._kind((*content, None, b"")),
            need=node.need,
            children=children,
            leaves=leaves_,
            pins=_NONE,
            all_pins=_union(child.all_pins for child in children),
            least=least,
        )
        key = node.group.topology_key
        if key is None:
            return inside
        pins = self._pins(node)
        return replace(
            inside,
            key=key,
            keys=inside.keys | {key},
            kind=self._kind((*content, key, pins.tobytes())),
            pins=pins,
            all_pins=_union([pins, inside.all_pins]),
            inside=inside,
        )

    def _kind(self, content: Hashable) -> int:
        return self._kinds.setdefault(content, len(self._kinds))

    def _pins(self, node: SearchNode) -> IntArray:
        names = {name for leaf in leaves(node.group) for name in leaf.bound_nodes}
        pins: IntArray = np.unique(self.nodes.ranks[self.nodes.slots_of(sorted(names))])
        return pins

    def _least_of_leaf(self, leaf: SearchLeaf) -> IntArray:
        """Per measure, the weight of the cheapest pods."""
        types, supply = zip(*leaf.supply, strict=True)
        weights = self.measures.weights[:, types]
        order = np.argsort(weights, axis=1, kind="stable")
        numbers = np.array(supply, dtype=np.int64)[order]
        taken = np.clip(leaf.need - (np.cumsum(numbers, axis=1) - numbers), 0, numbers)
        least: IntArray = (taken * np.take_along_axis(weights, order, axis=1)).sum(axis=1)
        return least

    def _nothing(self) -> IntArray:
        return np.zeros(len(self.measures.weights), dtype=np.int64)


def _union(pins: Iterable[IntArray]) -> IntArray:
    known = [item for item in pins if len(item)]
    if not known:
        return _NONE
    return known[0] if len(known) == 1 else np.unique(np.concatenate(known))
