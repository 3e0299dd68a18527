"""Preemption where more than amounts bears on the pods: victims go as pods, so that filters see them gone."""

from __future__ import annotations

from muster.model.meta import LabelSelector
from muster.model.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from tests.dsl import gang, node, pod, pod_group
from tests.dsl.preemption import BusyCluster


def _apart_from(app: str, key: str = "zone") -> Affinity:
    selector = LabelSelector(match_labels={"app": app})
    term = PodAffinityTerm(label_selector=selector, topology_key=key)
    return Affinity(pod_anti_affinity=PodAffinity(required=(term,)))


def test_a_unit_that_holds_a_host_port_goes_though_there_is_room() -> None:
    cluster = BusyCluster(node("a", "4"))
    cluster.low_pod("listens", "a", host_port=80)
    cluster.low_pod("other", "a")

    result = cluster.preempt(pod("p", host_port=80))

    assert (result.victims, result.nominated) == (["listens"], {"p": "a"})


def test_a_unit_whose_own_terms_keep_the_preemptor_out_of_its_zone_goes() -> None:
    cluster = BusyCluster(node("a", "4", labels={"zone": "x"}), node("b", "4", labels={"zone": "x"}))
    cluster.low_pod("jealous", "a", affinity=_apart_from("web"), labels={"app": "db"})
    cluster.low_pod("bystander", "b")

    result = cluster.preempt(pod("p", labels={"app": "web"}))

    assert result.victims == ["jealous"]
    assert set(result.fates) == {"bystander"}


def test_all_units_that_the_preemptor_must_be_apart_from_go_and_no_others() -> None:
    cluster = BusyCluster(node("a", "4", labels={"zone": "x"}), node("b", "4", labels={"zone": "x"}))
    for number, on in enumerate("ab"):
        cluster.low_pod(f"web-{number}", on, labels={"app": "web"})
        cluster.low_pod(f"db-{number}", on, labels={"app": "db"})

    result = cluster.preempt(pod("p", affinity=_apart_from("web")))

    assert sorted(result.victims) == ["web-0", "web-1"]


def test_a_crowded_zone_gives_up_as_many_as_the_skew_asks_for() -> None:
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "web"}),
    )
    cluster = BusyCluster(node("a", "4", labels={"zone": "x"}), node("b", "1", labels={"zone": "y"}))
    cluster.runs(pod("peer"), "b")
    for number in range(3):
        cluster.low_pod(f"web-{number}", "a", labels={"app": "web"}, start=number)

    result = cluster.preempt(pod("p", labels={"app": "web"}, spread=(spread,)))

    # Zone y has none and takes none: x may hold one.
    assert sorted(result.victims) == ["web-0", "web-1", "web-2"]


def test_leaving_pods_that_filters_read_count_as_gone_too() -> None:
    cluster = BusyCluster(node("a", "4"))
    (old,) = cluster.leaves(pod("old", host_port=80), "a")

    result = cluster.preempt(pod("p", host_port=80))

    assert (result.victims, result.preemption.awaited) == ([], (old,))


def test_of_many_units_only_those_in_the_way_of_a_filter_go() -> None:
    cluster = BusyCluster(*(node(f"n{number}", "2", labels={"zone": "x"}) for number in range(40)))
    for number in range(40):
        app = "web" if number % 13 == 0 else "db"
        cluster.low_pod(f"low-{number:02}", f"n{number}", labels={"app": app}, start=number)

    result = cluster.preempt(
        pod_group("g", gang(3), pods=tuple(pod(f"p{i}", affinity=_apart_from("web")) for i in range(3)))
    )

    assert sorted(result.victims) == ["low-00", "low-13", "low-26", "low-39"]
