"""Groups over domains of several levels, as users meet them: who is tried, who wins and why, what a trace shows."""

from __future__ import annotations

import pytest

from muster.core import decide as door
from muster.core import lockstep
from muster.core.candidate_outcomes import Candidates, Outcomes
from muster.core.decision import Status
from muster.core.deltas import NodePut
from muster.core.lockstep import Lockstep, NoRehearsal
from muster.core.tree import GroupTree
from muster.model.node import Node
from tests.dsl import Cluster, basic, block, composite, gang, node, pod, pod_group, rack

SUCCESS, UNSCHEDULABLE = Status.SUCCESS, Status.UNSCHEDULABLE
UNRESOLVABLE = Status.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few domains are tried in lock-step too."""
    monkeypatch.setattr(lockstep, "_FEW_DOMAINS", 0)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the groups for which lock-step left the candidates to simulation."""
    names: set[str] = set()

    class Watched(Lockstep):
        def outcomes(self, group: GroupTree, candidates: Candidates) -> Outcomes | None:
            found = super().outcomes(group, candidates)
            if found is None:
                names.add(group.key.name)
            return found

    monkeypatch.setattr(door, "Lockstep", Watched)
    return names


def test_equal_siblings_take_the_fullest_rack_that_is_left(simulated: set[str]) -> None:
    cluster = Cluster(block("A", rack("A1", free=6), rack("A2", free=4), rack("A3", free=5)))
    groups = [pod_group(f"pg-{i}", gang(4), pods=4, same="rack") for i in range(3)]

    result = cluster.schedule(composite("root", gang(3), *groups, same="block"))

    assert result.placed == {"root": "A", "pg-0": "A2", "pg-1": "A3", "pg-2": "A1"}
    assert [(result.group(f"pg-{i}").tried, result.group(f"pg-{i}").pruned) for i in range(3)] == [
        (3, 0),
        (2, 1),
        (1, 2),
    ]
    assert not simulated


def test_a_leader_and_its_workers_share_a_rack(simulated: set[str]) -> None:
    # Two cpu of A1 are on one node, those of A2 on two: the leader needs two at once.
    split = [node(f"A2-{i}", "1", labels={"rack": "A2"}) for i in range(4)]
    cluster = Cluster(block("A", rack("A1", free=4), split))
    members = (pod("leader", cpu="2"), pod("worker-0"), pod("worker-1"))

    result = cluster.schedule(pod_group("lws", gang(3), pods=members, same="rack"))

    assert result.placed == {"lws": "A1"}
    assert not simulated


def test_a_driver_that_may_run_anywhere_in_the_block_leaves_its_siblings_their_racks(
    simulated: set[str],
) -> None:
    cluster = Cluster(
        block("A", rack("A1", free=4), rack("A2", free=4)),
        block("B", rack("B1", free=4), rack("B2", free=5)),
    )
    groups = [pod_group(f"pg-{i}", gang(4), pods=4, same="rack") for i in range(2)]
    root = composite("root", gang(3), pod_group("driver", gang(1), pods=1), *groups, same="block")

    result = cluster.schedule(root)

    assert result.tried("root") == {"A": UNRESOLVABLE, "B": SUCCESS}
    assert result.placed == {"root": "B", "pg-0": "B1", "pg-1": "B2"}
    assert not simulated


def test_pods_with_host_ports_are_simulated(simulated: set[str]) -> None:
    cluster = Cluster(rack("r1", free=4), rack("r2", free=4))

    cluster.schedule(pod_group("web", gang(2), pods=(pod("a", host_port=80), pod("b")), same="rack"))

    assert simulated == {"web"}


