"""The search over domains finds what trying each group once cannot, and says "impossible" only where it is proved."""

import pytest

from muster.core.decision import SearchEnd
from muster.core.search.packing import Verdict
from muster.model.meta import LabelSelector
from muster.model.pod import TopologySpreadConstraint
from tests.core.domain_placements import find
from tests.dsl import Cluster, block, composite, gang, node, pod, pod_group, rack
from tests.dsl.groups import GroupPlan

FOUND, IMPOSSIBLE, UNKNOWN = Verdict.FOUND, Verdict.IMPOSSIBLE, Verdict.UNKNOWN


def rack_group(name: str, minimum: int, *, cpu: str = "1", bound: tuple[str, ...] = ()) -> GroupPlan:
    return pod_group(name, gang(minimum), pods=minimum - len(bound), cpu=cpu, same="rack", bound=bound)


def two_groups(first: int, second: int) -> GroupPlan:
    return composite("root", gang(2), rack_group("pg-1", first), rack_group("pg-2", second), same="block")


def test_the_first_group_leaves_the_only_rack_that_holds_the_second() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=5)))

    found = find(cluster, two_groups(4, 5))

    assert found.verdict is FOUND
    assert found.domains == {"root": "A", "pg-1": "A1", "pg-2": "A2"}


def test_two_groups_for_one_rack_are_proved_impossible() -> None:
    cluster = Cluster(block("A", rack("A1", free=3), rack("A2", free=5)))

    assert find(cluster, two_groups(5, 5)).verdict is IMPOSSIBLE


def test_the_root_takes_the_block_whose_racks_hold_all_though_another_has_more_room() -> None:
    large = block("A", *(rack(f"A{i}", free=7) for i in range(3)))
    small = block("B", rack("B1", free=8), rack("B2", free=8))

    found = find(Cluster(large, small), two_groups(8, 8))

    assert found.verdict is FOUND
    assert found.domains["root"] == "B"


def test_a_child_is_left_out_where_its_parent_can_spare_it() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    root = composite(
        "root",
        gang(2),
        rack_group("huge", 9),
        rack_group("pg-1", 4),
        rack_group("pg-2", 3),
        same="block",
    )

    found = find(cluster, root)

    assert found.verdict is FOUND
    assert set(found.pods) == {"pg-1", "pg-2"}


def test_a_spare_child_that_would_take_the_last_rack_is_left_out() -> None:
    cluster = Cluster(block("A", rack("A1", free=6), rack("A2", free=2)))
    first = composite("first", gang(1), rack_group("six", 6), rack_group("two", 2))
    root = composite("root", gang(2), first, rack_group("other-six", 6), same="block")

    found = find(cluster, root)

    assert found.verdict is FOUND
    assert set(found.pods) == {"two", "other-six"}


def test_groups_with_a_label_of_their_own_find_domains_inside_their_parents() -> None:
    cluster = Cluster(
        block("A", rack("A1", free=3), rack("A2", free=3)),
        block("B", rack("B1", free=2), rack("B2", free=2)),
    )
    pairs = [
        composite(f"pair-{i}", gang(2), rack_group(f"{i}-a", size), rack_group(f"{i}-b", size), same="block")
        for i, size in enumerate((2, 3))
    ]

    found = find(cluster, composite("root", gang(2), *pairs))

    assert found.verdict is FOUND
    assert found.domains["pair-0"] == "B"
    assert found.domains["pair-1"] == "A"


def test_a_group_with_a_finer_label_goes_beside_one_with_a_coarser_label() -> None:
    cluster = Cluster(
        block("A", rack("A1", free=4), rack("A2", free=2)), block("B", rack("B1", free=3), rack("B2", free=3))
    )
    blocked = pod_group("blocked", gang(6), pods=6, same="block")

    found = find(cluster, composite("root", gang(2), rack_group("racked", 4), blocked))

    assert found.verdict is FOUND
    assert found.domains == {"racked": "A1", "blocked": "B"}


def test_labels_need_not_nest() -> None:
    cluster = Cluster(
        node("a", "2", labels={"rack": "1", "power": "x"}),
        node("b", "2", labels={"rack": "1", "power": "y"}),
        node("c", "2", labels={"rack": "2", "power": "x"}),
        node("d", "2", labels={"rack": "2", "power": "y"}),
    )
    powered = pod_group("powered", gang(4), pods=4, same="power")
    root = composite("root", gang(2), powered, pod_group("racked", gang(2), pods=2, same="rack"))

    found = find(cluster, root)
    too_much = find(cluster, composite("root", gang(2), powered, rack_group("racked", 3)))

    assert found.verdict is FOUND
    assert too_much.verdict is IMPOSSIBLE


def test_an_inner_domain_is_the_part_of_its_label_value_inside_the_outer_one() -> None:
    cluster = Cluster(
        node("a", "2", labels={"rack": "1", "block": "A"}),
        node("b", "2", labels={"rack": "1", "block": "B"}),
        node("c", "3", labels={"rack": "2", "block": "A"}),
    )

    three = find(cluster, composite("root", gang(1), rack_group("pg", 3), same="block"))
    four = find(cluster, composite("root", gang(1), rack_group("pg", 4), same="block"))

    assert three.domains == {"root": "A", "pg": "2"}
    assert four.verdict is IMPOSSIBLE


def test_nodes_without_the_label_are_in_no_domain() -> None:
    cluster = Cluster(node("unlabelled", "9"), *rack("A1", free=2))

    assert find(cluster, rack_group("pg", 3)).verdict is IMPOSSIBLE


