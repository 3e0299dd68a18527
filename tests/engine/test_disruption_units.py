"""Whom a unit may preempt: what is taken as one, at which priority, in trees of any shape (KEP-5710)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

import pytest

from muster.core.preemption_units import DisruptionUnits
from muster.engine.cluster_state import ClusterState
from muster.model.group import AnyGroup
from muster.model.meta import Condition, ObjectKey
from muster.model.pod import POD_SCHEDULED, Pod, PodStatus
from tests.engine.tree_cluster import TreeCluster, composite, leaf, node, pods

HIGH = 1_000


def running(group: AnyGroup, count: int = 1, *, priority: int = 0) -> list[Pod]:
    return pods(group, count, priority=priority, on="n")


def alone(name: str, *, priority: int = 0, status: PodStatus | None = None, scheduler: str = "") -> Pod:
    [pod] = pods(leaf("none"), 1, priority=priority, on="n")
    spec = replace(pod.spec, scheduler_name=scheduler or pod.spec.scheduler_name)
    return replace(pod, name=name, group="", spec=spec, status=status or PodStatus())


def below(cluster: TreeCluster, priority: int = HIGH) -> DisruptionUnits:
    return cluster.cluster.disruption.below(priority, cluster.cluster.budgets)


def units(cluster: TreeCluster, priority: int = HIGH) -> Mapping[str, tuple[int, set[str]]]:
    """By the unit's name: its priority, and the names of its pods."""
    found = below(cluster, priority)
    names = {pod.ordinal: pod.name for pod in cluster.cluster.disruption.running.values()}
    pods = iter(found.ordinals.tolist())
    return {
        key.name: (level, {names[ordinal] for ordinal in islice(pods, size)})
        for key, level, size in zip(found.keys, found.priorities.tolist(), found.sizes, strict=True)
    }


def test_a_pod_without_a_group_is_a_unit_of_its_own_priority() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(alone("p", priority=7))

    assert units(cluster) == {"p": (7, {"p"})}


def test_pods_of_a_group_in_single_mode_go_one_by_one() -> None:
    cluster = TreeCluster(node("n"))
    group = leaf("g", 2, priority=7)
    cluster.apply(group, *running(group, 2, priority=7))

    assert units(cluster) == {"g-0": (7, {"g-0"}), "g-1": (7, {"g-1"})}


def test_the_highest_ancestor_with_all_is_the_unit() -> None:
    cluster = TreeCluster(node("n"))
    top = composite("top", priority=5)
    middle = composite("middle", priority=5, parent=top, whole=True)
    low, other = (leaf(name, 1, priority=5, parent=middle, whole=True) for name in ("low", "other"))
    beside = leaf("beside", 1, priority=5, parent=top)
    members = [pod for group in (low, other, beside) for pod in running(group, priority=5)]
    cluster.apply(top, middle, low, other, beside, *members)

    assert units(cluster) == {
        "middle": (5, {"low-0", "other-0"}),
        "beside-0": (5, {"beside-0"}),
    }


def test_units_of_several_groups_have_the_earliest_start_and_all_pods_in_the_order_in_which_they_came() -> (
    None
):
    cluster = TreeCluster(node("n"))
    whole, another = (composite(name, priority=1, whole=True) for name in ("whole", "another"))
    one, other = (leaf(name, 1, priority=1, parent=whole) for name in ("one", "other"))
    third = leaf("third", 1, priority=1, parent=another)
    cluster.apply(whole, another, one, other, third)
    came = [running(one, priority=1), running(third, priority=1), running(other, priority=1)]
    came.append(pods(one, 1, first=1, priority=1, on="n"))
    for start, [pod] in zip((30, 20, 10, 40), came, strict=True):
        cluster.apply(replace(pod, status=PodStatus(start_us=start)))

    found = below(cluster)

    names = [cluster.cluster.disruption.running[ordinal].name for ordinal in found.ordinals.tolist()]
    assert list(zip((key.name for key in found.keys), found.sizes, found.starts, strict=True)) == [
        ("whole", 3, 10),
        ("another", 1, 20),
    ]
    assert names == ["one-0", "other-0", "one-1", "third-0"]


def test_pods_count_at_the_priority_of_the_topmost_group() -> None:
    cluster = TreeCluster(node("n"))
    top, low = composite("top", priority=50), leaf("low", 1, priority=3, parent="top")
    cluster.apply(low, *running(low, priority=3))
    before = units(cluster)

    cluster.apply(top)

    assert (before, units(cluster)) == ({"low-0": (3, {"low-0"})}, {"low-0": (50, {"low-0"})})
    assert units(cluster, priority=50) == {}


def test_a_pod_whose_group_does_not_exist_goes_by_itself() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(*running(leaf("missing"), priority=4))

    assert units(cluster) == {"missing-0": (4, {"missing-0"})}


def test_climbing_stops_where_parents_form_a_cycle() -> None:
    cluster = TreeCluster(node("n"))
    a = composite("a", priority=1, parent="b", whole=True)
    b = composite("b", priority=2, parent="a", whole=True)
    group = leaf("g", 1, priority=3, parent="a")
    cluster.apply(a, b, group, *running(group, priority=3))

    assert units(cluster) == {"b": (2, {"g-0"})}