def test_the_result_says_why_the_best_domain_won() -> None:
    cluster = Cluster(rack("r1", free=8), rack("r2", free=4), rack("r3", free=5), rack("r4", free=3))

    result = cluster.schedule(pod_group("g", gang(4), pods=4, same="rack"))

    (reason,) = result.group("g").reasons
    assert reason.message == "rack=r2 is best: 4 pods, 100.0% full; then r3: 4 pods, 80.0% full"
    assert reason.code == "BEST_DOMAIN"
    assert {key: reason.details[key] for key in ("success", "unschedulable_and_unresolvable")} == {
        "success": "3",
        "unschedulable_and_unresolvable": "1",
    }


def test_an_empty_value_that_comes_second_is_shown_as_one() -> None:
    cluster = Cluster(rack("r1", free=4), rack("", free=5))

    result = cluster.schedule(pod_group("g", gang(4), pods=4, same="rack"))

    assert result.group("g").reasons[0].message.endswith('; then "": 4 pods, 80.0% full')


def test_pods_that_a_failed_group_gave_back_do_not_make_its_domain_better() -> None:
    # In A the group that is too big gets six pods before it gives up, in B none.
    cluster = Cluster(block("A", rack("A1", free=6)), block("B", rack("B1", free=3), rack("B2", free=2)))
    too_big = pod_group("too-big", gang(7), pods=7, same="rack")
    anywhere = pod_group("anywhere", gang(7), pods=7)
    small = pod_group("small", gang(2), pods=3)

    result = cluster.schedule(composite("root", basic(), too_big, anywhere, small, same="block"))

    assert result.placed == {"root": "B"}
    assert result.group("small").satisfied == 3


def test_four_levels_with_one_text_on_all_and_prefixes_of_each_other() -> None:
    def machine(name: str, *values: str) -> list[Node]:
        return [node(name, "2", labels=dict(zip(("zone", "block", "rack", "host"), values, strict=True)))]

    cluster = Cluster(
        machine("n1", "a", "a", "a", "a"),
        machine("n2", "a", "a", "aa", "a"),
        machine("n3", "a", "aa", "aa", "a"),
        machine("n4", "aa", "aa", "aa", ""),
    )
    leaves = [pod_group(f"leaf-{i}", gang(2), pods=2, same="host") for i in range(2)]
    racks = [composite(f"rack-{i}", gang(1), leaf, same="rack") for i, leaf in enumerate(leaves)]
    blocks = composite("in-block", gang(2), *racks, same="block")

    result = cluster.schedule(composite("root", gang(1), blocks, same="zone"))

    assert result.placed == {
        "root": "a",
        "in-block": "a",
        "rack-0": "a",
        "leaf-0": "a",
        "rack-1": "aa",
        "leaf-1": "a",
    }
    assert set(result.on.values()) == {"n1", "n2"}


def test_running_pods_pin_the_domain_of_every_level_above_them() -> None:
    cluster = Cluster(
        block("A", rack("A1", free=8), rack("A2", free=9)), block("B", rack("B1", free=3), rack("B2", free=9))
    )
    cluster.runs(pod(), "node-B1")
    grown = pod_group("pg-1", gang(2), pods=1, same="rack", bound=("node-B1",))
    root = composite("root", gang(2), grown, pod_group("pg-2", gang(2), pods=2, same="rack"), same="block")

    result = cluster.schedule(root)

    assert result.placed == {"root": "B", "pg-1": "B1", "pg-2": "B2"}
    assert [result.group(name).tried for name in ("root", "pg-1", "pg-2")] == [1, 1, 1]


def test_a_pinned_domain_that_is_full_makes_new_pods_wait_there() -> None:
    cluster = Cluster(rack("r1", free=2), rack("r2", free=9))
    cluster.runs(pod(), "node-r1", "node-r1")

    result = cluster.schedule(pod_group("g", gang(3), pods=1, same="rack", bound=("node-r1", "node-r1")))

    assert result.group("g").status is UNSCHEDULABLE
    assert (result.group("g").tried, result.group("g").pruned) == (0, 1)


