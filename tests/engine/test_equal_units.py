"""A unit passes for equal to the one before it only if building and checking it would come to the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.core.tree import Unit
from muster.engine.equal_units import EqualUnits
from muster.engine.units import build_unit
from muster.model.group import GangPolicy, PodGroup, SchedulingPolicy
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods

FIRST, SECOND = leaf("first", 3, template="t"), leaf("second", 3, template="t")
PODS = pods(SECOND, 3)
ALONE = [replace(pod, group="") for pod in PODS]


def compared(first: list[ClusterObject], second: list[ClusterObject]) -> tuple[Unit | None, Unit]:
    """The second unit as the first one tells it, and as it is built."""
    cluster = TreeCluster()
    cluster.apply(node("n"), *first, *second)
    before = build_unit(cluster.cluster, first[0].key)
    equal = EqualUnits(cluster.cluster, cluster.cluster.feed.flush())
    equal.note(before, PROFILE)
    return equal.unit(second[0].key), build_unit(cluster.cluster, second[0].key)


def test_a_gang_equal_to_the_one_before_is_the_unit_that_would_be_built() -> None:
    found, built = compared([FIRST, *pods(FIRST, 3)], [SECOND, *PODS])

    assert found == built


def test_a_gang_of_unlike_pods_may_be_equal_to_the_one_before() -> None:
    first = [replace(pod, labels={"role": pod.name[-1]}) for pod in pods(FIRST, 3)]
    second = [replace(pod, labels={"role": pod.name[-1]}) for pod in PODS]

    found, built = compared([FIRST, *first], [SECOND, *second])
    other_order, _ = compared([FIRST, *first], [SECOND, *reversed(second)])

    assert found == built
    assert other_order is None


def test_a_pod_equal_to_the_one_before_is_the_unit_that_would_be_built() -> None:
    found, built = compared([*ALONE[:1]], [*ALONE[1:2]])

    assert found == built


@pytest.mark.parametrize(
    "second",
    [
        pytest.param([SECOND, *PODS, *pods(SECOND, 1, first=3)], id="more pods"),
        pytest.param([SECOND, *PODS[:2]], id="fewer pods"),
        pytest.param([SECOND, *PODS, *pods(SECOND, 1, first=3, on="n")], id="a bound member"),
        pytest.param([SECOND, *PODS[:2], replace(PODS[2], gates=("wait",))], id="a gate"),
        pytest.param([SECOND, *PODS[:2], replace(PODS[2], node_name="n")], id="a node"),
        pytest.param([SECOND, *PODS[:2], replace(PODS[2], labels={"a": "b"})], id="labels of one"),
        pytest.param([SECOND, *(replace(pod, labels={"a": "b"}) for pod in PODS)], id="labels of all"),
        pytest.param([SECOND, *pods(SECOND, 3, priority=5)], id="another priority than the group's"),
        pytest.param(
            [SECOND, *PODS, replace(PODS[0], name="over", status=PodStatus("Succeeded"))], id="over"
        ),
        pytest.param([leaf("second", 2, template="t"), *PODS], id="another minimum"),
        pytest.param([leaf("second", 3, template="t", priority=5), *PODS], id="another priority"),
        pytest.param([leaf("second", 3, template="t", same="rack"), *PODS], id="a topology"),
        pytest.param([replace(SECOND, deletion_us=1), *PODS], id="being deleted"),
        pytest.param([composite("second", 3, template="t"), *PODS], id="a tree"),
        pytest.param([ALONE[0]], id="a pod"),
    ],
)
def test_a_gang_that_differs_is_not_taken_for_equal(second: list[ClusterObject]) -> None:
    found, _ = compared([FIRST, *pods(FIRST, 3)], second)

    assert found is None


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(replace(ALONE[1], gates=("wait",)), id="a gate"),
        pytest.param(replace(ALONE[1], labels={"a": "b"}), id="labels"),
        pytest.param(replace(ALONE[1], namespace="other"), id="namespace"),
    ],
)
def test_a_pod_that_differs_is_not_taken_for_equal(second: Pod) -> None:
    found, _ = compared([ALONE[0]], [second])

    assert found is None


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([FIRST, *pods(FIRST, 3), *pods(FIRST, 1, first=3, on="n")], id="one is bound"),
        pytest.param([composite("root"), leaf("first", 3, parent="root"), *pods(FIRST, 3)], id="a tree"),
    ],
)
def test_no_gang_is_equal_to_one_that_is_not_plain(first: list[ClusterObject]) -> None:
    found, _ = compared(first, [SECOND, *PODS])

    assert found is None


def test_a_pod_is_not_taken_for_equal_to_a_gang_of_one() -> None:
    found, _ = compared([leaf("first", 1), *pods(FIRST, 1)], [ALONE[0]])

    assert found is None


def test_a_gang_of_the_name_of_a_pod_is_not_taken_for_one() -> None:
    found, _ = compared([ALONE[0]], [replace(SECOND, name=ALONE[1].name), ALONE[1]])

    assert found is None


def tree(
    name: str, *, minimums: tuple[int, ...] = (2, 1), count: int = 2, same: str = ""
) -> list[ClusterObject]:
    """A tree of two groups, by whose names a child is not told from another."""
    root = composite(name, 2, same="")
    groups = [leaf(f"{name}-{i}", minimums[i], parent=root, same=same) for i in range(len(minimums))]
    return [root, *groups, *(pod for group in groups for pod in pods(group, count))]


def test_a_tree_equal_to_the_one_before_is_the_unit_that_would_be_built() -> None:
    found, built = compared(tree("first"), tree("second"))

    assert found == built


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(tree("second", minimums=(1, 2)), id="groups in another order"),
        pytest.param(tree("second", minimums=(2, 1, 1)), id="one group more"),
        pytest.param(tree("second", minimums=(2,)), id="one group less"),
        pytest.param(tree("second", count=3), id="more pods"),
        pytest.param(tree("second", same="rack"), id="a topology below"),
        pytest.param(
            [replace(each, deletion_us=1) if each.name == "second-1" else each for each in tree("second")],
            id="a group that is being deleted",
        ),
        pytest.param(
            [replace(each, labels={"a": "b"}) if isinstance(each, Pod) else each for each in tree("second")],
            id="labels",
        ),
        pytest.param(
            [*tree("second", minimums=(2,)), composite("empty", parent="second")],
            id="a group of another kind",
        ),
        pytest.param(
            [composite("second", 1, same=""), *tree("second")[1:]], id="another minimum of the root"
        ),
    ],
)
def test_a_tree_that_differs_is_not_taken_for_equal(second: list[ClusterObject]) -> None:
    found, _ = compared(tree("first"), second)

    assert found is None


def test_a_unit_that_was_noted_later_is_the_one_that_counts() -> None:
    cluster = TreeCluster()
    small = PodGroup(
        name="small",
        namespace="default",
        spec=replace(FIRST.spec, scheduling_policy=SchedulingPolicy(gang=GangPolicy(1))),
    )
    cluster.apply(node("n"), FIRST, *pods(FIRST, 3), small, *pods(small, 1), SECOND, *PODS)
    units = [build_unit(cluster.cluster, each.key) for each in (FIRST, small)]
    equal = EqualUnits(cluster.cluster, cluster.cluster.feed.flush())
    for each in units:
        equal.note(each, PROFILE)

    assert equal.unit(SECOND.key) is None
