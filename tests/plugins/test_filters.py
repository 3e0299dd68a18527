"""What each filter lets through, as a user meets it."""

from dataclasses import replace

import pytest

from muster.core.signature import SignatureTable
from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Node, Taint
from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from muster.plugins.host_ports import PortsConflicting, ports_of
from tests.dsl import Cluster, gang, node, pod, pod_group
from tests.dsl.nodes import HOSTNAME

WEB = LabelSelector({"app": "web"})


def zoned(name: str, zone: str, cpu: str = "8") -> Node:
    return node(name, cpu, labels={"zone": zone})


def requiring(*terms: NodeSelectorTerm) -> Affinity:
    return Affinity(node_affinity=NodeAffinity(required=terms))


def together(key: str, selector: LabelSelector = WEB) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=(PodAffinityTerm(selector, topology_key=key),)))


def apart(key: str, selector: LabelSelector = WEB) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=(PodAffinityTerm(selector, topology_key=key),)))


def spread(key: str, skew: int = 1, **options: object) -> TopologySpreadConstraint:
    constraint = TopologySpreadConstraint(skew, key, "DoNotSchedule", WEB)
    return replace(constraint, **options)  # type: ignore[arg-type]  # The names of its fields.


def web(**options: object) -> Pod:
    return pod(labels={"app": "web"}, **options)  # type: ignore[arg-type]  # Those of `pod`.


@pytest.mark.parametrize(
    ("pods", "code"),
    [
        (pod("p"), "NODE_TAINTED"),
        (pod("p", tolerations=(Toleration("k", "Equal", "v", "NoExecute"),)), "NODE_TAINTED"),
    ],
)
def test_taints_keep_out_what_does_not_tolerate_them(pods: Pod, code: str) -> None:
    cluster = Cluster(node("a", taints=(Taint("k", "v", "NoSchedule"),)))

    assert cluster.schedule(pods).reasons() == {code: 1}


def test_a_toleration_lets_in_and_a_preference_never_keeps_out() -> None:
    taints = (Taint("k", "v", "NoSchedule"), Taint("soft", "", "PreferNoSchedule"))
    cluster = Cluster(node("a", taints=taints))

    assert cluster.schedule(pod("p", tolerations=(Toleration("k", "Exists"),))).on == {"p": "a"}


def test_an_unschedulable_node_takes_what_tolerates_that() -> None:
    cluster = Cluster(node("a", unschedulable=True))
    tolerant = pod("p", tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))

    assert cluster.schedule(pod("q")).reasons() == {"NODE_UNSCHEDULABLE": 1}
    assert cluster.schedule(tolerant).on == {"p": "a"}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (requiring(NodeSelectorTerm((SelectorRequirement("rank", "Gt", ("2",)),))), "c"),
        (requiring(NodeSelectorTerm((SelectorRequirement("rank", "Lt", ("2",)),))), "a"),
        (requiring(NodeSelectorTerm((), (SelectorRequirement("metadata.name", "In", ("b", "x")),))), "b"),
        (
            requiring(
                NodeSelectorTerm(),
                NodeSelectorTerm((SelectorRequirement("rank", "In", ("9",)),)),
                NodeSelectorTerm((SelectorRequirement("rank", "NotIn", ("1", "2")),)),
            ),
            "c",
        ),
        (requiring(), None),
    ],
    ids=["greater", "less", "name", "any-term", "no-term"],
)
def test_required_node_affinity(affinity: Affinity, expected: str | None) -> None:
    cluster = Cluster(*(node(name, labels={"rank": str(rank)}) for rank, name in enumerate("abc", 1)))

    assert cluster.schedule(pod("p", affinity=affinity)).on.get("p") == expected


def test_host_ports_are_held_once_a_node_and_preemption_may_free_them() -> None:
    cluster = Cluster(node("a"), node("b"))

    result = cluster.schedule(
        pod_group("g", gang(3), pods=tuple(pod(f"p{i}", host_port=80) for i in range(3)))
    )

    assert result.code == "UNSCHEDULABLE"
    assert result.reasons() == {"HOST_PORTS": 2}


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict"),
    [
        (ContainerPort(host_port=80), ContainerPort(host_port=80), True),
        (ContainerPort(host_port=80), ContainerPort(host_port=81), False),
        (ContainerPort(host_port=80, protocol="UDP"), ContainerPort(host_port=80), False),
        (ContainerPort(host_port=80, host_ip="10.0.0.1"), ContainerPort(host_port=80), True),
        (
            ContainerPort(host_port=80, host_ip="10.0.0.1"),
            ContainerPort(host_port=80, host_ip="10.0.0.2"),
            False,
        ),
    ],
)
def test_ports_conflict_by_protocol_number_and_address(
    ours: ContainerPort, theirs: ContainerPort, *, conflict: bool
) -> None:
    table = SignatureTable()
    specs = [PodSpec(containers=(Container(ports=(port,)),)) for port in (ours, theirs)]
    mine, other = (table[table.intern(Pod(name="p", spec=spec))] for spec in specs)

    assert PortsConflicting(ports_of(mine)).selects(other) is conflict


