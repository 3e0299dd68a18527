"""Trees that must not be tried: what becomes of them, what they say, and when they are tried after all."""

import pytest

from muster.core.decision import DecisionCode
from muster.engine import unit_faults
from muster.engine.ports import UnitState
from muster.model.group import AnyGroup
from tests.engine.tree_cluster import (
    TreeCluster,
    composite,
    leaf,
    node,
    pods,
    template,
    workload,
)

ROOT = composite("root")
A = leaf("a", 2, parent=ROOT)
B = leaf("b", 2, parent=ROOT)
SCHEDULED, INVALID = DecisionCode.SCHEDULED, DecisionCode.INVALID


class TestLayoutFaults:
    def test_a_tree_at_fault_is_told_so_and_never_tried_while_others_go_on(self) -> None:
        trees = TreeCluster(node("n"))
        other = leaf("other", 2, workload="")
        odd = leaf("odd", 1, parent=ROOT, workload="another")

        trees.apply(ROOT, A, odd, *pods(A, 2), *pods(odd, 1), other, *pods(other, 2))

        assert sorted(trees.cycles(), key=str) == [INVALID, SCHEDULED]
        assert trees.bound() == {"other-0", "other-1"}
        for group in (ROOT, A, odd):
            status, reason, message = trees.says(group)
            assert (status, reason) == ("False", "Invalid")
            assert "PodGroup default/odd to 'another'" in message
        for pod in (*pods(A, 2), *pods(odd, 1)):
            assert trees.says(pod)[:2] == ("False", "SchedulerError")

    def test_a_unit_of_more_pods_than_are_allowed_waits_until_it_has_fewer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(unit_faults, "MOST_PODS_A_UNIT", 4)
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, B, *pods(A, 2), *pods(B, 3))

        assert trees.cycles() == [INVALID]
        assert trees.says(A) == ("False", "Invalid", "the unit has 5 pods, at most 4 are allowed")

        trees.delete(pods(B, 3)[-1])
        assert trees.cycles() == [SCHEDULED]

    def test_groups_that_are_scheduled_keep_their_condition_and_pods_their_node(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, *pods(A, 2))
        trees.cycles()
        odd = leaf("odd", 1, parent=ROOT, workload="another")

        trees.apply(odd, *pods(odd, 1), *pods(A, 1, first=2))
        trees.cycles()

        assert trees.says(ROOT)[0] == trees.says(A)[0] == "True"
        assert trees.says(odd)[:2] == ("False", "Invalid")
        assert trees.bound() == {"a-0", "a-1"}

    def test_the_unit_waits_until_its_groups_change_whatever_else_does(self) -> None:
        trees = TreeCluster(node("n"))
        odd = leaf("odd", 1, parent=ROOT, workload="another")
        trees.apply(ROOT, A, odd, *pods(A, 2))
        trees.cycles()

        trees.apply(node("n-2"), *pods(A, 1, first=2))

        assert trees.cycles() == []
        assert trees.state_of(ROOT) is UnitState.UNSCHEDULABLE
        assert trees.says(pods(A, 1, first=2)[0])[:2] == ("False", "SchedulerError")

    def test_it_is_tried_once_the_fault_is_gone(self) -> None:
        trees = TreeCluster(node("n"))
        odd = leaf("odd", 1, parent=ROOT, workload="another")
        trees.apply(ROOT, A, odd, *pods(A, 2))
        trees.cycles()

        trees.delete(odd)

        assert trees.cycles() == [SCHEDULED]
        assert trees.says(ROOT)[0] == trees.says(A)[0] == "True"

    def test_a_workload_that_comes_later_has_its_trees_checked_and_one_that_goes_frees_them(self) -> None:
        trees = TreeCluster(node("n"))
        late = workload("wl", composites=(template("t-root", leaves=(template("t-b"),)),))
        trees.apply(ROOT, A)

        trees.apply(late)
        trees.apply(*pods(A, 2))

        assert trees.says(A)[1:] == ("Invalid", "Workload wl has no template t-a for PodGroup default/a")
        assert trees.cycles() == [INVALID]
        trees.delete(late)
        assert trees.cycles() == [SCHEDULED]

    def test_a_gated_tree_at_fault_is_invalid_rather_than_short(self) -> None:
        trees = TreeCluster(node("n"))
        odd = leaf("odd", 1, parent=ROOT, workload="another")

        trees.apply(ROOT, A, odd, *pods(A, 1))

        assert trees.cycles() == [INVALID]
        assert trees.says(A)[1] == "Invalid"

    def test_a_fault_that_ends_before_pods_come_is_not_told_any_more(self) -> None:
        trees = TreeCluster(node("n"))
        odd = leaf("odd", 1, parent=ROOT, workload="another")
        trees.apply(ROOT, A, odd)
        assert trees.says(A)[1] == "Invalid"

        trees.delete(odd)

        assert trees.says(A)[1:] == ("Unschedulable", "0 of 2 members")
        assert trees.says(ROOT)[1] == "Unschedulable"

    def test_no_depth_breaks_the_engine(self) -> None:
        trees = TreeCluster(node("n"))
        groups: list[AnyGroup] = [ROOT]
        groups += [composite(f"c-{i}", parent=f"c-{i - 1}" if i else ROOT) for i in range(2_000)]
        low = leaf("low", 1, parent=groups[-1])

        trees.apply(*groups, low, *pods(low, 1))

        assert trees.cycles() == [INVALID]
        assert "depth of 2002" in trees.says(pods(low, 1)[0])[2]

    def test_a_restart_knows_the_faults_again(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(ROOT, A, leaf("odd", 1, parent=ROOT, workload="another"), *pods(A, 2))
        trees.cycles()

        again = trees.restarted()
        again.apply(*pods(A, 1, first=2))

        assert again.cycles() == []
        assert again.says(pods(A, 1, first=2)[0])[1] == "SchedulerError"


class TestPodFaults:
    def test_a_pod_of_another_priority_stops_its_tree_until_it_is_replaced(self) -> None:
        trees = TreeCluster(node("n"))
        [odd] = pods(B, 1, priority=7)
        trees.apply(ROOT, A, B, *pods(A, 2), odd, *pods(B, 1, first=1))

        assert trees.cycles() == [DecisionCode.SCHEDULER_ERROR]
        status, reason, message = trees.says(B)
        assert (status, reason) == ("False", "SchedulerError")
        assert message == "priority differs: CompositePodGroup default/root has 0, Pod default/b-0 has 7"

        trees.delete(odd)
        trees.apply(*pods(B, 1))
        assert trees.cycles() == [SCHEDULED]
        assert trees.bound() == {"a-0", "a-1", "b-0", "b-1"}


class TestCycles:
    ONE, TWO = composite("one", parent="two"), composite("two", parent="one")
    LOW = leaf("low", 1, parent="one")

    def test_groups_are_invalid_and_pods_wait_and_both_name_the_cycle(self) -> None:
        trees = TreeCluster(node("n"))
        other = leaf("other", 1, workload="")

        trees.apply(self.ONE, self.TWO, self.LOW, *pods(self.LOW, 1), other, *pods(other, 1))
        trees.cycles()

        ring = (
            "its parents form a cycle: "
            "CompositePodGroup default/one > CompositePodGroup default/two > CompositePodGroup default/one"
        )
        for group in (self.ONE, self.TWO, self.LOW):
            assert trees.says(group) == ("False", "Invalid", ring)
        assert trees.says(pods(self.LOW, 1)[0]) == ("False", "Unschedulable", ring)
        assert trees.bound() == {"other-0"}
        assert set(trees.cluster.pending_groups) == {self.ONE.key, self.TWO.key, self.LOW.key}
        assert set(trees.cluster.pending_members) == {pods(self.LOW, 1)[0].key}

    def test_a_cycle_ends_with_one_of_its_groups(self) -> None:
        trees = TreeCluster(node("n"))
        trees.apply(self.ONE, self.TWO, self.LOW, *pods(self.LOW, 1))

        trees.delete(self.TWO)
        waiting = "waiting for CompositePodGroup default/two"
        assert trees.says(self.LOW) == ("False", "Unschedulable", waiting)
        trees.apply(composite("two"))

        assert trees.cycles() == [SCHEDULED]
        assert trees.bound() == {"low-0"}

    def test_a_group_may_be_its_own_parent_and_waits_for_ever(self) -> None:
        trees = TreeCluster(node("n"))
        own = composite("own", parent="own")

        trees.apply(own)

        assert trees.says(own)[1] == "Invalid"
        assert trees.cycles() == []
