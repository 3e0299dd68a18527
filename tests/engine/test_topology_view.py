"""The view from above: nested domains with what is in use, a highlighted group, and an end to every answer."""

from __future__ import annotations

import pytest

from muster.engine import topology_view
from muster.engine.aside import Setting
from muster.engine.topology_view import Block, GroupsQuestion, Topology, TopologyQuestion, natural
from muster.model.group import PodGroup
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.pod import PodStatus
from muster.model.variations import varied
from tests.engine.small_cluster import SmallCluster, composite, node, pod, pod_group

SETTING = Setting({}, 0)
BLOCK, RACK = "example.com/block", "example.com/rack"
LEVELS = (BLOCK, RACK)
NOMINATED = PodStatus(nominated_node_name="a1")
CREW = ObjectKey("PodGroup", "default", "crew")


def host(name: str, block: str | None = None, rack: str | None = None, *, cordoned: bool = False) -> Node:
    labels = {key: value for key, value in ((BLOCK, block), (RACK, rack)) if value is not None}
    return varied(node(name), labels=labels, unschedulable=cordoned)


def constrained(name: str, key: str) -> PodGroup:
    group = pod_group(name)
    return varied(group, spec=varied(group.spec, topology=(key,)))


def look(
    cluster: SmallCluster, *levels: str, at: tuple[str, ...] = (), group: ObjectKey | None = None
) -> Topology:
    return TopologyQuestion(levels or LEVELS, at, group)(cluster.cluster, SETTING)


def shape(block: Block) -> dict[str | None, object]:
    """Values of nested blocks down to the names of hosts."""
    if block.blocks:
        return {each.value: shape(each) for each in block.blocks}
    return {None: [each.name for each in block.hosts]}


def test_domains_nest_and_names_come_in_the_order_of_their_numbers() -> None:
    cluster = SmallCluster(
        host("a10", "A", "r2"), host("a9", "A", "r2"), host("a1", "A", "r10"), host("b1", "B", "r1")
    )

    view = look(cluster)

    assert shape(view.block) == {
        "A": {"r2": {None: ["a9", "a10"]}, "r10": {None: ["a1"]}},
        "B": {"r1": {None: ["b1"]}},
    }


def test_one_value_in_two_domains_is_two_domains() -> None:
    cluster = SmallCluster(host("a1", "A", "r1"), host("b1", "B", "r1"))

    blocks = look(cluster).block.blocks

    assert [[(rack.value, rack.nodes) for rack in block.blocks] for block in blocks] == [
        [("r1", 1)],
        [("r1", 1)],
    ]


def test_a_missing_label_is_no_value_and_an_empty_one_is() -> None:
    cluster = SmallCluster(host("bare"), host("empty", "", ""), host("a1", "A", "r1"))

    assert [each.value for each in look(cluster).block.blocks] == ["", "A", None]


def test_use_is_summed_over_the_nodes_of_a_domain() -> None:
    cluster = SmallCluster(
        host("a1", "A", "r1"), host("a2", "A", "r2", cordoned=True), pod("p", on="a1"), pod("q", on="a2")
    )

    block = look(cluster).block

    assert block.use == {"cpu": (0, 16_000), "pods": (2, 20)}
    assert (block.blocks[0].blocks[0].use["pods"], block.cordoned) == ((1, 10), 1)


def test_a_domain_that_is_opened_is_all_there_is() -> None:
    cluster = SmallCluster(host("a1", "A", "r1"), host("a2", "A", "r2"), host("b1", "B", "r1"), host("bare"))

    view = look(cluster, at=("A", "r2"))

    assert shape(view.block) == {None: ["a2"]}
    assert look(cluster, at=("C",)).block.nodes == 0


