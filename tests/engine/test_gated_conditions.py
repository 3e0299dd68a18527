"""What groups and pods of a unit say that is not tried yet: who is short, of what, and who is no member at all."""

from dataclasses import replace

import pytest

from muster.engine.hierarchy import why_gated
from muster.engine.ports import UnitState
from muster.model.pod import Pod
from tests.engine.tree_cluster import TreeCluster, composite, leaf, node, pods

CREW = leaf("crew", 3)
ROOT = composite("root", 2)
A = leaf("a", 2, parent=ROOT)
B = leaf("b", 2, parent=ROOT)
NOT_READY = ("False", "Unschedulable", "PodGroup default/crew is not ready")


def gated(pod: Pod) -> Pod:
    return replace(pod, gates=("example.com/quota",))


def of_scheduler(name: str, pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduler_name=name))


@pytest.fixture
def trees() -> TreeCluster:
    return TreeCluster(node("n"))


def test_pods_of_a_gang_that_is_short_name_it(trees: TreeCluster) -> None:
    trees.apply(CREW, *pods(CREW, 1))

    trees.apply(*pods(CREW, 1, first=1))

    assert [trees.says(pod) for pod in pods(CREW, 2)] == [NOT_READY] * 2


def test_pods_of_a_whole_group_name_the_root_that_is_short(trees: TreeCluster) -> None:
    trees.apply(ROOT, A, B, *pods(A, 2), *pods(B, 1))

    assert trees.says(pods(A, 1)[0])[2] == "CompositePodGroup default/root is not ready"
    assert trees.says(pods(B, 1)[0])[2] == "PodGroup default/b is not ready"


def test_pods_that_were_tried_say_so_no_more_once_their_gang_is_short(trees: TreeCluster) -> None:
    members = [replace(pod, spec=replace(pod.spec, node_selector={"a": "b"})) for pod in pods(CREW, 3)]
    trees.apply(CREW, *members)
    trees.cycles()
    assert "nodes are available" in trees.says(members[0])[2]

    trees.delete(members[2])

    assert trees.says(members[0]) == NOT_READY


def test_a_pod_whose_gate_went_is_gated_no_more_though_its_gang_is_short(trees: TreeCluster) -> None:
    (pod,) = pods(CREW, 1)
    trees.apply(CREW, gated(pod))
    assert trees.says(pod) == ("False", "SchedulingGated", "scheduling gates: example.com/quota")

    trees.apply(pod)

    assert trees.says(pod) == NOT_READY


def test_pods_beside_a_gated_one_name_their_group(trees: TreeCluster) -> None:
    first, *others = pods(CREW, 3)

    trees.apply(CREW, gated(first), *others)

    assert trees.says(others[0]) == NOT_READY
    assert trees.says(CREW)[2] == "held by the scheduling gates of 1 pod"


def test_a_gang_with_gates_that_is_short_too_says_both(trees: TreeCluster) -> None:
    trees.apply(CREW, gated(pods(CREW, 1)[0]))

    assert trees.says(CREW)[2] == "1 of 3 members, held by the scheduling gates of 1 pod"


def test_pods_of_a_marked_group_name_the_mark(trees: TreeCluster) -> None:
    trees.apply(CREW, *pods(CREW, 2))

    trees.delete(CREW)

    assert trees.says(pods(CREW, 1)[0])[2] == "PodGroup default/crew is being deleted"


def test_a_gang_tells_of_pods_that_name_it_and_another_scheduler(trees: TreeCluster) -> None:
    ours, other = pods(CREW, 2)
    trees.apply(CREW, ours)

    trees.apply(of_scheduler("patient", other))

    told = "1 of 3 members, and 1 pod of a scheduler that is not served here: 'patient'"
    assert trees.state_of(CREW) is UnitState.GATED
    assert trees.says(CREW)[2] == told
    assert why_gated(trees.cluster.state, CREW.key) == told


def test_a_gang_of_one_is_told_in_the_singular(trees: TreeCluster) -> None:
    root = composite("root", 1)
    single = leaf("single", 1, parent=root)
    (pod,) = pods(single, 1)

    trees.apply(root, single, of_scheduler("patient", pod), *pods(leaf("late", 1), 1))
    trees.apply(gated(pods(single, 1, first=1)[0]))

    assert trees.says(root)[2].startswith("0 of 1 child group is ready; PodGroup default/single: ")
