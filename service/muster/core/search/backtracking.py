"""Placing a handful of pods by trying everything: for trees so small that setting up the packing costs more than this.

For problems in which every group needs all that it has and nobody is pinned. A group's constraint then says that all
pods below it run on nodes with one value of its label. Gives up after so many pods placed; `packing` and the domain
search answer what is larger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from muster.core.node_table import NodeTable
from muster.core.search.packing import IMPOSSIBLE, UNKNOWN, Packing, Verdict
from muster.core.search.problem import MANY, Problem, SearchLeaf, SearchNode
from muster.core.tree import leaves

MOST_NODES, MOST_PODS = 12, 32

Amounts = list[list[int]]
"""Per node or type, by resource."""


@dataclass(frozen=True, slots=True)
class _Item:
    """Equal pods under the same constraints. chain: places of these among all. wants: leaf and how many; number: in all."""

    kind: int
    chain: tuple[int, ...]
    wants: tuple[tuple[int, int], ...]
    number: int

    @property
    def outermost(self) -> int:
        """The outermost constraint, or -1."""
        return self.chain[0] if self.chain else -1


class _TooLongError(Exception):
    """More was tried than is allowed."""


@dataclass(frozen=True, slots=True)
class Backtracking:
    """items: what is to be placed, in the order of placing. nodes: that could take a pod, indexes of the problem.

    hosts: per type, by node. labels: per constraint, the code of each node's value, or -1. demand: per type.
    """

    items: tuple[_Item, ...]
    nodes: tuple[int, ...]
    hosts: list[list[bool]]
    labels: list[list[int]]
    demand: Amounts

    def place(self, free: Amounts, most: int) -> tuple[Packing, int]:
        """A packing within the room of each node, or that there is none, or UNKNOWN after `most` pods; and how many.

        free is not kept.
        """
        attempt = _Attempt(self, free, most)
        try:
            verdict = Verdict.FOUND if attempt.begin(0) else Verdict.IMPOSSIBLE
        except _TooLongError:
            return UNKNOWN, most
        if verdict is Verdict.IMPOSSIBLE:
            return IMPOSSIBLE, attempt.tried
        return Packing(verdict, tuple(sorted(self._assigned(attempt.on)))), attempt.tried

    def _assigned(self, on: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int, int]]:
        """Leaf, type, node and number for what was placed: per item, the node of each pod."""
        for item, places in zip(self.items, on, strict=True):
            counts: dict[tuple[int, int], int] = defaultdict(int)
            takers = (leaf for leaf, number in item.wants for _ in range(number))
            for leaf, node in zip(takers, places, strict=True):
                counts[leaf, self.nodes[node]] += 1
            yield from ((leaf, item.kind, node, number) for (leaf, node), number in counts.items())


@dataclass(slots=True)
class _Attempt:
    """chosen: per constraint, the code that its pods must be on, or -1 before the first. on: per item begun, nodes."""

    tree: Backtracking
    free: Amounts
    most: int
    tried: int = 0
    on: list[list[int]] = field(default_factory=list)
    chosen: list[int] = field(init=False)
    _failed: set[object] = field(default_factory=set)
    _alike: list[int] = field(init=False)

    def __post_init__(self) -> None:
        tree = self.tree
        self.chosen = [-1] * len(tree.labels)
        known: dict[object, int] = {}
        columns = zip(*tree.hosts, *tree.labels, strict=True)
        self._alike = [known.setdefault(column, len(known)) for column in columns]

    def begin(self, place: int) -> bool:
        """Place an item and all that follow; False, and nothing changed, if they do not fit."""
        if place == len(self.tree.items):
            return True
        if self._is_hopeless(place):
            return False
        looks = sorted(map(self._look, range(len(self.free))))
        state = place, tuple(looks), tuple(self.chosen)
        if state in self._failed:
            return False
        item = self.tree.items[place]
        asked = self.tree.demand[item.kind]
        order = sorted(self._able(item), key=lambda node: (sum(self.free[node]), node))
        self.on.append([])
        if self._settle(place, item, order, asked):
            return True
        self.on.pop()
        self._failed.add(state)
        return False

    def _settle(self, place: int, item: _Item, order: list[int], asked: list[int]) -> bool:
        """Place the item's pods that are left, each no earlier in the order than the one before, then what follows."""
        if len(self.on[place]) == item.number:
            return self.begin(place + 1)
        seen = set()
        for position, node in enumerate(order):
            look = self._look(node)
            if look in seen or not self._may_take(node, item, asked):
                continue
            seen.add(look)
            self.tried += 1
            if self.tried > self.most:
                raise _TooLongError
            before = [self.chosen[constraint] for constraint in item.chain]
            self._put(node, item, asked, 1)
            for constraint in item.chain:
                self.chosen[constraint] = self.tree.labels[constraint][node]
            self.on[place].append(node)
            if self._settle(place, item, order[position:], asked):
                return True
            self.on[place].pop()
            for constraint, code in zip(item.chain, before, strict=True):
                self.chosen[constraint] = code
            self._put(node, item, asked, -1)
        return False

    def _able(self, item: _Item) -> list[int]:
        asked = self.tree.demand[item.kind]
        return [node for node in range(len(self.free)) if self._may_take(node, item, asked)]

    def _may_take(self, node: int, item: _Item, asked: list[int]) -> bool:
        if not self.tree.hosts[item.kind][node]:
            return False
        for constraint in item.chain:
            code = self.tree.labels[constraint][node]
            if code < 0 or self.chosen[constraint] not in (-1, code):
                return False
        return all(has >= takes for has, takes in zip(self.free[node], asked, strict=True))

    def _put(self, node: int, item: _Item, asked: list[int], number: int) -> None:
        free = self.free[node]
        for resource, amount in enumerate(asked):
            free[resource] -= number * amount

    def _look(self, node: int) -> tuple[int, ...]:
        """Equal for nodes that make no difference."""
        return self._alike[node], *self.free[node]

    def _is_hopeless(self, place: int) -> bool:
        """Whether an item that is to come would not fit by itself."""
        demand, hosts = self.tree.demand, self.tree.hosts
        for item in self.tree.items[place:]:
            missing = item.number
            asked = [(resource, amount) for resource, amount in enumerate(demand[item.kind]) if amount]
            for node, free in enumerate(self.free):
                if hosts[item.kind][node] and missing > 0:
                    missing -= min((free[resource] // amount for resource, amount in asked), default=missing)
            if missing > 0:
                return True
        return False


def backtracking_of(
    problem: Problem, nodes: NodeTable, useful: Sequence[int], demand: Amounts
) -> Backtracking | None:
    """For a problem on those of its nodes that are useful; None if it is too large, or leaves a choice of pods."""
    pods = sum(number for _, number in _supplies(problem.root))
    is_pinned = any(leaf.bound_nodes for leaf in leaves(problem.root.group))
    is_limited = bool((problem.per_node < MANY).any())
    if len(useful) > MOST_NODES or pods > MOST_PODS:
        return None
    if is_pinned or is_limited or not _is_rigid(problem.root):
        return None
    keys: list[str] = []
    wants: dict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = defaultdict(list)
    _collect(problem.root, (), keys, wants)
    slots = problem.slots[list(useful)]
    labels = [nodes.column(key).codes[slots].tolist() for key in keys]
    items = [
        _Item(kind, chain, tuple(known), sum(number for _, number in known))
        for (chain, kind), known in wants.items()
    ]
    hosts: list[list[bool]] = problem.hosts[:, list(useful)].tolist()
    return Backtracking(tuple(_largest_first(items, demand)), tuple(useful), hosts, labels, demand)


def _largest_first(items: list[_Item], demand: Amounts) -> list[_Item]:
    """What the outermost constraints keep together, constrained ones first, and in it the largest pods first."""
    totals = [max(1, sum(amounts)) for amounts in zip(*demand, strict=True)]
    sizes = [
        max((amount / total for amount, total in zip(row, totals, strict=True)), default=0.0)
        for row in demand
    ]
    weights: dict[int, float] = defaultdict(float)
    for item in items:
        weights[item.outermost] += sizes[item.kind] * item.number

    def order(item: _Item) -> tuple[bool, float, int, float, int, tuple[int, ...]]:
        top = item.outermost
        return not item.chain, -weights[top], top, -sizes[item.kind], item.kind, item.chain

    return sorted(items, key=order)


def _supplies(node: SearchNode) -> Iterator[tuple[int, int]]:
    if isinstance(node, SearchLeaf):
        yield from node.supply
    else:
        for child in node.children:
            yield from _supplies(child)


def _is_rigid(node: SearchNode) -> bool:
    """Whether the group needs all its pods or children, and these all theirs."""
    if isinstance(node, SearchLeaf):
        return node.need == sum(number for _, number in node.supply)
    return node.need == len(node.children) and all(map(_is_rigid, node.children))


def _collect(
    node: SearchNode,
    chain: tuple[int, ...],
    keys: list[str],
    wants: dict[tuple[tuple[int, ...], int], list[tuple[int, int]]],
) -> None:
    """Enter the constraints' labels and, by constraints and type, how many pods each leaf wants."""
    if node.group.topology_key is not None:
        chain = *chain, len(keys)
        keys.append(node.group.topology_key)
    if isinstance(node, SearchLeaf):
        for kind, number in node.supply:
            wants[chain, kind].append((node.index, number))
        return
    for child in node.children:
        _collect(child, chain, keys, wants)
