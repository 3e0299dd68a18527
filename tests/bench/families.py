"""Placement questions of medium size, made from seeds: families that greedy placement alone often fails.

What is to be placed is planted first, node by node, and the room is what it takes, with next to nothing to spare; so a
placement exists. Overfull ones have their room cut until even the cheapest pods are too many: none exists. Pinched
ones lose a little room here and there, and what that does is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from muster.model.node import Node, Taint
from muster.model.pod import Pod, Toleration
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan

Amounts = tuple[int, int, int]
"""cpu, GiB of memory, gpus."""
Spares = tuple[tuple[int, int], ...]
ANYWHERE = ""
DEDICATED = Taint("dedicated", "batch", "NoSchedule")
SPARE = ((3, 30), (30, 3), (6, 6), (4, 10), (10, 4))
"""Percent of cpu and memory that planted pods leave on average."""
NOTHING = ((0, 60), (60, 0))
TOLERATES = (Toleration(key="dedicated", operator="Exists"),)


class Ending(Enum):
    PLANTED = "planted"
    OVERFULL = "overfull"
    PINCHED = "pinched"


@dataclass(frozen=True)
class Kind:
    """Pods alike. pool: the nodes that it selects. tolerant: whether it tolerates what is dedicated."""

    takes: Amounts
    pool: str = ANYWHERE
    tolerant: bool = False


@dataclass
class Room:
    """One node: what is free there, by whom it may be used, and where it stands."""

    free: list[int]
    pool: str = ANYWHERE
    dedicated: bool = False
    rack: int = 0
    block: int = 0

    def takes(self, kind: Kind) -> bool:
        if kind.pool not in {ANYWHERE, self.pool}:
            return False
        return kind.tolerant or not self.dedicated


@dataclass
class Leaf:
    """`need` of the pods; a leaf with fewer pods than that cannot be tried."""

    pods: list[Kind] = field(default_factory=list)
    need: int = 0
    same: str | None = None

    @property
    def is_admissible(self) -> bool:
        return len(self.pods) >= self.need

    def cheapest(self, resource: int) -> int:
        return sum(sorted(kind.takes[resource] for kind in self.pods)[: self.need])


@dataclass
class Layout:
    """Nodes, and a root with leaves of which it needs some; one leaf without a root is the root itself."""

    rooms: list[Room]
    leaves: list[Leaf]
    need: int
    same: str | None = None

    def cheapest(self, resource: int) -> int:
        able = [leaf.cheapest(resource) for leaf in self.leaves if leaf.is_admissible]
        return sum(sorted(able)[: self.need])


def planted(
    random: Random, rooms: list[Room], kinds: list[Kind], most: tuple[int, int], spares: Spares = SPARE
) -> list[Kind]:
    """Pods for each room, which then has little more of one resource, or of both, than what they take."""
    pods: list[Kind] = []
    spare = random.choice(spares)
    for room in rooms:
        able = [kind for kind in kinds if room.takes(kind)]
        here = random.choices(able, k=random.randint(*most)) if able else []
        taken = [sum(kind.takes[resource] for kind in here) for resource in range(3)]
        room.free = [
            amount + int(amount * percent / 100 + random.random())
            for amount, percent in zip(taken, (*spare, 0), strict=True)
        ]
        pods += here
    return pods


def general_kinds(random: Random, number: int) -> list[Kind]:
    return [Kind((random.randint(1, 8), random.randint(1, 24), 0)) for _ in range(number)]


def split(random: Random, pods: list[Kind], parts: int) -> list[Leaf]:
    """All pods dealt to leaves that need all of theirs; a leaf has pods of few kinds."""
    order = sorted(pods, key=lambda kind: (kind.takes, kind.pool, kind.tolerant))
    cuts = sorted(random.sample(range(1, len(order)), min(parts, len(order)) - 1))
    pieces = [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    leaves = [Leaf(piece, len(piece)) for piece in pieces]
    random.shuffle(leaves)
    return leaves


def tight_flat_gang(random: Random) -> Layout:
    """One gang of pods of several sizes, some of them to spare."""
    kinds = general_kinds(random, random.randint(3, 9))
    rooms = [Room([]) for _ in range(random.randint(20, 170))]
    pods = planted(random, rooms, kinds, (1, 5))
    spare = random.choices(kinds, k=random.choice((0, 0, len(pods) // 20, len(pods) // 5)))
    return Layout(rooms, [Leaf(pods + spare, len(pods))], 1)


def brimful_gang(random: Random) -> Layout:
    """One gang that needs all of its pods, and all that the nodes have of one resource: an exact solver fails too."""
    kinds = general_kinds(random, random.randint(3, 9))
    rooms = [Room([]) for _ in range(random.randint(20, 170))]
    pods = planted(random, rooms, kinds, (1, 5), NOTHING)
    return Layout(rooms, [Leaf(pods, len(pods))], 1)


def nested_tight(random: Random) -> Layout:
    """A root that needs some of its leaves; some nodes are special, and what needs them comes last."""
    kinds = general_kinds(random, random.randint(3, 8))
    special = [Kind(kind.takes, "special") for kind in random.sample(kinds, 2)]
    rooms = [Room([], random.choice(("special", "plain", "plain"))) for _ in range(random.randint(20, 120))]
    leaves = split(random, planted(random, rooms, kinds + special, (1, 5)), random.randint(4, 12))
    need = len(leaves)
    for _ in range(random.choice((0, 1, 3))):
        leaf = random.choice(leaves)
        larger = [Kind((kind.takes[0] + 1, kind.takes[1], 0), kind.pool) for kind in leaf.pods]
        leaves.append(Leaf(larger, leaf.need))
    for leaf in random.sample(leaves, len(leaves) // 3):
        leaf.pods = leaf.pods + random.choices(leaf.pods, k=2)
    return Layout(rooms, sorted(leaves, key=lambda leaf: leaf.pods[0].pool), need)


def topology_trap(random: Random) -> Layout:
    """Leaves that each need one rack, all in one block: its racks just hold them, and look much like the others'."""
    kinds = [Kind((random.randint(1, 6), 2, 0)) for _ in range(random.randint(2, 6))]
    blocks, racks, size = random.randint(2, 5), random.randint(3, 6), random.randint(2, 5)
    rooms = [
        Room([], rack=block * racks + rack, block=block)
        for block in range(blocks)
        for rack in range(racks)
        for _ in range(size)
    ]
    chosen, leaves = random.randrange(blocks), list[Leaf]()
    for rack in range(blocks * racks):
        here = [room for room in rooms if room.rack == rack]
        pods = planted(random, here, kinds, (1, 4))
        if rack // racks == chosen and len(pods) > 1:
            leaves += split(random, pods, random.choice((1, 1, 2)))
        elif rack % racks == 0:
            here[0].free[0] = max(0, here[0].free[0] - random.randint(1, 3))
    for leaf in leaves:
        leaf.same = "rack"
    random.shuffle(leaves)
    return Layout(rooms, leaves, len(leaves), "block")


