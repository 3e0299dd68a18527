"""What a tree that no domain holds lacks: per domain, in pods, groups and amounts, the closest first."""

from __future__ import annotations

import pytest

from muster.core import decide as door
from muster.core import lockstep
from muster.core.lockstep import NoRehearsal
from tests.dsl import Cluster, basic, block, composite, gang, node, pod, pod_group, rack
from tests.dsl.cluster import Result


@pytest.fixture(params=["in lock-step", "one by one"], autouse=True)
def rehearsed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However candidates are tried, the same is told."""
    monkeypatch.setattr(lockstep, "_FEW_DOMAINS", 0)
    if request.param == "one by one":
        monkeypatch.setattr(door, "Lockstep", lambda *_: NoRehearsal())


def told(result: Result, group: str) -> list[str]:
    return [reason.message for reason in result.group(group).reasons]


def details(result: Result, group: str, value: str) -> dict[str, str]:
    """What is told of one domain, without its key and value."""
    (found,) = (
        reason.details
        for reason in result.group(group).reasons
        if reason.code == "INSUFFICIENT_DOMAIN" and reason.details.get("value") == value
    )
    return {name: text for name, text in found.items() if name not in ("key", "value")}


def test_each_rack_lacks_pods_and_the_resource_that_is_short() -> None:
    cluster = Cluster(rack("r1", free=2), rack("r2", free=4), rack("r3", free=6))
    cluster.runs(pod(cpu="2500m"), "node-r3")

    result = cluster.schedule(pod_group("g", gang(5), pods=5, same="rack"))

    assert told(result, "g") == [
        "rack=r2 came closest",
        "rack=r2 lacks room for 1 pod (1 cpu)",
        "rack=r3 lacks room for 2 pods (1500m cpu)",
        "rack=r1 lacks room for 3 pods (3 cpu)",
    ]
    assert details(result, "g", "r3") == {"status": "UNSCHEDULABLE", "pods": "2", "missing": "cpu=1500m"}


def test_room_in_pieces_too_small_is_told_in_pods_alone() -> None:
    cluster = Cluster([node(f"n{place}", "3", labels={"rack": "r"}) for place in range(2)])

    result = cluster.schedule(
        pod_group("g", gang(3), pods=tuple(pod(str(i), cpu="2") for i in range(3)), same="rack")
    )

    assert told(result, "g")[1:] == ["rack=r lacks room for 1 pod"]


def test_a_block_lacks_what_its_groups_take_together() -> None:
    cluster = Cluster(block("A", rack("A1", free=4)), block("B", rack("B1", free=1)))
    wide = pod_group("wide", gang(1), pods=(pod("w", cpu="3", memory="60Gi"),))
    narrow = pod_group("narrow", gang(2), pods=(pod("n-0", memory="4Gi"), pod("n-1", memory="8Gi")))

    result = cluster.schedule(composite("root", gang(2), wide, narrow, same="block"))

    assert told(result, "root") == [
        "block=A came closest",
        "block=A lacks 1 cpu, 8Gi memory",
        "block=B holds 0 of 2 groups: wide lacks room for 1 pod (2 cpu)",
    ]
    assert details(result, "root", "A")["missing"] == "cpu=1,memory=8Gi"


def test_a_group_without_a_rack_is_named_with_the_rack_that_comes_closest() -> None:
    cluster = Cluster(block("A", rack("A1", free=2), rack("A2", free=4)))
    inner = composite("inner", basic(), pod_group("deep", gang(6), pods=6, same="rack"))
    root = composite("root", gang(2), inner, pod_group("easy", gang(1), pods=1), same="block")

    result = cluster.schedule(root)

    assert told(result, "root")[1:] == [
        "block=A holds 1 of 2 groups: inner holds 0 of 1 group: deep lacks room for 2 pods (2 cpu) in rack=A2"
    ]
    lacks = details(result, "root", "A")
    assert (lacks["group"], lacks["inner_value"], lacks["pods"], lacks["groups"]) == ("deep", "A2", "2", "1")


def test_racks_for_too_few_groups_are_counted_in_groups() -> None:
    cluster = Cluster(block("A", rack("A1", free=3), rack("A2", free=3)))
    groups = [pod_group(f"pg-{i}", gang(2), pods=2, same="rack") for i in range(3)]

    result = cluster.schedule(composite("root", gang(3), *groups, same="block"))

    assert told(result, "root")[1:] == ["block=A holds 2 of 3 groups, each in a domain of its own"]


def test_a_block_without_racks_says_so() -> None:
    cluster = Cluster([node("n", labels={"block": "A"})])

    result = cluster.schedule(
        composite("root", gang(1), pod_group("g", gang(1), pods=1, same="rack"), same="block")
    )

    assert told(result, "root")[1:] == ["block=A holds 0 of 1 group: g finds no domain of rack"]


def test_a_domain_that_was_tried_says_how_many_held_and_comes_first() -> None:
    cluster = Cluster(block("A", rack("A1", free=7)), block("B", rack("B1", free=4), rack("B2", free=4)))
    groups = [
        pod_group(f"pg-{i}", gang(number), pods=number, same="rack") for i, number in enumerate((3, 2, 3))
    ]

    result = cluster.schedule(composite("root", gang(3), *groups, same="block"))

    assert told(result, "root") == [
        "block=B came closest",
        "block=B held 2 of 3 groups when tried",
        "block=A lacks room for 1 pod (1 cpu)",
    ]
    assert details(result, "root", "B") == {"status": "UNSCHEDULABLE", "groups": "1", "held": "2"}


def test_of_many_domains_the_closest_are_told_and_the_others_counted() -> None:
    cluster = Cluster(*(rack(f"r{free}", free=free) for free in range(1, 10)))

    result = cluster.schedule(pod_group("g", gang(12), pods=12, same="rack"))

    assert [text.split(" ", 1)[0] for text in told(result, "g")[1:-1]] == [
        *("rack=r9", "rack=r8", "rack=r7", "rack=r6", "rack=r5")
    ]
    assert told(result, "g")[-1] == "4 more domains lack as much or more"