def test_climbing_stops_at_the_fourth_level() -> None:
    cluster = TreeCluster(node("n"))
    fifth = composite("fifth", priority=9, whole=True)
    fourth = composite("fourth", priority=4, parent=fifth)
    third = composite("third", priority=3, parent=fourth)
    second = composite("second", priority=2, parent=third)
    group = leaf("g", 1, priority=1, parent=second)
    cluster.apply(fifth, fourth, third, second, group, *running(group, priority=1))

    assert units(cluster) == {"g-0": (4, {"g-0"})}


def test_units_of_equal_or_higher_priority_are_no_victims() -> None:
    cluster = TreeCluster(node("n"))
    group = leaf("g", 1, priority=10, whole=True)
    single = leaf("single", 1, priority=10)
    cluster.apply(group, *running(group, priority=10), alone("equal", priority=10), alone("low", priority=9))
    cluster.apply(single, *running(single, priority=10), *running(leaf("missing"), priority=10))

    assert units(cluster, priority=10) == {"low": (9, {"low"})}


def test_pods_of_any_scheduler_are_victims() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(alone("foreign", scheduler="somebody-else"))

    assert units(cluster) == {"foreign": (0, {"foreign"})}


@pytest.mark.parametrize(
    "changed",
    [
        lambda pod: replace(pod, deletion_us=1),
        lambda pod: replace(pod, status=PodStatus(phase="Succeeded")),
        lambda pod: replace(pod, node_name=""),
    ],
    ids=["leaving", "finished", "pending"],
)
def test_only_pods_that_run_and_stay_are_victims(changed: Callable[[Pod], Pod]) -> None:
    cluster = TreeCluster(node("n"))
    group = leaf("g", 1, whole=True)
    cluster.apply(group, *running(group, 2))

    cluster.apply(changed(running(group)[0]))

    assert units(cluster) == {"g": (0, {"g-1"})}


def test_a_pod_that_is_gone_is_no_victim() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(alone("p"))

    cluster.delete(alone("p"))

    assert units(cluster) == {}


def test_a_unit_began_when_the_first_of_its_pods_did() -> None:
    cluster = TreeCluster(node("n"))
    bound = (Condition(POD_SCHEDULED, "True", last_transition_us=300),)
    group = leaf("g", 1, whole=True)
    first, second = running(group, 2)
    cluster.apply(
        group,
        replace(first, status=PodStatus(start_us=900, conditions=bound)),
        replace(second, status=PodStatus(conditions=bound)),
        alone("reported", status=PodStatus(start_us=700, conditions=bound)),
        replace(alone("placed"), creation_us=500),
    )

    found = below(cluster)

    starts = dict(zip((key.name for key in found.keys), found.starts, strict=True))
    assert starts == {"g": 300, "reported": 700, "placed": 500}


def test_a_restart_finds_the_same_victims() -> None:
    cluster = TreeCluster(node("n"))
    group = leaf("g", 1, whole=True)
    cluster.apply(group, *running(group, 2), alone("p", priority=3))

    assert units(cluster.restarted()) == units(cluster) == {"g": (0, {"g-0", "g-1"}), "p": (3, {"p"})}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_and_goes_the_victims_are_those_that_a_restart_finds(seed: int) -> None:
    chance, cluster = random.Random(seed), TreeCluster(node("n"))
    leaves, tops = [f"leaf-{each}" for each in range(4)], [f"top-{each}" for each in range(4)]
    for _ in range(60):
        priority, parent, whole = chance.randrange(4), chance.choice([*tops, ""]), chance.random() < 0.5
        group: AnyGroup
        if chance.random() < 0.5:
            group = leaf(chance.choice(leaves), 1, priority=priority, parent=parent, whole=whole)
        else:
            group = composite(chance.choice(tops), 1, priority=priority, parent=parent, whole=whole)
        members = running(leaf(chance.choice(leaves)), 2, priority=chance.randrange(4))
        there = cluster.cluster.state
        if chance.random() < 0.4:
            gone: list[AnyGroup | Pod] = [group, *members]
            gone = [each for each in gone if there.get(each.key) is not None]
            cluster.delete(*gone, force=True)
        elif there.get(group.key) is None:
            new = [pod for pod in members if there.get(pod.key) is None]
            cluster.apply(group, *chance.choice([new, []]))

        priority = chance.randrange(6)
        assert units(cluster, priority) == units(cluster.restarted(), priority)


def test_a_group_that_comes_makes_nobody_else_be_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = TreeCluster(node("n"))
    for each in range(20):
        group = leaf(f"g-{each}", 1, whole=True)
        cluster.apply(group, *running(group))
    units(cluster)
    asked: list[ObjectKey] = []
    group_of = ClusterState.group

    def counted(state: ClusterState, key: ObjectKey) -> AnyGroup | None:
        asked.append(key)
        return group_of(state, key)

    top = composite("top", 1)
    new = leaf("new", 1, parent=top)
    cluster.apply(top, new, *running(new))
    monkeypatch.setattr(ClusterState, "group", counted)

    assert "new-0" in units(cluster)
    assert asked == [new.key, top.key]