def fragmented_gpu(random: Random) -> Layout:
    """Pods of one to eight gpus with cpu and memory in proportion, for nodes that are partly in use."""
    kinds = [Kind((12 * gpus, 100 * gpus, gpus)) for gpus in (1, 2, 4, 8)]
    rooms = [Room([]) for _ in range(random.randint(20, 150))]
    pods: list[Kind] = []
    for room in rooms:
        gpus, spare = random.choice((8, 7, 6, 6, 5, 4, 4, 3, 2)), random.random() < 0.1
        left = gpus - spare
        while left:
            kind = random.choice([kind for kind in kinds if kind.takes[2] <= left])
            left -= kind.takes[2]
            pods.append(kind)
        room.free = [13 * gpus, 112 * gpus, gpus]
    parts = random.choice((1, 1, 3, 6))
    leaves = split(random, pods, parts)
    for leaf in leaves:
        leaf.pods = leaf.pods + random.choices(kinds, k=random.choice((0, 0, 3)))
    return Layout(rooms, leaves, len(leaves))


def inadmissible(random: Random) -> Layout:
    """Leaves of which some lack pods, so that the root depends on all others, or on more than there are."""
    layout = nested_tight(random)
    short = [Leaf(leaf.pods[:1], leaf.need + 2) for leaf in random.sample(layout.leaves, 2)]
    layout.leaves = [*layout.leaves[:2], *short, *layout.leaves[2:]]
    return layout


