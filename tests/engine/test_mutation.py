"""What one revision tells and entails beyond what was asked for."""

from dataclasses import replace

from muster.engine.log_entries import EventType
from muster.engine.mutation import Mutation
from muster.engine.ports import UnitState
from muster.model.meta import ObjectKey
from muster.model.node import Node
from tests.engine.small_cluster import SECOND_US, SmallCluster, pod


def test_a_deleted_event_carries_the_state_in_which_the_object_went() -> None:
    lone = pod("lone")
    small = SmallCluster(lone)

    def change_and_remove(mutation: Mutation) -> None:
        mutation.put(replace(small.pod("lone"), annotations={"last": "words"}))
        mutation.remove(lone.key)

    small.change(change_and_remove)

    [change] = small.cluster.writes().entries[-1].changes
    assert (change.type, change.object.annotations) == (EventType.DELETED, {"last": "words"})


def test_a_note_in_an_annotation_resets_no_backoff() -> None:
    small = SmallCluster(pod("lone"))
    waiting = fail_twice(small)

    small.change(lambda mutation: mutation.put(replace(small.pod("lone"), annotations={"note": "1"})))

    assert small.cluster.queue.rows[waiting].attempts == 2


def test_a_label_of_a_waiting_pod_has_it_tried_afresh() -> None:
    small = SmallCluster(pod("lone"))
    waiting = fail_twice(small)

    small.change(lambda mutation: mutation.put(replace(small.pod("lone"), labels={"app": "web"})))

    row = small.cluster.queue.rows[waiting]
    assert (row.state, row.attempts) == (UnitState.ACTIVE, 0)


def test_a_failed_binding_counts_no_more_once_the_node_has_changed() -> None:
    node = Node(name="node", allocatable={"cpu": "1"})
    small = SmallCluster(node, pod("lone"))
    ordinal = small.pod("lone").ordinal
    small.cluster.failed_bindings.note(ordinal, "node", small.now_us + 300 * SECOND_US)

    small.change(lambda mutation: mutation.put(replace(node, allocatable={"cpu": "2"})))

    assert ordinal not in small.cluster.failed_bindings


def fail_twice(small: SmallCluster) -> ObjectKey:
    """The unit of the pod "lone" after two failures in a row; its key."""
    queue = small.cluster.queue
    key = small.pod("lone").key
    for _ in range(2):
        queue.failed(key, small.now_us, ("INSUFFICIENT_CPU",), "no room")
    return key