def test_a_relabelled_node_is_in_its_new_domain() -> None:
    cluster = Cluster(rack("r1", free=4), rack("r2", free=4))
    plan = pod_group("g", gang(8), pods=8, same="rack")
    assert cluster.schedule(plan).code != "SCHEDULED"
    cluster.snapshot.apply(NodePut(node("node-r2", "4", labels={"rack": "r1"})))

    result = cluster.schedule(plan)

    assert result.placed == {"g": "r1"}


def test_a_trace_shows_the_groups_on_the_path_taken_and_all_candidates() -> None:
    cluster = Cluster(block("A", rack("A1", free=2)), block("B", rack("B1", free=3), rack("B2", free=4)))
    root = composite("root", gang(1), pod_group("pg", gang(3), pods=3, same="rack"), same="block")

    result = cluster.schedule(root)

    names = [event[3] for event in result.events if event[0] == "enter" and event[2] == "group"]
    assert names == ["CompositePodGroup default/root", "PodGroup default/pg"]
    assert result.tried("root") == {"A": Status.UNSCHEDULABLE_AND_UNRESOLVABLE, "B": SUCCESS}
    assert result.tried("pg") == {"B1": SUCCESS, "B2": SUCCESS}


def test_a_trace_of_a_failed_group_shows_the_domain_that_came_closest() -> None:
    # B has room for all eight pods, and a rack for each of the groups, but no rack for both groups of two and three.
    cluster = Cluster(block("A", rack("A1", free=3)), block("B", rack("B1", free=4), rack("B2", free=4)))
    groups = [
        pod_group(f"pg-{i}", gang(number), pods=number, same="rack") for i, number in enumerate((3, 2, 3))
    ]

    result = cluster.schedule(composite("root", gang(3), *groups, same="block"))

    assert result.tried("root") == {"A": UNRESOLVABLE, "B": UNSCHEDULABLE}
    assert result.group("root").reasons[0].details["value"] == "B"
    assert result.tried("pg-2") == {"B1": UNSCHEDULABLE, "B2": UNSCHEDULABLE}


def test_amounts_too_large_to_be_added_up_are_still_placed_right(simulated: set[str]) -> None:
    huge = str(2**62)
    cluster = Cluster(
        node("n1", "4", memory=huge, labels={"rack": "r1"}),
        node("n2", "4", memory=huge, labels={"rack": "r1"}),
    )

    result = cluster.schedule(
        pod_group("g", gang(2), pods=(pod("a", memory=huge), pod("b", memory=huge)), same="rack")
    )

    assert sorted(result.nodes) == ["n1", "n2"]
    assert simulated == {"g"}


def test_without_lockstep_the_same_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(block("A", rack("A1", free=6), rack("A2", free=4)), block("B", rack("B1", free=9)))
    groups = [pod_group(f"pg-{i}", gang(3), pods=4, same="rack") for i in range(2)]
    root = composite("root", gang(2), *groups, same="block")
    in_lockstep = cluster.schedule(root)
    monkeypatch.setattr(door, "Lockstep", lambda *_: NoRehearsal())

    result = cluster.schedule(root)

    assert result.decision.result == in_lockstep.decision.result
    assert result.events == in_lockstep.events


@pytest.mark.parametrize("rehearsed", [True, False], ids=["in lock-step", "one by one"])
def test_a_child_that_holds_counts_though_nothing_of_it_may_be_placed(
    rehearsed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not rehearsed:
        monkeypatch.setattr(door, "Lockstep", lambda *_: NoRehearsal())
    cluster = Cluster(block("A", rack("A1", free=3)), block("B", rack("B1", free=3)))
    holding = pod_group("holding", gang(1), bound=("node-A1",), admissible=False)
    root = composite("root", gang(2), holding, pod_group("new", gang(2), pods=2), same="block")

    result = cluster.schedule(root)

    assert result.placed["root"] == "A"
    assert set(result.nodes) == {"node-A1"}