def selectors_taints(random: Random) -> Layout:
    """Pods that select disks and zones or tolerate what is dedicated, beside some that run anywhere untainted."""
    pools = ("ssd", "hdd", "z1", "z2")
    kinds = [
        Kind(kind.takes, random.choice((*pools, ANYWHERE, ANYWHERE)), random.random() < 0.3)
        for kind in general_kinds(random, random.randint(6, 16))
    ]
    rooms = [Room([], random.choice(pools), random.random() < 0.2) for _ in range(random.randint(20, 120))]
    leaves = split(random, planted(random, rooms, kinds, (1, 5)), random.choice((1, 3, 6)))
    for leaf in leaves:
        leaf.pods = leaf.pods + random.choices(leaf.pods, k=random.choice((0, 0, 2, 4)))
    return Layout(rooms, leaves, len(leaves))


FAMILIES: dict[str, Callable[[Random], Layout]] = {
    maker.__name__: maker
    for maker in (
        tight_flat_gang,
        nested_tight,
        topology_trap,
        fragmented_gpu,
        inadmissible,
        selectors_taints,
        brimful_gang,
    )
}


def layout_of(family: str, seed: int, ending: Ending) -> Layout:
    """The question of a seed."""
    random = Random(f"{family} {seed} {ending.value}")
    layout = FAMILIES[family](random)
    if ending is Ending.OVERFULL:
        _overfill(random, layout)
    elif ending is Ending.PINCHED:
        _take(random, layout.rooms, max(1, len(layout.rooms) // 40))
    return layout


def _overfill(random: Random, layout: Layout) -> None:
    """Cut room until the cheapest pods are too many for every part of the cluster that the root may take."""
    resource = 2 if layout.cheapest(2) else 0
    for block in {room.block for room in layout.rooms} if layout.same else (None,):
        rooms = [room for room in layout.rooms if block in {None, room.block}]
        excess = sum(room.free[resource] for room in rooms) - layout.cheapest(resource) + 1
        _take(random, rooms, excess, resource)


def _take(random: Random, rooms: list[Room], pieces: int, resource: int | None = None) -> None:
    for _ in range(max(0, pieces)):
        kind = random.choice((0, 1)) if resource is None else resource
        room = random.choice([room for room in rooms if room.free[kind]])
        room.free[kind] -= 1


def built(layout: Layout) -> tuple[Cluster, GroupPlan]:
    """The cluster, with a running pod where a node is partly in use, and the root."""
    random = Random(len(layout.rooms))
    used = [
        (random.choice((0, 2, 4, 8)), random.choice((0, 4, 16)), random.choice((0, 0, 1)))
        for _ in layout.rooms
    ]
    cluster = Cluster(
        *(_node(place, *both) for place, both in enumerate(zip(layout.rooms, used, strict=True)))
    )
    for place, amounts in enumerate(used):
        cluster.runs(_pod("running", Kind(amounts)), f"node-{place:03}")
    return cluster, _plan(layout)


def _node(place: int, room: Room, used: Amounts) -> Node:
    cpu, memory, gpu = (free + taken for free, taken in zip(room.free, used, strict=True))
    return node(
        f"node-{place:03}",
        str(cpu),
        memory=f"{memory}Gi",
        gpu=str(gpu),
        labels={"pool": room.pool, "rack": f"rack-{room.rack}", "block": f"block-{room.block}"},
        taints=(DEDICATED,) if room.dedicated else (),
    )


def _plan(layout: Layout) -> GroupPlan:
    leaves = [
        pod_group(
            f"leaf-{place}",
            gang(leaf.need),
            pods=tuple(_pod(f"pod-{place}-{index}", kind) for index, kind in enumerate(leaf.pods)),
            same=leaf.same,
            admissible=leaf.is_admissible,
        )
        for place, leaf in enumerate(layout.leaves)
    ]
    if len(leaves) == 1:
        return leaves[0]
    return composite("root", gang(layout.need), *leaves, same=layout.same)


def _pod(name: str, kind: Kind) -> Pod:
    cpu, memory, gpu = kind.takes
    return pod(
        name,
        cpu=str(cpu),
        memory=f"{memory}Gi",
        gpu=str(gpu),
        node_selector={"pool": kind.pool} if kind.pool else {},
        tolerations=TOLERATES if kind.tolerant else (),
    )
