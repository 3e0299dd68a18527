"""The exact solver answers what the bounded search answers; without the extra, a profile that asks for it is refused."""

from __future__ import annotations

import importlib.util

import pytest

from muster.core.decision import SearchEnd
from muster.plugins import exact_search
from muster.plugins.profile import ProfileError, make_profile
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.dsl.nodes import block, rack

installed = pytest.mark.skipif(
    importlib.util.find_spec("ortools") is None, reason="the extra muster[exact] is not installed"
)
EXACT = {"name": "default-scheduler", "search": {"solver": "exact"}}


def gang_of(*cpus: str) -> GroupPlan:
    members = tuple(pod(f"p{place}", cpu=cpu) for place, cpu in enumerate(cpus))
    return pod_group("g", gang(len(members)), pods=members)


def test_a_profile_that_asks_for_it_is_refused_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_search, "find_spec", lambda _: None)

    with pytest.raises(ProfileError, match=r"search\.solver: needs the extra muster\[exact\]"):
        make_profile(EXACT)


@installed
def test_a_gang_is_placed_that_greedy_placement_misses() -> None:
    result = Cluster(node("a", "4"), node("b", "6"), profile=make_profile(EXACT)).schedule(
        gang_of("3", "3", "2", "2")
    )

    assert result.decision.search.end is SearchEnd.FOUND
    assert result.on == {"p0": "b", "p1": "b", "p2": "a", "p3": "a"}


@installed
def test_what_cannot_be_placed_is_proved() -> None:
    result = Cluster(node("a", "5"), node("b", "5"), profile=make_profile(EXACT)).schedule(
        gang_of("3", "3", "4")
    )

    assert result.decision.search.end is SearchEnd.EXHAUSTED


@installed
def test_groups_get_domains_inside_those_of_their_parents() -> None:
    cluster = Cluster(
        block("A", rack("A1", free=20), rack("A2", free=4)),
        block("B", rack("B1", free=4), rack("B2", free=4)),
        profile=make_profile(EXACT),
    )
    members = (pod("x", cpu="3"), pod("y", cpu="2"))
    root = composite(
        "root",
        gang(2),
        pod_group("first", gang(1), pods=1, cpu="3", same="rack"),
        pod_group("second", gang(2), pods=members, same="rack"),
        same="block",
    )
    cluster.runs(pod(cpu="15"), "node-A1")

    result = cluster.schedule(root)

    assert result.decision.search.end is SearchEnd.FOUND
    assert result.placed == {"root": "A", "first": "A2", "second": "A1"}
