"""Trees as they come, change and go: what is tried, what waits, and what each group and pod says meanwhile."""

from dataclasses import replace

import pytest

from muster.core.decision import DecisionCode
from muster.engine.ports import UnitState
from muster.model.group import AnyGroup
from muster.model.objects import ClusterObject
from tests.engine.tree_cluster import (
    TreeCluster,
    composite,
    leaf,
    node,
    pods,
    with_minimum,
)

ROOT = composite("root")
A = leaf("a", 2, parent=ROOT)
B = leaf("b", 2, parent=ROOT)
BOTH = composite("root", 2)
UNSCHEDULABLE, SCHEDULED = DecisionCode.UNSCHEDULABLE, DecisionCode.SCHEDULED


class TestArrival:
    OBJECTS: tuple[ClusterObject, ...] = (*pods(A, 2), A, *pods(B, 2), B, BOTH)

    @pytest.mark.parametrize("last", range(len(OBJECTS)))
    def test_whatever_comes_last_completes_the_tree(self, last: int) -> None:
        trees = TreeCluster(node("n"))
        for item in reversed(self.OBJECTS):
            if item is not self.OBJECTS[last]:
                trees.apply(item)
                trees.cycles()
        assert trees.bound() == set()

        trees.apply(self.OBJECTS[last])

        assert trees.cycles() == [SCHEDULED]
        assert trees.bound() == {"a-0", "a-1", "b-0", "b-1"}
        assert not trees.cluster.pending_groups
        assert not trees.cluster.pending_members

    def test_the_whole_tree_in_one_call_is_one_cycle(self) -> None:
        trees = TreeCluster(node("n"))

        trees.apply(*self.OBJECTS)

        assert trees.cycles() == [SCHEDULED]

    def test_groups_and_pods_below_a_missing_ancestor_name_it(self) -> None:
        trees = TreeCluster(node("n"))
        middle = composite("middle", parent="top")
        low = leaf("low", 1, parent=middle)

        trees.apply(middle, low, *pods(low, 1))

        tree: tuple[ClusterObject, ...] = (middle, low, *pods(low, 1))
        for item in tree:
            assert trees.says(item) == (
                "False",
                "Unschedulable",
                "waiting for CompositePodGroup default/top",
            )

    def test_each_group_of_a_gated_tree_says_what_it_is_short_of(self) -> None:
        trees = TreeCluster(node("n"))

        trees.apply(BOTH, A, B, *pods(A, 2), *pods(B, 1))

        assert trees.state_of(BOTH) is UnitState.GATED
        short = "1 of 2 child groups are ready; PodGroup default/b: 1 of 2 members"
        assert trees.says(BOTH)[1:] == ("Unschedulable", short)
        assert trees.says(A)[1:] == ("Unschedulable", f"CompositePodGroup default/root is not ready: {short}")
        assert trees.says(B)[1:] == ("Unschedulable", "1 of 2 members")

    def test_a_group_that_joins_a_gated_tree_says_why_it_waits(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(BOTH, A, *pods(A, 2))

        trees.apply(B)

        assert trees.says(B)[1:] == ("Unschedulable", "0 of 2 members")


class TestGrowth:
    def test_pods_and_groups_join_what_is_scheduled(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, *pods(A, 2))
        trees.cycles()

        trees.apply(*pods(A, 1, first=2))
        assert trees.cycles() == [SCHEDULED]
        trees.apply(B, *pods(B, 2))
        assert trees.cycles() == [SCHEDULED]

        assert trees.bound() == {"a-0", "a-1", "a-2", "b-0", "b-1"}
        assert trees.says(B)[0] == "True"

    def test_a_new_gang_waits_for_its_members_and_the_cluster_does_not_wake_it(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, *pods(A, 2))
        trees.cycles()
        trees.apply(B, *pods(B, 1))
        trees.cycles()

        trees.apply(node("n-2"))

        assert trees.cycles() == []
        assert trees.says(B)[1:] == ("Unschedulable", "1 of 2 members")
        assert trees.says(pods(B, 1)[0])[1:] == ("Unschedulable", "1 of 2 members")

    def test_a_child_that_goes_takes_nothing_with_it(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(BOTH, A, B, *pods(A, 2), *pods(B, 2))
        trees.cycles()

        trees.delete(*pods(B, 2), B)
        trees.apply(*pods(A, 1, first=2))

        assert trees.cycles() == []
        assert trees.state_of(BOTH) is UnitState.GATED
        assert trees.bound() == {"a-0", "a-1"}

    @pytest.mark.parametrize("lowered", [BOTH, A], ids=["min_group_count", "min_count"])
    def test_a_lower_minimum_releases_a_gated_tree(self, lowered: AnyGroup) -> None:
        trees = TreeCluster(node("n"))
        few = pods(A, 2 if lowered is BOTH else 1)
        trees.apply(BOTH, A, B, *few, *pods(B, 0 if lowered is BOTH else 2))
        assert trees.cycles() == []

        trees.apply(with_minimum(lowered, 1))

        assert trees.cycles() == [SCHEDULED]
        assert {pod.name for pod in few} <= trees.bound()

    def test_a_higher_minimum_holds_what_is_new_and_leaves_what_runs(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, *pods(A, 2))
        trees.cycles()

        trees.apply(with_minimum(A, 4), *pods(A, 1, first=2))

        assert trees.cycles() == []
        assert trees.bound() == {"a-0", "a-1"}
        trees.apply(*pods(A, 1, first=3))
        assert trees.cycles() == [SCHEDULED]


class TestDeletion:
    def test_a_pod_that_joins_a_group_on_its_way_out_is_told_so(self) -> None:
        trees = TreeCluster(node("n"))
        alone = leaf("alone", 1, workload="")
        trees.apply(alone, *pods(alone, 1))
        trees.cycles()
        trees.delete(alone)

        trees.apply(*pods(alone, 1, first=1))

        assert trees.cycles() == []
        leaving = "PodGroup default/alone is being deleted"
        assert trees.says(pods(alone, 1, first=1)[0]) == ("False", "Unschedulable", leaving)
        assert trees.state_of(alone) is UnitState.GATED

    def test_a_parent_on_its_way_out_holds_all_below_and_all_name_it(self) -> None:
        trees = TreeCluster(node("n", cpu=1))
        trees.apply(BOTH, A, B, *pods(A, 2), *pods(B, 2))
        trees.cycles()

        trees.delete(BOTH)
        trees.apply(node("n-2"))

        assert trees.cycles() == []
        leaving = "CompositePodGroup default/root is being deleted"
        tree: tuple[ClusterObject, ...] = (BOTH, A, B, *pods(A, 2), *pods(B, 2))
        for item in tree:
            assert trees.says(item) == ("False", "Unschedulable", leaving), item.name

    def test_a_child_on_its_way_out_is_left_out_and_its_siblings_are_not(self) -> None:
        trees = TreeCluster(node("n", cpu=2))
        trees.apply(ROOT, A, B, *pods(A, 2), *pods(B, 2))
        trees.cycles()
        assert trees.bound() == {"a-0", "a-1"}

        trees.delete(B)
        trees.apply(node("n-2"), *pods(A, 1, first=2))

        assert trees.cycles() == [SCHEDULED, UNSCHEDULABLE]
        assert trees.bound() == {"a-0", "a-1", "a-2"}
        leaving = "PodGroup default/b is being deleted"
        assert trees.says(B)[1:] == ("Unschedulable", leaving)
        assert trees.says(pods(B, 1)[0])[1:] == ("Unschedulable", leaving)

    def test_force_sends_the_subtree_back_to_wait_for_its_root(self) -> None:
        trees = TreeCluster()
        trees.apply(ROOT, A, *pods(A, 2))
        trees.cycles()

        trees.delete(ROOT, force=True)

        assert trees.state_of(ROOT) is None
        waiting = ("False", "Unschedulable", "waiting for CompositePodGroup default/root")
        assert trees.says(A) == trees.says(pods(A, 1)[0]) == waiting


class TestDomains:
    def test_members_in_two_domains_stop_their_group_and_are_named(self) -> None:
        one, two = node("n-1", labels={"rack": "r1"}), node("n-2", labels={"rack": "r2"})
        trees = TreeCluster(one, two)
        split = leaf("split", 2, same="rack", parent=ROOT)
        trees.apply(ROOT, split, A, *pods(split, 1, on="n-1"), *pods(split, 1, first=1, on="n-2"))

        trees.apply(*pods(split, 1, first=2), *pods(A, 2))
        trees.cycles()

        assert trees.bound() == {"split-0", "split-1", "a-0", "a-1"}
        apart = "bound members do not share one domain of rack: n-1 (rack=r1), n-2 (rack=r2)"
        assert apart in trees.says(split)[2]
        assert apart in trees.says(pods(split, 1, first=2)[0])[2]

    def test_a_node_relabelled_while_in_use_stops_what_is_new_of_its_group(self) -> None:
        labels = {"rack": "r1"}
        trees = TreeCluster(node("n-1", cpu=1, labels=labels), node("n-2", cpu=1, labels=labels))
        alone = leaf("alone", 2, same="rack", workload="")
        trees.apply(alone, *pods(alone, 2))
        trees.cycles()

        trees.apply(replace(node("n-2", cpu=4), labels={"rack": "r9"}))
        trees.apply(*pods(alone, 1, first=2))
        trees.cycles()

        assert trees.bound() == {"alone-0", "alone-1"}
        assert "n-1 (rack=r1), n-2 (rack=r9)" in trees.says(pods(alone, 1, first=2)[0])[2]


class TestConditions:
    def test_what_was_taken_back_is_not_scheduled_and_names_the_group_that_failed(self) -> None:
        trees = TreeCluster(node("n", cpu=3))

        trees.apply(BOTH, A, B, *pods(A, 2), *pods(B, 2))

        assert trees.cycles() == [UNSCHEDULABLE]
        failed = (
            "1 of 2 required groups fit (S=1 R=0 U=1 UU=0); no placement exists; PodGroup default/b: 1 of 2"
        )
        assert trees.says(BOTH)[2].startswith(failed)
        assert trees.says(A)[:2] == ("False", "Unschedulable")
        assert trees.says(A)[2].startswith(f"CompositePodGroup default/root: {failed}")
        assert trees.says(B)[2].startswith("1 of 2 required pods fit (S=1 R=0 U=1 UU=0)")

    def test_a_group_that_was_not_tried_names_the_one_that_failed_before_it(self) -> None:
        trees = TreeCluster(node("n", cpu=2))
        big = leaf("big", 3, parent=BOTH)
        trees.apply(BOTH, big, B, *pods(big, 3), *pods(B, 2))

        trees.cycles()

        status, reason, message = trees.says(B)
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith(
            "CompositePodGroup default/root: 0 of 2 required groups fit (S=0 R=1 U=1 UU=0)"
        )
        assert "PodGroup default/big: 2 of 3 required pods fit" in message
        assert trees.says(pods(B, 1)[0])[2] == message

    def test_three_levels_each_name_the_nearest_group_that_failed(self) -> None:
        trees = TreeCluster(node("n", cpu=3))
        middle = composite("middle", 2, parent=ROOT)
        one, two = leaf("one", 2, parent=middle), leaf("two", 2, parent=middle)
        trees.apply(ROOT, A, middle, one, two, *pods(A, 1), *pods(one, 2), *pods(two, 2))

        trees.cycles()

        assert trees.says(ROOT)[0] == "False"
        assert trees.says(one)[2].startswith("CompositePodGroup default/middle: 1 of 2 required groups fit")
        assert trees.says(A)[2] == "1 of 2 members"
        assert trees.says(two)[2].startswith("1 of 2 required pods fit")

    def test_a_group_left_out_of_a_scheduled_tree_says_why(self) -> None:
        trees = TreeCluster(node("n", cpu=3))
        trees.apply(ROOT, A, B, *pods(A, 2), *pods(B, 2))

        assert trees.cycles()[0] is SCHEDULED

        assert trees.says(ROOT)[0] == trees.says(A)[0] == "True"
        assert trees.says(B)[:2] == ("False", "Unschedulable")
        assert trees.says(B)[2].startswith("1 of 2 required pods fit")

    def test_the_queue_keeps_a_condition_that_says_the_same(self) -> None:
        trees = TreeCluster(node("n", cpu=1))
        trees.apply(BOTH, A, B, *pods(A, 2), *pods(B, 2))
        trees.cycles()
        before = trees.get(A)

        trees.cluster.queue.activate(BOTH.key)
        trees.cycles()

        assert trees.get(A) is before
