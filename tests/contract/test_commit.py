"""A commit happens whole or not at all, for the owner alone, and is known to have happened or not."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import create_engine

from muster.engine.ports import (
    FailedBinding,
    FencedError,
    OldHistory,
    PreemptionWait,
    RequestRecord,
    StoreUnavailableError,
    UnusedValues,
)
from muster.model.pod import Pod
from muster.store.store import SqlStore, open_store
from muster.store.tables import TABLES_OF_A_CLUSTER, clusters
from muster.store.values import KEYS_IN_A_QUERY
from tests.contract.ledger import Ledger, gang
from tests.contract.samples import EVERY_KIND
from tests.contract.test_decisions import RECORD
from tests.contract.test_queue import GROUP, MEMBER, UNIT


def _everything(ledger: Ledger, store: SqlStore) -> None:
    """Commit something to every table."""
    writes = ledger.writes()
    ledger.add(writes, EVERY_KIND)
    writes.unit_puts[UNIT.key] = UNIT
    writes.pending_group_puts[GROUP.key] = GROUP
    writes.pending_member_puts[MEMBER.key] = MEMBER
    writes.wait_puts[UNIT.key] = PreemptionWait(UNIT.key, pods=(1,))
    writes.failed_binding_puts[1, "node"] = FailedBinding(1, "node", 5)
    writes.decisions.append(RECORD)
    writes.requests.append(RequestRecord("Apply", "id", b"", b"", 1))
    store.commit([writes])


def _rows(url: str) -> dict[str, int]:
    engine = create_engine(url)
    with engine.connect() as connection:
        counted = {
            table.name: len(connection.execute(table.select()).all())
            for table in (clusters, *TABLES_OF_A_CLUSTER)
        }
    engine.dispose()
    return counted


def test_a_commit_that_fails_leaves_nothing(store: SqlStore, store_url: str, ledger: Ledger) -> None:
    _everything(ledger, store)
    before = _rows(store_url)
    writes = ledger.writes()
    ledger.add(writes, gang("a", 600))
    writes.requests.append(RequestRecord("Apply", "other", b"", b"", 1))
    writes.decisions.append(RECORD)

    with pytest.raises(FencedError):
        ledger.commit(writes)

    assert _rows(store_url) == before


def test_a_commit_works_after_one_that_failed(store: SqlStore, ledger: Ledger) -> None:
    made = ledger.committed_add(gang("a", 2))
    writes = ledger.writes()
    ledger.add(writes, gang("a", 2))
    with pytest.raises(FencedError):
        ledger.commit(writes)
    ledger.revision = store.load_cluster("main").revision

    added = ledger.committed_add(gang("b", 2))

    assert list(ledger.objects().values()) == [*made, *added]


def test_a_full_disk_refuses_a_commit_and_the_next_one_works(sqlite_database: str) -> None:
    store = open_store(sqlite_database)
    ledger = Ledger(store)
    made = ledger.committed_add(gang("a", 2))
    writes = ledger.writes()
    ledger.add(writes, gang("b", 5000))
    _limit_pages(store, 100)
    with pytest.raises(StoreUnavailableError, match="full"):
        ledger.commit(writes)
    assert list(ledger.objects().values()) == made
    _limit_pages(store, 1_000_000)

    ledger.commit(writes)

    assert len(ledger.objects()) == 5002
    store.close()


def _limit_pages(store: SqlStore, pages: int) -> None:
    with store._database.write() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar_one()


def test_one_failing_cluster_fails_the_commit_of_all(store: SqlStore) -> None:
    good, bad = Ledger(store, "good"), Ledger(store, "bad")
    store.acquire("bad")
    good_writes, bad_writes = good.writes(), bad.writes()
    good.add(good_writes, gang("a", 1))
    bad.add(bad_writes, gang("a", 1))

    with pytest.raises(FencedError):
        store.commit([good_writes, bad_writes])

    assert store.list_clusters() == []


def test_clusters_that_share_commits_keep_their_own_pods_and_revisions(store: SqlStore) -> None:
    ledgers = [Ledger(store, name) for name in ("plain", 'with "quotes" and \\', "{of, an, array}")]
    made: dict[str, list[Pod]] = {}
    for size, ledger in enumerate(ledgers):
        made[ledger.cluster] = [
            pod for turn in range(size) for pod in ledger.committed_add(gang(f"{turn}", 1))
        ]
    batch = [ledger.writes() for ledger in ledgers]
    for ledger, writes in zip(ledgers, batch, strict=True):
        made[ledger.cluster] += ledger.add(writes, gang("last", 2))

    store.commit(batch)

    assert {ledger.cluster: list(ledger.objects().values()) for ledger in ledgers} == made
    assert [store.load_cluster(ledger.cluster).revision for ledger in ledgers] == [1, 2, 3]


def test_a_change_of_a_pod_that_is_not_there_is_refused(ledger: Ledger) -> None:
    made = ledger.committed_add(gang("a", 2))
    writes = ledger.writes()
    ledger.change(writes, [made[0], replace(made[1], ordinal=77)])

    with pytest.raises(FencedError):
        ledger.commit(writes)

    assert list(ledger.objects().values()) == made


def test_a_revision_never_goes_back(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add([])
    ledger.committed_add([])
    ledger.revision = 0
    writes = ledger.writes()
    writes.created = False
    ledger.add(writes, [])

    with pytest.raises(FencedError):
        ledger.commit(writes)

    assert store.load_cluster("main").revision == 2


def test_each_acquisition_raises_the_token_by_one(store_url: str) -> None:
    tokens = []
    for _ in range(2):
        store = open_store(store_url)
        tokens += [store.acquire("main"), store.acquire("main"), store.acquire("other")]
        store.close()

    assert tokens == [1, 2, 1, 3, 4, 2]


def test_clusters_that_are_acquired_together_each_have_their_token_raised(store: SqlStore) -> None:
    store.acquire("main")
    many = [f"c{number:04}" for number in range(KEYS_IN_A_QUERY + 1)]

    tokens = store.acquire_all(["main", *many])
    again = store.acquire_all(many)

    assert tokens == {"main": 2} | dict.fromkeys(many, 1)
    assert again == dict.fromkeys(many, 2)
    assert store.acquire("main") == 3


@pytest.mark.parametrize("act", ["commit", "forget_old", "forget_unused", "delete"])
def test_an_owner_that_was_replaced_changes_nothing(store: SqlStore, act: str) -> None:
    old = Ledger(store)
    made = old.committed_add(gang("a", 1))
    store.acquire("main")
    writes = old.writes()
    old.add(writes, gang("b", 1))
    acts: dict[str, Callable[[], object]] = {
        "commit": lambda: old.commit(writes),
        "forget_old": lambda: store.forget_old("main", old.token, OldHistory(log_to=1)),
        "forget_unused": lambda: store.forget_unused("main", old.token, UnusedValues(1)),
        "delete": lambda: store.delete_cluster("main", old.token),
    }

    with pytest.raises(FencedError):
        acts[act]()

    assert list(old.objects().values()) == made
    assert store.compacted_revision("main") == 0


def test_a_deleted_cluster_leaves_no_row(store: SqlStore, store_url: str, ledger: Ledger) -> None:
    _everything(ledger, store)
    full = _rows(store_url)

    store.delete_cluster("main", ledger.token)

    assert [name for name, count in full.items() if count == 0] == []
    assert [name for name, count in _rows(store_url).items() if count] == []
    assert store.list_clusters() == []


def test_a_deleted_cluster_can_be_made_again_by_its_owner(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add(gang("a", 2))
    store.delete_cluster("main", ledger.token)
    ledger.revision = 0

    made = ledger.committed_add(gang("b", 1))

    assert list(ledger.objects().values()) == made
    assert [entry.revision for entry in store.read_log("main", 0, 10)] == [1]


def test_an_owner_before_the_deletion_is_none_after_it(store: SqlStore) -> None:
    old = Ledger(store)
    old.committed_add(gang("a", 1))
    new = Ledger(store)
    store.delete_cluster("main", new.token)
    old.revision = 0
    writes = old.writes()
    old.add(writes, gang("a", 1))

    with pytest.raises(FencedError):
        old.commit(writes)


def test_readers_see_whole_commits_while_the_writer_writes(store: SqlStore, ledger: Ledger) -> None:
    made = ledger.committed_add(gang("a", 50))
    seen: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or not seen:
            loaded = store.load_cluster("main").objects
            seen.append({one.node_name for one in loaded if isinstance(one, Pod)})

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        made = ledger.committed_change([replace(pod, node_name=f"node-{number}") for pod in made])
    done.set()
    reader.join()

    assert {len(names) for names in seen} == {1}