def test_pods_of_a_highlighted_group_are_counted_where_they_are_and_where_they_will_be() -> None:
    cluster = SmallCluster(
        composite("root"),
        pod_group("crew", parent="root"),
        pod_group("other"),
        host("a1", "A", "r1"),
        host("b1", "B", "r1"),
        pod("crew-0", group="crew", on="b1"),
        pod("crew-1", group="crew", status=NOMINATED),
        pod("crew-2", group="crew", on="b1", status=PodStatus(phase="Succeeded")),
        pod("other-0", group="other", on="a1"),
    )

    for group in (CREW, ObjectKey("CompositePodGroup", "default", "root")):
        view = look(cluster, group=group)
        assert [(each.bound, each.nominated) for each in view.block.blocks] == [(0, 1), (1, 0)]


def test_levels_are_those_that_groups_are_constrained_by_the_widest_first() -> None:
    groups = [constrained(f"by-{key[-4:]}", key) for key in (RACK, BLOCK, "example.com/nobody-has-it")]
    cluster = SmallCluster(*groups, *(host(f"n{i}", f"b{i % 2}", f"r{i % 4}") for i in range(8)))

    view = TopologyQuestion()(cluster.cluster, SETTING)

    assert (view.keys, view.labels) == ((BLOCK, RACK), (BLOCK, RACK))


def test_without_constraints_the_levels_are_labels_that_nest() -> None:
    nodes = [host(f"n{i}", f"b{i // 8}", f"r{i // 4}") for i in range(16)]
    labelled = [
        varied(each, labels={**each.labels, "own": each.name, "across": f"c{place % 3}"})
        for place, each in enumerate(nodes)
    ]

    view = TopologyQuestion()(SmallCluster(*labelled).cluster, SETTING)

    assert view.keys == (BLOCK, RACK)


def test_too_many_nodes_are_left_out_until_a_domain_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_view, "MOST_HOSTS", 3)
    cluster = SmallCluster(*(host(f"n{i}", f"b{i % 2}", f"r{i}") for i in range(4)))

    whole, opened = look(cluster, BLOCK), look(cluster, BLOCK, at=("b1",))

    assert [(each.hosts, each.hidden) for each in whole.block.blocks] == [((), 2), ((), 2)]
    assert len(opened.block.hosts) == 2


def test_too_many_domains_end_at_the_last_level_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_view, "MOST_BLOCKS", 3)
    cluster = SmallCluster(*(host(f"n{i}", f"b{i % 2}", f"r{i}") for i in range(8)))

    levels, racks = look(cluster), look(cluster, RACK)

    assert [each.blocks for each in levels.block.blocks] == [(), ()]
    assert (len(racks.block.blocks), racks.block.hidden) == (3, 5)


def test_a_cluster_without_nodes_has_a_view() -> None:
    view = look(SmallCluster())

    assert (view.block.nodes, view.block.blocks, view.resources) == (0, (), ())


def test_groups_are_found_by_a_part_of_their_name_with_their_pods() -> None:
    cluster = SmallCluster(
        composite("crew-root"),
        pod_group("crew", parent="crew-root"),
        pod_group("other"),
        host("a1"),
        pod("crew-0", group="crew", on="a1"),
        pod("crew-1", group="crew"),
    )

    found = GroupsQuestion("crew")(cluster.cluster, SETTING)

    assert [(each.kind, each.name, each.bound, each.pending) for each in found] == [
        ("PodGroup", "crew", 1, 1),
        ("CompositePodGroup", "crew-root", 1, 1),
    ]


def test_no_more_groups_are_found_than_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_view, "MOST_GROUPS", 2)
    cluster = SmallCluster(*(pod_group(f"g{i}") for i in range(5)))

    assert [each.name for each in GroupsQuestion()(cluster.cluster, SETTING)] == ["g0", "g1"]


def test_any_text_can_be_sorted_naturally() -> None:
    names = ["rack-10", None, "rack-2", "2", "rack", "", "²", "rack-2a", "x٣"]

    in_order = ["", "2", "rack", "rack-2", "rack-2a", "rack-10", "x٣", "²", None]
    assert sorted(names, key=natural) == in_order