def test_bound_members_pin_the_domain() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    cluster.runs(pod(), "node-A1")
    pinned = rack_group("pinned", 4, bound=("node-A1",))

    found = find(cluster, composite("root", gang(2), rack_group("other", 3), pinned, same="block"))

    assert found.verdict is FOUND
    assert found.domains == {"root": "A", "pinned": "A1", "other": "A2"}


def test_a_pinned_group_whose_domain_is_full_is_impossible_though_an_equal_domain_is_free() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    cluster.runs(pod(cpu="3"), "node-A1")

    assert find(cluster, rack_group("pinned", 3, bound=("node-A1",))).verdict is IMPOSSIBLE


def test_members_bound_in_two_domains_leave_none() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    apart = rack_group("apart", 3, bound=("node-A1", "node-A2"))

    found = find(cluster, composite("root", gang(1), apart, rack_group("other", 2), same="block"))

    assert found.verdict is FOUND
    assert set(found.pods) == {"other"}


def test_pods_that_may_run_anywhere_take_what_constrained_groups_leave() -> None:
    cluster = Cluster(rack("A1", free=3), rack("A2", free=4))
    anywhere = pod_group("anywhere", gang(4), pods=4)

    found = find(cluster, composite("root", gang(2), rack_group("racked", 3), anywhere))

    assert found.verdict is FOUND
    assert found.domains == {"racked": "A1"}


def test_a_group_changes_nodes_inside_its_domain_for_pods_that_may_run_anywhere() -> None:
    cluster = Cluster(
        node("a", "3", labels={"rack": "1"}, gpu="3"),
        node("b", "3", labels={"rack": "1"}),
        node("c", "1", labels={"rack": "2"}, gpu="1"),
    )
    racked = rack_group("racked", 2, cpu="1500m")
    with_gpu = tuple(pod(f"gpu-{i}", cpu="1", gpu="1") for i in range(4))

    found = find(cluster, composite("root", gang(2), racked, pod_group("anywhere", gang(4), pods=with_gpu)))

    assert found.verdict is FOUND
    assert found.pods["racked"] == {"b": 2}


def test_pods_with_one_host_port_keep_each_other_off_their_nodes() -> None:
    def plan(anywhere: int) -> GroupPlan:
        racked = pod_group("racked", gang(1), pods=(pod("racked", host_port=80),), same="rack")
        others = tuple(pod(f"other-{i}", host_port=80) for i in range(anywhere))
        return composite("root", gang(2), racked, pod_group("anywhere", gang(anywhere), pods=others))

    cluster = Cluster(rack("A1", free=9), rack("A2", free=9), rack("A3", free=9))

    assert find(cluster, plan(2)).verdict is FOUND
    assert find(cluster, plan(3)).verdict is IMPOSSIBLE


def test_pods_that_no_node_takes_are_proved_impossible() -> None:
    nowhere = pod_group("pg", gang(1), pods=(pod(node_selector={"disk": "ssd"}),), same="rack")

    assert find(Cluster(rack("A1", free=9)), nowhere).verdict is IMPOSSIBLE


def test_more_equal_groups_than_domains_are_proved_impossible_at_once() -> None:
    cluster = Cluster(*(rack(f"{i:03}", free=5) for i in range(60)))
    root = composite("root", gang(61), *(rack_group(f"pg-{i}", 3) for i in range(61)))

    found = find(cluster, root)

    assert found.verdict is IMPOSSIBLE
    assert found.steps < 100


def test_equal_domains_share_their_answers() -> None:
    def steps(racks: int) -> int:
        cluster = Cluster(*(rack(f"{i:03}", free=5) for i in range(racks)))
        # Fits by every count, but a rack holds only two pods of two units.
        root = composite("root", gang(2), *(rack_group(f"pg-{i}", 2, cpu="2") for i in range(racks)))
        found = find(cluster, root)
        assert found.verdict is FOUND
        return found.steps

    assert steps(40) <= 2 * steps(4)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_spent_budget_is_no_proof(steps: int) -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=5)))

    found = find(cluster, two_groups(4, 5), steps)

    assert found.verdict in {UNKNOWN, FOUND}
    assert found.verdict is FOUND or not found.pods


def test_what_reads_other_nodes_is_never_proved() -> None:
    cluster = Cluster(block("A", rack("A1", free=3), rack("A2", free=5)))
    spread = composite("root", gang(2), rack_group("pg-1", 5), spread_group("pg-2", 5), same="block")

    assert find(cluster, spread).verdict is UNKNOWN


def spread_group(name: str, minimum: int) -> GroupPlan:
    rule = TopologySpreadConstraint(
        max_skew=1,
        topology_key="rack",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "x"}),
    )
    pods = tuple(pod(f"{name}-{i}", labels={"app": "x"}, spread=(rule,)) for i in range(minimum))
    return pod_group(name, gang(minimum), pods=pods, same="rack")


def test_a_decision_places_what_only_the_search_finds() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=5)))

    result = cluster.schedule(
        composite(
            "root",
            gang(2),
            pod_group("pg-1", gang(4), pods=5, same="rack"),
            rack_group("pg-2", 5),
            same="block",
        )
    )

    assert result.decision.search.end is SearchEnd.FOUND
    assert result.placed == {"root": "A", "pg-1": "A1", "pg-2": "A2"}
    assert len(result.on) == 9


def test_a_decision_says_that_no_placement_exists() -> None:
    cluster = Cluster(block("A", rack("A1", free=3), rack("A2", free=5), rack("A3", free=2)))
    cluster.runs(pod(cpu="2"), "node-A1")

    result = cluster.schedule(two_groups(3, 5))

    assert result.code == "UNSCHEDULABLE"
    assert result.decision.search.end is SearchEnd.EXHAUSTED
