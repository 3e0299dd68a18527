"""The checker sees each rule that a placement breaks, and nothing in one that is right."""

from dataclasses import replace

import pytest

from tests.instances.checker import violations
from tests.instances.instance import GroupPlan, Instance, NodePlan, PodPlan, Taint, Toleration

NODES = (
    NodePlan("a1", {"cpu": 4_000}, {"block": "a", "rack": "1"}),
    NodePlan("a2", {"cpu": 4_000}, {"block": "a", "rack": "2"}),
    NodePlan("b1", {"cpu": 4_000, "gpu": 1}, {"block": "b", "rack": "1"}),
)
GROUPS = (
    GroupPlan("tree", is_leaf=False, parent=None, minimum=2, topology="block", priority=10),
    GroupPlan("left", is_leaf=True, parent="tree", minimum=2, topology="rack", priority=10),
    GroupPlan("right", is_leaf=True, parent="tree", minimum=1, priority=10),
)
PODS = (
    PodPlan("left-0", {"cpu": 2_000}, "left", priority=10),
    PodPlan("left-1", {"cpu": 2_000}, "left", priority=10),
    PodPlan("right-0", {"cpu": 1_000}, "right", priority=10),
)
RIGHT = {"left-0": "a1", "left-1": "a1", "right-0": "a2"}


def instance(*more: PodPlan | NodePlan | GroupPlan, may_evict: bool = False) -> Instance:
    """A tree of two leaves in three racks; what is given is added, or takes the place of its namesake."""
    return Instance(
        target="tree",
        groups={each.name: each for each in (*GROUPS, *more) if isinstance(each, GroupPlan)},
        nodes={each.name: each for each in (*NODES, *more) if isinstance(each, NodePlan)},
        pods={each.name: each for each in (*PODS, *more) if isinstance(each, PodPlan)},
        may_evict=may_evict,
    )


def test_a_placement_that_keeps_every_rule_has_no_violation() -> None:
    assert violations(instance(), RIGHT) == []


def test_nothing_placed_breaks_nothing() -> None:
    assert violations(instance(), {}) == []


@pytest.mark.parametrize(
    ("placements", "seen"),
    [
        pytest.param(RIGHT | {"right-0": "a1"}, ["a1 gives 5000 of 4000 cpu"], id="over-commit"),
        pytest.param(
            RIGHT | {"right-0": "b1"},
            ["tree is in several domains of block: ['a', 'b']"],
            id="a child outside the root's domain",
        ),
        pytest.param(
            RIGHT | {"left-1": "a2"},
            ["left is in several domains of rack: ['1', '2']"],
            id="a leaf in two domains",
        ),
        pytest.param({"right-0": "a2"}, ["tree needs 2 and has 1"], id="a root below its minimum"),
        pytest.param(
            {"left-0": "a1", "right-0": "a2"},
            ["left needs 2 and has 1", "tree needs 2 and has 1"],
            id="half a gang",
        ),
        pytest.param(
            RIGHT | {"right-9": "a2"}, ["right-9 is not among the pods to place, or a2 no node"], id="no pod"
        ),
        pytest.param(
            RIGHT | {"right-0": "z"}, ["right-0 is not among the pods to place, or z no node"], id="no node"
        ),
    ],
)
def test_a_broken_rule_is_named(placements: dict[str, str], seen: list[str]) -> None:
    assert violations(instance(), placements) == seen


def test_running_pods_use_room_and_slots() -> None:
    full = replace(NODES[1], allocatable={"cpu": 4_000, "pods": 2})
    running = [PodPlan(f"old-{i}", {"cpu": 1_600}, bound_to="a2") for i in range(2)]

    assert violations(instance(full, *running), RIGHT) == [
        "a2 holds 3 pods in 2 slots",
        "a2 gives 4200 of 4000 cpu",
    ]


def test_a_resource_that_a_node_lacks_is_over_committed_by_any_amount_of_it() -> None:
    wants_gpu = replace(PODS[2], requests={"gpu": 1})

    assert violations(instance(wants_gpu), RIGHT) == ["a2 gives 1 of 0 gpu"]


def test_a_node_that_was_full_before_is_the_fault_of_no_new_pod_that_asks_for_nothing() -> None:
    shrunk = PodPlan("old", {"cpu": 9_000}, bound_to="a2")
    asks_for_nothing = replace(PODS[2], requests={"cpu": 0})

    assert violations(instance(shrunk, asks_for_nothing), RIGHT) == []


def test_selectors_and_taints_keep_pods_from_nodes() -> None:
    tainted = replace(
        NODES[1], taints=(Taint("owner", "x", "NoSchedule"), Taint("soft", "", "PreferNoSchedule"))
    )
    choosy = replace(PODS[2], node_selector={"disk": "ssd"})

    assert violations(instance(tainted, choosy), RIGHT) == [
        "right-0 selects other nodes than a2",
        "right-0 does not tolerate owner of a2",
    ]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("owner", "Equal", "x", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("owner", "Equal", "y", ""), False, id="another value"),
        pytest.param(Toleration("owner", "Exists", "", ""), True, id="exists"),
        pytest.param(Toleration("", "Exists", "", ""), True, id="everything"),
        pytest.param(Toleration("owner", "Exists", "", "NoExecute"), False, id="another effect"),
    ],
)
def test_a_toleration_is_read_as_kubernetes_does(toleration: Toleration, *, expected: bool) -> None:
    assert toleration.tolerates(Taint("owner", "x", "NoSchedule")) is expected


def test_members_that_run_already_count_for_the_minimum_and_hold_the_domain() -> None:
    runs = replace(PODS[0], requests={"cpu": 1_000}, bound_to="b1")

    assert violations(instance(runs), {"left-1": "b1", "right-0": "b1"}) == []
    assert violations(instance(runs), {"left-1": "a1", "right-0": "a1"}) == [
        "tree is in several domains of block: ['a', 'b']"
    ]


VICTIM = PodPlan("victim", {"cpu": 4_000}, "low-pods", bound_to="a2", priority=1)
MATE = replace(VICTIM, name="mate", requests={"cpu": 100}, bound_to="b1")
LOW = GroupPlan("low", is_leaf=False, parent=None, minimum=1, evicted_whole=True, priority=1)
LOW_PODS = GroupPlan("low-pods", is_leaf=True, parent="low", minimum=1, evicted_whole=True, priority=1)


def test_a_whole_unit_of_lower_priority_may_go_and_gives_back_its_room() -> None:
    crowded = instance(VICTIM, MATE, LOW, LOW_PODS, may_evict=True)

    assert violations(crowded, RIGHT, ["mate", "victim"]) == []


@pytest.mark.parametrize(
    ("low", "evicted", "seen"),
    [
        pytest.param(LOW, ["victim"], "victim is evicted without mate of its unit", id="in part"),
        pytest.param(replace(LOW, priority=10), ["victim", "mate"], "at priority 10 for 10", id="not lower"),
        pytest.param(
            LOW, ["left-0", "victim", "mate"], "left-0 is evicted and does not run", id="not running"
        ),
    ],
)
def test_an_eviction_that_is_not_allowed_is_named(low: GroupPlan, evicted: list[str], seen: str) -> None:
    crowded = instance(VICTIM, MATE, low, LOW_PODS, may_evict=True)

    assert any(seen in fault for fault in violations(crowded, RIGHT, evicted))


def test_a_unit_that_may_not_evict_must_not() -> None:
    alone = PodPlan("alone", {"cpu": 4_000}, bound_to="a2", priority=1)

    assert violations(instance(alone), RIGHT, ["alone"]) == ["the unit may not evict"]
