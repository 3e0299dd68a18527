"""What no node and no pod names any more is given up: resources and sets of taints that came once and are gone."""

from __future__ import annotations

from dataclasses import replace

from muster.core.deltas import NodePut, NodeRemoved, PodsBound, PodsUnbound, SignaturesAdded, SignaturesKept
from muster.core.node_table import NodeTable
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.engine.array_feed import LEAST_RESOURCES, ArrayFeed
from muster.model.node import Node, Taint
from muster.model.pod import Container, Pod, PodSpec, Resources
from tests import dsl


def asking(resource: str, *, on: str = "", ordinal: int = 0) -> Pod:
    spec = PodSpec(containers=(Container(resources=Resources(requests={resource: "1"})),))
    return Pod(name=f"p{ordinal}", namespace="default", spec=spec, node_name=on, ordinal=ordinal)


def tainted(name: str, *values: str) -> Node:
    return dsl.node(name, taints=tuple(Taint("of", value, "NoSchedule") for value in values))


def test_resources_that_nobody_names_any_more_are_given_up_and_the_room_of_others_stays() -> None:
    snapshot, table = Snapshot(), SignatureTable()
    kinds = [table.intern(asking(name)) for name in ("example.com/gone", "example.com/gpu", "cpu")]
    snapshot.apply(NodePut(dsl.node("n", gpu="4")))
    snapshot.apply(SignaturesAdded(table.take_new()))
    snapshot.apply(PodsBound((1, 2, 3), tuple(kinds), ("n", "n", "n")))
    snapshot.apply(PodsUnbound((1,)))

    snapshot.apply(SignaturesKept((1, 2)))

    free = {name: int(snapshot.nodes.free[row, 0]) for name, row in snapshot.nodes.rows.items()}
    assert free == {"cpu": 3000, "memory": 64 << 30, "pods": 108, "example.com/gpu": 3}
    snapshot.apply(PodsUnbound((2,)))
    assert int(snapshot.nodes.free[snapshot.nodes.rows["example.com/gpu"], 0]) == 4


def test_what_an_amount_is_of_is_known_after_rows_before_it_were_given_up() -> None:
    snapshot, table = Snapshot(), SignatureTable()
    kinds = [table.intern(asking(name)) for name in ("example.com/gone", "example.com/gpu")]
    snapshot.apply(SignaturesAdded(table.take_new()))

    snapshot.apply(SignaturesKept((kinds[1],)))

    row = snapshot.nodes.rows["example.com/gpu"]
    assert snapshot.requests(0).tolist() == [
        int(each in (row, snapshot.nodes.rows["pods"])) for each in range(4)
    ]


def test_a_stream_of_resources_of_their_own_leaves_few_rows() -> None:
    feed = ArrayFeed()
    feed.node_changed(None, dsl.node("n"))

    for number in range(3 * LEAST_RESOURCES):
        pod = asking(f"example.com/own-{number}", on="n", ordinal=number + 1)
        feed.pod_changed(None, pod)
        feed.flush()
        feed.pod_changed(pod, None)
        feed.flush()
        feed.forget_signatures()

    assert len(feed.snapshot.nodes.rows) <= LEAST_RESOURCES
    assert len(feed.snapshot._bound_total) == len(feed.snapshot.nodes.rows)


def test_sets_of_taints_that_no_node_has_any_more_are_given_up() -> None:
    table = NodeTable()
    table.put(tainted("kept", "always"))

    for number in range(1_000):
        table.put(tainted("changes", str(number)))

    assert len(table.taint_sets) <= 65
    found = {name: table.taint_sets[table.taint_codes[table.slot(name) or 0]] for name in ("kept", "changes")}
    assert found == {"kept": tainted("", "always").taints, "changes": tainted("", "999").taints}


def test_nodes_that_come_and_go_leave_no_taints() -> None:
    snapshot = Snapshot()

    for number in range(1_000):
        snapshot.apply(NodePut(replace(tainted(f"n{number}", str(number)), labels={"own": str(number)})))
        snapshot.nodes.column("own")
        snapshot.apply(NodeRemoved(f"n{number}"))

    assert len(snapshot.nodes.taint_sets) <= 65
    assert len(snapshot.nodes.column("own").values) <= 65
    assert snapshot.nodes.size == 16