def test_pods_on_the_nodes_network_hold_all_their_ports() -> None:
    table = SignatureTable()
    spec = PodSpec(containers=(Container(ports=(ContainerPort(container_port=53),)),), host_network=True)

    assert ports_of(table[table.intern(Pod(name="p", spec=spec))]) == {("TCP", 53, "")}


def test_affinity_draws_a_pod_to_the_zone_of_the_others() -> None:
    cluster = Cluster(zoned("a", "x"), zoned("b", "y", "2"))
    cluster.runs(web(), "b")

    assert cluster.schedule(pod("p", affinity=together("zone"))).on == {"p": "b"}


def test_the_first_of_pods_that_must_be_together_goes_anywhere_and_draws_the_rest() -> None:
    cluster = Cluster(zoned("a", "x", "2"), zoned("b", "y", "3"), node("c", "9"))
    members = tuple(replace(web(affinity=together("zone")), name=f"p{i}") for i in range(3))

    result = cluster.schedule(pod_group("g", gang(3), pods=members))

    assert set(result.nodes) == {"b"}


def test_affinity_to_pods_that_do_not_run_is_no_matter_of_nodes() -> None:
    cluster = Cluster(zoned("a", "x"))

    result = cluster.schedule(pod("p", affinity=together("zone")))

    assert result.code == "UNSCHEDULABLE"
    assert result.reasons() == {"POD_AFFINITY": 1}


def test_anti_affinity_holds_both_ways() -> None:
    cluster = Cluster(node("a"), node("b", "2"))
    cluster.runs(pod(affinity=apart(HOSTNAME)), "a")
    cluster.runs(web(), "b")

    assert cluster.schedule(replace(web(), name="p")).on == {"p": "b"}
    assert cluster.schedule(pod("q", affinity=apart(HOSTNAME))).on == {"q": "a"}


def test_a_pod_that_leaves_keeps_others_away_until_it_is_gone() -> None:
    cluster = Cluster(node("a"))
    cluster.runs(pod(affinity=apart(HOSTNAME)), "a", leaving=True)

    assert cluster.schedule(web()).reasons() == {"POD_ANTI_AFFINITY": 1}


def test_terms_select_only_in_the_pods_own_namespace() -> None:
    cluster = Cluster(node("a"))
    cluster.runs(replace(web(), namespace="other"), "a")

    assert cluster.schedule(pod("p", affinity=apart(HOSTNAME))).on == {"p": "a"}


def test_spread_keeps_domains_within_the_skew() -> None:
    cluster = Cluster(zoned("a", "x"), zoned("b", "y"), zoned("c", "z", "1"))
    members = tuple(replace(web(spread=(spread("zone"),)), name=f"p{i}") for i in range(6))

    result = cluster.schedule(pod_group("g", gang(1), pods=members))

    assert sorted(result.nodes) == ["a", "a", "b", "b", "c"]


def test_spread_with_too_few_domains_counts_an_empty_one() -> None:
    cluster = Cluster(zoned("a", "x"), zoned("b", "y"))
    members = tuple(replace(web(spread=(spread("zone", min_domains=3),)), name=f"p{i}") for i in range(3))

    result = cluster.schedule(pod_group("g", gang(1), pods=members))

    assert sorted(result.nodes) == ["a", "b"]
    assert result.reasons() == {"TOPOLOGY_SPREAD": 2}


def test_a_node_without_the_key_can_never_hold_a_spread_pod() -> None:
    result = Cluster(node("a")).schedule(replace(web(spread=(spread("zone"),)), name="p"))

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert result.reasons() == {"TOPOLOGY_SPREAD_KEY": 1}


def test_spread_among_the_pods_own_revision_alone() -> None:
    cluster = Cluster(zoned("a", "x"), zoned("b", "y", "1"))
    cluster.runs(pod(labels={"app": "web", "revision": "1"}), "a")
    constraint = spread("zone", match_label_keys=("revision",))
    newer = pod("p", labels={"app": "web", "revision": "2"}, spread=(constraint,))

    assert cluster.schedule(newer).on == {"p": "a"}
