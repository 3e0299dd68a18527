"""A restart finds the queue as it was, but for what was in a worker's hands."""

from dataclasses import replace

import pytest

from muster.engine.ports import (
    FailedBinding,
    PendingGroup,
    PendingMember,
    PreemptionWait,
    QueuedUnit,
    UnitState,
)
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_GROUP, ObjectKey
from muster.store.store import SqlStore, open_store
from tests.contract.ledger import Ledger
from tests.contract.samples import AWKWARD

UNIT = QueuedUnit(
    ObjectKey(POD_GROUP, "default", "group"), UnitState.BACKOFF, -9, 1, 2, 3, 4, ("Code", AWKWARD), AWKWARD
)
ROOT = ObjectKey(COMPOSITE_POD_GROUP, "default", "root")
GROUP = PendingGroup(ObjectKey(POD_GROUP, "default", "group"), ROOT)
MEMBER = PendingMember(ObjectKey(POD, "default", "pod"), ROOT)
FAILED = FailedBinding(9 << 40, AWKWARD, 1_700_000_000_000_000)
WAIT = PreemptionWait(UNIT.key, (1 << 20, (1 << 20) + 1, 9 << 40), 77, (5,))


@pytest.mark.parametrize("state", [state for state in UnitState if state is not UnitState.IN_FLIGHT])
def test_a_unit_comes_back_as_it_was(store: SqlStore, ledger: Ledger, state: UnitState) -> None:
    writes = ledger.writes()
    unit = replace(UNIT, state=state)
    writes.unit_puts[unit.key] = unit
    ledger.add(writes, [])

    ledger.commit(writes)

    assert store.load_cluster("main").units == [unit]


def test_a_unit_in_flight_comes_back_active(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    writes.unit_puts[UNIT.key] = replace(UNIT, state=UnitState.IN_FLIGHT)
    ledger.add(writes, [])

    ledger.commit(writes)

    assert store.load_cluster("main").units == [replace(UNIT, state=UnitState.ACTIVE)]


def test_the_queue_changes_without_a_new_revision(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add([])
    writes = ledger.writes()
    writes.unit_puts[UNIT.key] = UNIT
    ledger.commit(writes)
    writes = ledger.writes()
    writes.unit_puts[UNIT.key] = replace(UNIT, attempts=77, reasons=())

    ledger.commit(writes)

    loaded = store.load_cluster("main")
    assert loaded.units == [replace(UNIT, attempts=77, reasons=())]
    assert loaded.revision == 1


def test_a_unit_that_leaves_is_gone(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    other = replace(UNIT, key=UNIT.key._replace(name="other"))
    writes.unit_puts.update({UNIT.key: UNIT, other.key: other})
    ledger.add(writes, [])
    ledger.commit(writes)
    writes = ledger.writes()
    writes.unit_removals.add(UNIT.key)

    ledger.commit(writes)

    assert store.load_cluster("main").units == [other]


def test_pending_groups_and_members_survive_a_restart_and_move_on(store_url: str) -> None:
    store = open_store(store_url)
    ledger = Ledger(store)
    writes = ledger.writes()
    writes.pending_group_puts[GROUP.key] = GROUP
    writes.pending_member_puts[MEMBER.key] = MEMBER
    ledger.add(writes, [])
    ledger.commit(writes)
    store.close()

    store = open_store(store_url)
    held = store.load_cluster("main")
    ledger = Ledger(store)
    writes = ledger.writes()
    writes.pending_group_removals.add(GROUP.key)
    writes.pending_member_removals.add(MEMBER.key)
    ledger.commit(writes)
    moved_on = store.load_cluster("main")
    store.close()

    assert (held.pending_groups, held.pending_members) == ([GROUP], [MEMBER])
    assert (moved_on.pending_groups, moved_on.pending_members) == ([], [])


def test_what_a_pending_group_waits_for_may_change(store: SqlStore, ledger: Ledger) -> None:
    other = replace(GROUP, missing=ROOT._replace(name="higher"))
    for group in (GROUP, other):
        writes = ledger.writes()
        writes.pending_group_puts[group.key] = group
        ledger.add(writes, [])
        ledger.commit(writes)

    assert store.load_cluster("main").pending_groups == [other]


@pytest.mark.parametrize("wait", [WAIT, PreemptionWait(ROOT, stayed=(3, 2))], ids=["begun", "given up"])
def test_what_a_unit_waits_for_comes_back_as_it_was(
    store: SqlStore, ledger: Ledger, wait: PreemptionWait
) -> None:
    writes = ledger.writes()
    writes.wait_puts[wait.key] = wait
    ledger.add(writes, [])

    ledger.commit(writes)

    assert store.load_cluster("main").waits == [wait]


def test_a_wait_that_is_over_is_gone(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    writes.wait_puts[WAIT.key] = WAIT
    ledger.add(writes, [])
    ledger.commit(writes)
    writes = ledger.writes()
    writes.wait_removals.add(WAIT.key)

    ledger.commit(writes)

    assert store.load_cluster("main").waits == []


def test_failed_bindings_survive_a_restart_until_they_are_forgotten(store_url: str) -> None:
    store = open_store(store_url)
    ledger = Ledger(store)
    writes, other = ledger.writes(), FAILED._replace(node_name="other")
    writes.failed_binding_puts.update({each[:2]: each for each in (FAILED, other)})
    ledger.add(writes, [])
    ledger.commit(writes)
    writes = ledger.writes()
    writes.failed_binding_removals.add(other[:2])
    writes.failed_binding_puts[FAILED[:2]] = FAILED._replace(until_us=5)
    ledger.commit(writes)
    store.close()

    again = open_store(store_url)

    assert again.load_cluster("main").failed_bindings == [FAILED._replace(until_us=5)]
    again.close()
