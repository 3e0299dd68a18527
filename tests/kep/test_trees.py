"""Paragraphs of KEP-6012 about groups of groups and their domains."""

from muster.core.decision import Status
from tests.dsl import Cluster, basic, composite, gang, node, pod, pod_group, rack

UNSCHEDULABLE, SUCCESS = Status.UNSCHEDULABLE, Status.SUCCESS


def test_extra_pods_never_take_what_a_sibling_needs_for_its_minimum() -> None:
    cluster = Cluster(node("a", "4"))
    root = composite("root", gang(2), pod_group("pg-1", gang(1), pods=4), pod_group("pg-2", gang(2), pods=2))

    result = cluster.schedule(root)

    assert result.group("pg-1").satisfied == 2
    assert result.group("pg-2").satisfied == 2


def test_a_child_beyond_the_minimum_is_filled_in_after_all_minimums() -> None:
    cluster = Cluster(node("a", "5"))
    root = composite(
        "root",
        gang(1),
        pod_group("pg-1", gang(2), pods=4),
        pod_group("pg-2", gang(2), pods=2),
        pod_group("pg-3", gang(2), pods=2),
    )

    result = cluster.schedule(root)

    assert [result.group(f"pg-{i}").satisfied for i in (1, 2, 3)] == [3, 2, 1]
    assert result.group("pg-3").status is UNSCHEDULABLE
    assert len(result.on) == 5


def test_a_failed_child_gives_back_all_that_it_took() -> None:
    cluster = Cluster(node("a", "3"))
    root = composite(
        "root", basic(), pod_group("too-big", gang(4), pods=4), pod_group("fits", gang(3), pods=3)
    )

    result = cluster.schedule(root)

    assert result.code == "SCHEDULED"
    assert sorted(result.on) == ["fits-0", "fits-1", "fits-2"]


def test_a_root_stops_as_soon_as_its_minimum_is_out_of_reach() -> None:
    cluster = Cluster(node("a", "3"))
    root = composite(
        "root", gang(2), pod_group("too-big", gang(4), pods=4), pod_group("fits", gang(3), pods=3)
    )

    result = cluster.schedule(root)

    assert result.group("root").status is UNSCHEDULABLE
    assert result.group("fits").status is Status.WAIT
    assert "PodGroup default/too-big: 3 of 4 required pods fit" in result.decision.message


def test_an_inadmissible_child_is_neither_tried_nor_counted() -> None:
    cluster = Cluster(node("a", "9"))
    root = composite(
        "root",
        gang(2),
        pod_group("short", gang(4), pods=1, admissible=False),
        pod_group("fits", gang(3), pods=3),
    )

    result = cluster.schedule(root)

    assert result.group("root").status is Status.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert result.group("fits").status is Status.WAIT


def test_bound_members_pin_the_domain() -> None:
    cluster = Cluster(rack("r1", free=3), rack("r2", free=9))
    cluster.runs(pod(), "node-r1")

    result = cluster.schedule(pod_group("g", gang(2), pods=2, same="rack", bound=("node-r1",)))

    assert result.placed == {"g": "r1"}
    assert set(result.nodes) == {"node-r1"}


def test_bound_members_in_two_domains_leave_no_candidate() -> None:
    cluster = Cluster(rack("r1", free=3), rack("r2", free=9))

    result = cluster.schedule(pod_group("g", gang(4), pods=2, same="rack", bound=("node-r1", "node-r2")))

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert "node-r1 (rack=r1), node-r2 (rack=r2)" in result.decision.message


def test_a_bound_member_on_a_node_that_is_gone_pins_nothing() -> None:
    cluster = Cluster(rack("r1", free=3))

    result = cluster.schedule(pod_group("g", gang(2), pods=1, same="rack", bound=("gone",)))

    assert result.placed == {"g": "r1"}


def test_the_fullest_domain_that_holds_all_pods_wins() -> None:
    cluster = Cluster(rack("r1", free=2), rack("r2", free=4), rack("r3", free=9))

    result = cluster.schedule(pod_group("g", gang(1), pods=4, same="rack"))

    assert result.placed == {"g": "r2"}
    assert result.group("g").tried == 3


def test_an_empty_label_value_is_a_domain_and_a_missing_label_is_none() -> None:
    cluster = Cluster(node("bare", "9"), node("empty", "2", labels={"rack": ""}))

    result = cluster.schedule(pod_group("g", gang(2), pods=2, same="rack"))

    assert set(result.nodes) == {"empty"}
    assert result.group("g").domain_key == "rack"


def test_domains_too_small_for_the_minimum_are_pruned() -> None:
    cluster = Cluster(rack("r1", free=2), rack("r2", free=4), rack("r3", free=1))
    cluster.runs(pod(), "node-r2")

    result = cluster.schedule(pod_group("g", gang(4), pods=4, same="rack"))

    assert (result.group("g").tried, result.group("g").pruned) == (0, 3)
    assert result.group("g").status is UNSCHEDULABLE


def test_a_failed_group_names_the_domain_that_came_closest_and_what_it_lacked() -> None:
    # In r2 there are six cpu, but beside a large pod no room for the odd one.
    nodes = [node(f"{name}-{place}", "3", labels={"rack": name}) for name in ("r1", "r2") for place in (0, 1)]
    cluster = Cluster(*nodes)
    cluster.runs(pod(), "r1-0")
    members = (pod("large", cpu="2"), pod("other", cpu="2"), pod("odd", cpu="1500m"))

    result = cluster.schedule(pod_group("g", gang(3), pods=members, same="rack"))

    assert result.group("g").tried == 1
    assert result.decision.message == (
        "2 of 3 required pods fit (S=2 R=0 U=1 UU=0); no placement exists; "
        "no domain holds the minimum (1 tried, 1 ruled out by capacity); rack=r2 came closest; "
        "rack=r2 held 2 of 3 pods when tried; rack=r1 lacks 500m cpu; "
        "0/2 nodes are available: 2 Insufficient cpu."
    )


def test_equal_values_in_different_blocks_are_different_domains() -> None:
    cluster = Cluster(
        node("a", "2", labels={"block": "A", "rack": "1"}), node("b", "2", labels={"block": "B", "rack": "1"})
    )
    root = composite("root", gang(1), pod_group("g", gang(3), pods=3, same="rack"), same="block")

    result = cluster.schedule(root)

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"


def test_a_composite_without_children_can_hold_nothing() -> None:
    cluster = Cluster(node("a"))

    assert cluster.schedule(composite("root", gang(1))).code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
