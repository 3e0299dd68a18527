"""One commit names the same pods again and again: as they come, are bound and go, and in the decisions on them."""

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from muster.core.decision import Assignments
from muster.engine.ports import AssignmentColumns, ClusterWrites, DecisionRecord
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from muster.store.store import SqlStore
from tests.contract.ledger import Ledger, gang
from tests.contract.samples import POD_GROUP
from tests.contract.test_decisions import RECORD

SIZE = 300


def _gang(name: str = "g", size: int = SIZE) -> list[Pod]:
    """Pods with uids as they mostly are."""
    chance = random.Random(name)
    return [
        replace(pod, uid=str(uuid.UUID(int=chance.getrandbits(128), version=4))) for pod in gang(name, size)
    ]


def _bind(ledger: Ledger, writes: ClusterWrites, pods: Sequence[Pod]) -> list[Pod]:
    """A revision that binds them in this order, with one status."""
    status = PodStatus(message=f"after {writes.revision}")
    return ledger.change(
        writes,
        [replace(pod, node_name=f"node-{place // 3}", status=status) for place, pod in enumerate(pods)],
    )


def _decide(writes: ClusterWrites, pods: Sequence[Pod], decision_id: str) -> DecisionRecord:
    """Add a record that assigns them in this order."""
    nodes, index = ("n1", "n2"), tuple(place % 2 for place in range(len(pods)))
    core = Assignments(tuple(pod.ordinal for pod in pods), nodes, index)
    names, uids = tuple(pod.name for pod in pods), tuple(pod.uid for pod in pods)
    record = replace(
        RECORD,
        id=decision_id,
        decision=replace(RECORD.decision, assignments=core),
        assignments=AssignmentColumns("default", nodes, names, uids, index),
    )
    writes.decisions.append(record)
    return record


def _by_key(pods: Sequence[Pod]) -> dict[str, Pod]:
    return {str(pod.key): pod for pod in pods}


def _turned(pods: Sequence[Pod]) -> list[Pod]:
    """In another order, between the same first and last."""
    return [pods[0], *pods[-2:0:-1], pods[-1]]


ORDERS: dict[str, Callable[[list[Pod]], list[Pod]]] = {
    "the same": list,
    "turned round": lambda pods: pods[::-1],
    "turned between first and last": _turned,
    "the first part": lambda pods: pods[:200],
    "a part in the middle": lambda pods: pods[100:250],
    "the last few": lambda pods: pods[-5:],
    "every other": lambda pods: pods[::2],
}


@pytest.mark.parametrize("order", ORDERS)
def test_pods_that_come_and_are_bound_in_one_commit_are_logged_as_both_and_stored_as_bound(
    store: SqlStore, ledger: Ledger, order: str
) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, _gang())
    bound = _bind(ledger, writes, ORDERS[order](made))
    record = _decide(writes, bound, "decision")

    ledger.commit(writes)

    assert store.read_log("main", 0, 10) == writes.entries
    assert ledger.objects() == {**_by_key(made), **_by_key(bound)}
    assert store.get_decision("main", "decision") == record


def test_pods_of_gangs_that_are_bound_by_parts_of_each_other_are_stored_as_bound_last(
    store: SqlStore, ledger: Ledger
) -> None:
    before = ledger.committed_add(_gang("before", 100))
    writes = ledger.writes()
    one, other = ledger.add(writes, _gang("one")), ledger.add(writes, _gang("other", 70))
    first = _bind(ledger, writes, [*one[:200], *before[:50]])
    second = _bind(ledger, writes, [*first[150:], *other[::-1]])
    third = _bind(ledger, writes, [second[3], other[7]])

    ledger.commit(writes)

    assert store.read_log("main", 1, 10) == writes.entries
    assert ledger.objects() == {
        key: pod for pods in (before, one, other, first, second, third) for key, pod in _by_key(pods).items()
    }


def test_pods_that_go_in_the_commit_in_which_they_came_are_in_the_log_alone(
    store: SqlStore, ledger: Ledger
) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, _gang())
    bound = _bind(ledger, writes, made)
    ledger.remove(writes, bound[100:200])
    again = ledger.add(writes, _gang()[120:140])
    ledger.commit(writes)

    assert store.read_log("main", 0, 10) == writes.entries
    assert ledger.objects() == _by_key([*bound[:100], *again, *bound[200:]])


def test_groups_may_stand_between_the_pods_of_an_entry(store: SqlStore, ledger: Ledger) -> None:
    pods = _gang()
    writes = ledger.writes()
    mixed: list[ClusterObject] = [POD_GROUP, *pods[:100], replace(POD_GROUP, name="other"), *pods[100:]]
    made = ledger.add(writes, mixed)
    ledger.change(writes, [*made[1:101], made[0], *made[102:]])
    ledger.change(writes, [made[0]])

    ledger.commit(writes)

    assert store.read_log("main", 0, 10) == writes.entries
    assert ledger.objects() == {str(one.key): one for one in writes.puts.values()}


def test_a_pod_that_no_entry_has_is_stored(ledger: Ledger) -> None:
    made = ledger.committed_add(_gang())
    writes = ledger.writes()
    bound = _bind(ledger, writes, made[:100])
    unlogged = replace(made[200], node_name="elsewhere")
    writes.puts[unlogged.key] = unlogged

    ledger.commit(writes)

    assert ledger.objects() == {**_by_key(made), **_by_key([*bound, unlogged])}


def test_decisions_on_the_same_pods_in_another_order_keep_their_own(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, _gang())
    renamed = [replace(pod, uid=f"{pod.uid}-other") for pod in made]
    orders = [made, made[::-1], _turned(made), made[:-1], [made[1], *made[1:]], renamed, made]

    records = [_decide(writes, pods, f"decision-{place}") for place, pods in enumerate(orders)]
    ledger.commit(writes)

    assert [store.get_decision("main", record.id) for record in records] == records
