"""Results in words: counts that agree with what is there, reasons by how often they are met."""

import pytest

from muster.core.messages import number_of
from tests.dsl import Cluster, composite, gang, node, pod, pod_group


@pytest.mark.parametrize(("count", "words"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_a_count_is_in_the_plural_unless_it_is_one(count: int, words: str) -> None:
    assert number_of(count, "pod") == words


def test_a_gang_that_runs_in_two_domains_is_not_said_to_have_no_placement() -> None:
    cluster = Cluster(node("a", labels={"rack": "r1"}), node("b", labels={"rack": "r2"}))

    result = cluster.schedule(pod_group("g", gang(2), pods=1, bound=("a", "b"), same="rack"))

    assert result.decision.message == (
        "2 of 2 required pods run, no further pod can be placed; "
        "bound members do not share one domain of rack: a (rack=r1), b (rack=r2)"
    )


def test_a_tree_that_runs_in_two_domains_says_that_its_groups_run() -> None:
    cluster = Cluster(node("a", labels={"rack": "r1"}), node("b", labels={"rack": "r2"}))
    running = pod_group("one", gang(1), bound=("a",)), pod_group("two", gang(1), pods=1, bound=("b",))

    result = cluster.schedule(composite("root", gang(2), *running, same="rack"))

    assert result.decision.message.startswith("2 of 2 required groups run, no further pod can be placed; ")


def test_a_child_that_is_short_of_members_is_told_with_the_members_that_it_has() -> None:
    cluster = Cluster(node("a", "1"))
    root = composite(
        "root", gang(2), pod_group("whole", gang(2), pods=2), pod_group("short", gang(2), pods=1)
    )

    message = cluster.schedule(root).decision.message

    assert "PodGroup default/short: 1 of 2 required pods ready (S=0 R=1 U=0 UU=0)" in message


def test_the_reason_that_most_nodes_have_comes_first_in_the_record_and_in_the_message() -> None:
    tight = [node(f"t{number}", "1") for number in range(3)]
    cluster = Cluster(*tight, node("closed-1", unschedulable=True), node("closed-2", unschedulable=True))

    result = cluster.schedule(pod("p", cpu="2"))

    assert list(result.reasons()) == ["INSUFFICIENT_CPU", "NODE_UNSCHEDULABLE"]
    assert result.decision.message == (
        "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable."
    )
