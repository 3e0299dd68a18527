"""Running gangs that lose members, grow and shrink; and a cluster through which objects pass without leaving a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

import pytest

from muster.engine import disruption_units
from muster.engine.api import BindingFailed, PhaseChanged
from muster.engine.kept_records import KeptRecords
from muster.engine.ports import UnitState
from muster.model.meta import OwnerReference
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from tests import dsl
from tests.engine.queue_worlds import QueueWorld, ours
from tests.engine.tree_cluster import composite, leaf, node, pods, with_minimum

ZONED = leaf("gang", 3, same="zone", workload="")


def zone(name: str, *, cpu: int) -> Node:
    return node(f"node-{name}", cpu=cpu, labels={"zone": name})


def running(*, b_cpu: int = 8) -> QueueWorld:
    """The gang runs in zone a, which has room for just one pod more."""
    world = QueueWorld(zone("a", cpu=4), ZONED, *pods(ZONED, 3))
    world.cycles()
    world.apply(zone("b", cpu=b_cpu))
    return world


def where(world: QueueWorld) -> dict[str, str]:
    found = world.cluster.state.objects["Pod"].values()
    return {pod.name: pod.node_name for pod in found if isinstance(pod, Pod) and pod.group == "gang"}


def after_backoff(world: QueueWorld, unit: ClusterObject) -> None:
    world.now_us = world.cluster.queue.rows[unit.key].not_before_us
    world.cluster.queue.due(world.now_us)
    world.cycles()


def test_a_lost_member_is_replaced_in_the_domain_of_its_siblings_who_stay() -> None:
    world = running()
    before = where(world)
    world.delete(world.pod("gang-1"))

    world.apply(*pods(ZONED, 1, first=7))
    world.cycles()

    assert where(world) == {"gang-0": "node-a", "gang-2": "node-a", "gang-7": "node-a"}
    assert before["gang-0"] == "node-a"


def test_a_replacement_for_which_the_domain_has_no_room_waits_there_and_nobody_moves() -> None:
    world = running()
    world.delete(world.pod("gang-1"))
    world.apply(*(replace(ours(dsl.pod(cpu="2"), on="node-a"), name=f"other-{i}") for i in range(1)))

    world.apply(*pods(ZONED, 1, first=7))
    world.cycles()
    waiting = where(world)
    world.delete(world.pod("other-0"))
    world.cycles()

    assert waiting == {"gang-0": "node-a", "gang-2": "node-a", "gang-7": ""}
    assert where(world)["gang-7"] == "node-a"


def test_a_failed_member_is_none_and_its_replacement_makes_the_gang_whole() -> None:
    world = running()
    world.reported("gang-1", PhaseChanged("Failed", "", ""))

    world.apply(*pods(ZONED, 1, first=7))
    world.cycles()

    assert where(world)["gang-7"] == "node-a"


def test_a_member_whose_binding_failed_goes_elsewhere_in_the_domain() -> None:
    world = running()
    world.apply(node("node-a2", cpu=4, labels={"zone": "a"}))

    world.reported("gang-1", BindingFailed("node-a", "NoLuck", ""))
    after_backoff(world, ZONED)

    assert where(world)["gang-1"] == "node-a2"


def test_a_gang_that_grows_keeps_what_runs_and_waits_for_the_rest_together() -> None:
    """Its minimum rises to five: two more are needed and there is room for one, so none of them is bound."""
    world = running()

    world.apply(with_minimum(ZONED, 5), *pods(ZONED, 2, first=3))
    world.cycles()
    before = where(world)
    world.apply(zone("a", cpu=5))
    world.cycles()

    assert list(before.values()).count("node-a") == 3
    assert list(where(world).values()).count("node-a") == 5


def test_a_gang_that_shrinks_is_admissible_with_those_it_has() -> None:
    world = QueueWorld(zone("a", cpu=4), ZONED, *pods(ZONED, 2))
    assert world.cycles() == []

    world.apply(with_minimum(ZONED, 2))
    world.cycles()

    assert list(where(world).values()) == ["node-a", "node-a"]


@pytest.mark.parametrize("lost", ["deleted", "failed", "unbound"])
def test_members_are_counted_anew_at_every_level_when_one_is_lost(lost: str) -> None:
    """The lost member leaves its leaf short; its sibling leaf runs on, and the replacement brings the tree back."""
    root = composite("root", 2, workload="wl")
    gangs = [leaf(name, 2, parent=root) for name in ("left", "right")]
    world = QueueWorld(node("n", cpu=4), root, *gangs, *(pod for gang in gangs for pod in pods(gang, 2)))
    world.cycles()

    if lost == "deleted":
        world.delete(world.pod("left-0"))
    elif lost == "failed":
        world.reported("left-0", PhaseChanged("Failed", "", ""))
    else:
        world.apply(node("m", cpu=4))
        world.reported("left-0", BindingFailed("n", "", ""))
    if lost != "unbound":
        world.apply(*pods(gangs[0], 1, first=5))
    if world.state_of(root) is UnitState.BACKOFF:
        after_backoff(world, root)
    world.cycles()

    live = [
        pod for pod in world.cluster.state.objects["Pod"].values() if isinstance(pod, Pod) and pod.is_member
    ]
    assert len(live) == 4
    assert all(pod.node_name for pod in live)


def test_what_passes_through_a_cluster_leaves_nothing_behind_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One shelf for all pods without a group: else it counts for one more in which of them these are.
    monkeypatch.setattr(disruption_units, "PODS_A_SHELF", 2**62)
    world = QueueWorld(node("n", cpu=4))
    sizes = [passed_through(world, f"turn-{turn}") for turn in range(6)]

    assert sizes[2] == sizes[3] == sizes[4] == sizes[5]


def passed_through(world: QueueWorld, name: str) -> dict[str, int]:
    """Sizes after a node, a tree that fits, one that does not and owned pods have come and gone."""
    root = composite(f"{name}-root", 1, workload="wl")
    fits, hopeless = leaf(f"{name}-fits", 2, parent=root), leaf(f"{name}-hopeless", 9, workload="")
    boss = replace(ours(dsl.pod()), name=f"{name}-boss")
    passing = node(f"{name}-node", cpu=1)
    world.apply(passing, root, fits, hopeless, *pods(fits, 2), *pods(hopeless, 9), boss)
    owner = OwnerReference(kind="Pod", name=boss.name, uid=world.pod(boss.name).uid)
    world.apply(replace(ours(dsl.pod(), on=passing.name), name=f"{name}-owned", owner_references=(owner,)))
    world.cycles()
    world.reported(f"{name}-fits-0", BindingFailed(world.pod(f"{name}-fits-0").node_name, "", ""))
    world.delete(boss, *pods(fits, 2), *pods(hopeless, 9), fits, hopeless, root)
    world.delete(passing)
    world.later(400)
    world.cycles()
    world.cluster.take_writes()
    for forgetting in (world.cluster.failures, world.cluster.searches):
        for key in (root.key, hopeless.key, boss.key):
            forgetting.forget(key)
    world.cluster.last_decisions = KeptRecords()
    return dict(sizes_in(world.cluster, "cluster", set()))


def sizes_in(held: object, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    """Every collection that the object holds, by where it is; what an arbitrary key holds counts together."""
    if id(held) in seen or isinstance(held, str | bytes | int | float | type(None)):
        return
    seen.add(id(held))
    totals: dict[str, int] = {}
    if isinstance(held, Mapping):
        yield path, len(held)
        inner = [(f"{path}[]", each) for each in held.values()]
    elif isinstance(held, list | set | tuple | frozenset):
        yield path, len(held)
        inner = [(f"{path}[]", each) for each in held]
    elif type(held).__module__.startswith("muster.engine"):
        inner = [(f"{path}.{name}", value) for name, value in attributes_of(held)]
    else:
        return
    for where_, each in inner:
        for name, size in sizes_in(each, where_, seen):
            totals[name] = totals.get(name, 0) + size
    yield from totals.items()


def attributes_of(held: object) -> Iterator[tuple[str, object]]:
    names = [item.name for item in fields(held)] if is_dataclass(held) else [*getattr(held, "__dict__", {})]
    for name in names:
        if name not in {"_telemetry", "spec_memo", "feed"}:
            yield name, getattr(held, name)
