"""Edits in runs come to what they come to one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from muster.engine.edits import Edits
from muster.engine.log_entries import EventType, LogEntry
from muster.engine.ports import ClusterWrites
from muster.model.group import PodGroup
from muster.model.node import Node
from muster.model.pod import Pod
from tests.engine.small_cluster import node, pod, pod_group

WAITING = tuple(pod(f"waiting-{number}") for number in range(6))
BOUND = tuple(replace(each, node_name="node", resource_version=2) for each in WAITING)
NEW = tuple(pod(f"new-{number}") if number % 3 else pod_group(f"new-{number}") for number in range(6))
NODES = tuple(node(f"node-{number}") for number in range(3))

Step = Callable[[Edits], None]


def came(first: int, last: int, edits: Edits) -> None:
    edits.came(NEW[first:last])


def bound(first: int, last: int, edits: Edits) -> None:
    edits.bound(WAITING[first:last], BOUND[first:last])


def came_singly(first: int, last: int, edits: Edits) -> None:
    for each in NEW[first:last]:
        edits.note(each.key, None, each)


def bound_singly(first: int, last: int, edits: Edits) -> None:
    for old, new in zip(WAITING[first:last], BOUND[first:last], strict=True):
        edits.note(old.key, old, new)


def put_node(item: Node, edits: Edits) -> None:
    edits.note(item.key, None, item)


def relabelled(item: Pod | PodGroup, edits: Edits) -> None:
    edits.note(item.key, item, replace(item, labels={"is": "late"}))


def removed(item: Pod | PodGroup, edits: Edits) -> None:
    edits.note(item.key, item, None)


def pairs() -> st.SearchStrategy[list[tuple[Step, Step]]]:
    """Steps in runs, each with its like one by one; runs have no pod in common."""
    runs = [
        (partial(at_once, first, first + 2), partial(singly, first, first + 2))
        for at_once, singly in ((came, came_singly), (bound, bound_singly))
        for first in (0, 2, 4)
    ]
    others: list[Step] = [partial(put_node, each) for each in NODES]
    others += [
        partial(change, each) for change in (relabelled, removed) for each in (NEW[1], NEW[3], BOUND[2])
    ]
    return st.tuples(
        st.lists(st.sampled_from(runs), unique_by=id),
        st.lists(st.sampled_from(others).map(lambda step: (step, step)), max_size=4),
    ).flatmap(lambda drawn: st.permutations([*drawn[0], *drawn[1]]))


def outcome(steps: Sequence[Step]) -> tuple[bool, bool, object, object, LogEntry]:
    edits, writes = Edits(), ClusterWrites("cluster", 1, 1)
    for step in steps:
        step(edits)
    return bool(edits), edits.changes_anything(), writes.puts, writes.removed, edits.write(writes, 1, 1)


@given(pairs())
def test_in_runs_and_one_by_one_are_the_same(steps: list[tuple[Step, Step]]) -> None:
    in_runs, one_by_one = zip(*steps, strict=True) if steps else ((), ())

    assert outcome(in_runs) == outcome(one_by_one)


def test_a_run_is_not_among_the_single_ones_until_one_of_its_pods_is() -> None:
    edits = Edits()
    edits.came(NEW)
    edits.bound(WAITING, BOUND)

    assert not edits.singles
    assert [each.new for each in edits.in_runs] == [*NEW, *BOUND]

    edits.note(NEW[0].key, NEW[0], None)

    assert len(edits.singles) == len(NEW) + len(BOUND)
    assert not list(edits.in_runs)


def test_changes_stand_in_the_order_in_which_they_were_noted() -> None:
    edits = Edits()
    put_node(NODES[0], edits)
    came(0, 2, edits)
    put_node(NODES[1], edits)

    entry = edits.write(ClusterWrites("cluster", 1, 1), 1, 1)

    assert entry.objects == [NODES[0], *NEW[:2], NODES[1]]
    assert entry.types == [EventType.ADDED] * 4
