"""The log gives back each revision, whatever became of its objects, until it is compacted."""

from dataclasses import replace

import pytest
from sqlalchemy import create_engine, func, select, table, text

from muster.engine.log_entries import Change, EventType, LogEntry
from muster.engine.ports import HistoryBounds, OldHistory
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from muster.store import compaction, values
from muster.store.store import SqlStore
from tests.contract.ledger import Ledger, gang
from tests.contract.samples import EVERY_KIND, NODE, POD_GROUP


def _count(url: str, name: str) -> int:
    engine = create_engine(url)
    with engine.connect() as connection:
        counted = connection.execute(select(func.count()).select_from(table(name))).scalar_one()
    engine.dispose()
    return int(counted)


def _compact(ledger: Ledger, before: int) -> None:
    ledger.compact(HistoryBounds(log_before_revision=before))


def test_the_log_has_every_change_as_it_was_written(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, EVERY_KIND)
    changed = ledger.change(writes, [replace(one, labels={}) for one in made])
    ledger.remove(writes, changed)
    ledger.commit(writes)

    assert store.read_log("main", 0, 10) == writes.entries


def test_the_order_of_changes_in_a_revision_is_kept(store: SqlStore, ledger: Ledger) -> None:
    pods = gang("g", 4)
    mixed: list[ClusterObject] = [
        pods[0],
        NODE,
        POD_GROUP,
        pods[1],
        pods[2],
        replace(NODE, name="other"),
        pods[3],
    ]
    made = ledger.committed_add(mixed)

    (entry,) = store.read_log("main", 0, 10)

    assert [change.object for change in entry.changes] == made


def test_a_revision_without_changes_is_an_entry(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add([])

    assert store.read_log("main", 0, 10) == [LogEntry(1, 1, [], [])]


def test_labels_before_a_change_are_kept(store: SqlStore, ledger: Ledger) -> None:
    pods = ledger.committed_add(gang("g", 3))
    (node,) = ledger.committed_add([NODE])
    writes = ledger.writes()
    everything: list[ClusterObject] = [*pods, node]
    ledger.change(writes, everything)
    labels: dict[int, dict[str, str]] = {1: {"was": "here"}, 2: {}, 3: {"rack": "r1"}}
    writes.entries[0] = replace(writes.entries[0], previous_labels=labels)

    ledger.commit(writes)

    changes = list(store.read_log("main", 2, 1)[0].changes)
    assert [change.previous_labels for change in changes] == [None, *labels.values()]


def test_a_revision_of_many_pods_on_many_nodes_comes_back(store: SqlStore, ledger: Ledger) -> None:
    made = ledger.committed_add(gang("g", 1000))
    bound = [
        replace(pod, node_name=f"node-{place % 77}", deletion_us=place or None, gates=("x",) * (place % 3))
        for place, pod in enumerate(made)
    ]

    bound = ledger.committed_change(bound)

    entry = store.read_log("main", 1, 1)[0]
    assert list(entry.changes) == [Change(EventType.MODIFIED, pod) for pod in bound]


def test_pods_of_the_log_share_values_by_reference(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add(gang("g", 3))

    pods = [change.object for change in store.read_log("main", 0, 1)[0].changes]

    assert len({id(pod.spec) for pod in pods if isinstance(pod, Pod)}) == 1


def test_the_log_is_read_in_pieces(store: SqlStore, ledger: Ledger) -> None:
    for name in "abcde":
        ledger.committed_add(gang(name, 1))

    read = [[entry.revision for entry in store.read_log("main", after, 2)] for after in (0, 2, 4, 5)]

    assert read == [[1, 2], [3, 4], [5], []]


def test_a_revision_that_binds_10000_pods_takes_some_hundred_kib(
    store: SqlStore, store_url: str, ledger: Ledger
) -> None:
    made = ledger.committed_add(
        [
            replace(pod, uid=f"0f8fad5b-d9cb-469f-a165-{place:012x}")
            for place, pod in enumerate(gang("g", 10_000))
        ]
    )
    ledger.committed_change(
        [replace(pod, node_name=f"node-{place % 5000}") for place, pod in enumerate(made)]
    )

    engine = create_engine(store_url)
    with engine.connect() as connection:
        longest = connection.execute(text("SELECT max(length(body)) FROM revisions")).scalar_one()
    engine.dispose()
    assert longest < 400 * 1024


def test_compaction_forgets_what_is_below_and_says_so(store: SqlStore, ledger: Ledger) -> None:
    for name in "abcd":
        ledger.committed_add(gang(name, 1))

    _compact(ledger, 3)

    assert store.compacted_revision("main") == 2
    assert store.load_cluster("main").compacted_revision == 2
    assert [entry.revision for entry in store.read_log("main", 0, 10)] == [3, 4]


def test_compaction_forgets_what_is_of_before_a_time(store: SqlStore, ledger: Ledger) -> None:
    for name in "abcd":
        ledger.committed_add(gang(name, 1))
    third = store.read_log("main", 2, 1)[0]

    ledger.compact(HistoryBounds(log_before_us=third.time_us))

    assert [entry.revision for entry in store.read_log("main", 0, 10)] == [3, 4]


def test_compaction_is_done_in_slices_whatever_they_are_of(
    store: SqlStore, store_url: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "ENTRIES_AT_ONCE", 2)
    monkeypatch.setattr(compaction, "VALUES_AT_ONCE", 2)
    for number in range(5):
        pod = replace(gang("a", 1)[0], name=f"a-{number}", labels={"own": str(number)})
        ledger.committed_remove(ledger.committed_add([pod]))

    slices = ledger.compact(HistoryBounds(log_before_revision=100))

    counts = [_count(store_url, name) for name in ("revisions", "pod_metadata", "pod_specs", "pod_statuses")]
    assert counts == [0, 0, 0, 0]
    assert store.compacted_revision("main") == 10
    assert slices == 5 + 3 + 1 + 1


def test_a_value_that_is_used_again_before_it_is_forgotten_stays(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_remove(ledger.committed_add(gang("a", 1)))
    store.forget_old("main", ledger.token, OldHistory(log_to=2))
    unused = store.find_unused("main")
    assert unused is not None

    again = ledger.committed_add(gang("a", 1))
    while unused is not None:
        unused = store.forget_unused("main", ledger.token, unused)

    assert list(ledger.objects().values()) == again
    assert [change.object for change in store.read_log("main", 2, 10)[0].changes] == again


def test_values_of_a_log_that_is_read_in_many_looks_are_in_use(
    store: SqlStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "ENTRIES_READ_AT_ONCE", 2)
    for number in range(3):
        pod = replace(gang("a", 1)[0], name=f"a-{number}", labels={"own": str(number)})
        ledger.committed_remove(ledger.committed_add([pod]))
    store.forget_old("main", ledger.token, OldHistory(log_to=2))

    unused = store.find_unused("main")

    assert unused is not None
    assert unused.revision == 6
    assert [len(unused.specs), len(unused.metadata), len(unused.statuses)] == [0, 1, 0]


def test_a_value_that_was_forgotten_is_stored_again_by_who_knew_it(store: SqlStore, ledger: Ledger) -> None:
    kept = ledger.committed_add(gang("kept", 1))
    lost = [replace(gang("a", 1)[0], labels={"own": "label"})]
    ledger.committed_remove(ledger.committed_add(lost))
    ledger.compact(HistoryBounds(log_before_revision=100))

    again = ledger.committed_add([replace(lost[0], name="b")])
    more = ledger.committed_add([replace(kept[0], name="c")])

    assert list(ledger.objects().values()) == [*kept, *again, *more]


def test_compaction_never_goes_beyond_the_end_nor_back(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add(gang("a", 1))
    _compact(ledger, 100)

    _compact(ledger, 1)

    assert store.compacted_revision("main") == 1
    assert store.read_log("main", 0, 10) == []


def test_compaction_keeps_what_pods_and_the_kept_log_refer_to(store: SqlStore, ledger: Ledger) -> None:
    (living,) = ledger.committed_add(gang("living", 1))
    (gone,) = ledger.committed_add(gang("gone", 1))
    (gone,) = ledger.committed_change([replace(gone, status=PodStatus("Running", message="last seen"))])
    ledger.committed_remove([gone])

    _compact(ledger, 4)

    assert list(ledger.objects().values()) == [living]
    assert list(store.read_log("main", 0, 10)[0].changes) == [Change(EventType.DELETED, gone)]


def test_compaction_removes_values_that_nothing_refers_to(
    store: SqlStore, store_url: str, ledger: Ledger
) -> None:
    made = ledger.committed_add(gang("gone", 1))
    ledger.committed_add(gang("living", 1))
    ledger.committed_remove(made)

    _compact(ledger, 4)

    assert [_count(store_url, name) for name in ("pod_metadata", "pod_specs", "pod_statuses")] == [1, 1, 1]


def test_a_value_that_was_removed_is_stored_again_when_it_is_needed(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_remove(ledger.committed_add(gang("a", 1)))
    _compact(ledger, 3)

    again = ledger.committed_add(gang("a", 1))

    assert list(ledger.objects().values()) == again


def test_values_beyond_what_is_remembered_are_found_in_the_store(
    store: SqlStore, store_url: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "KNOWN_OBJECTS", 2)
    monkeypatch.setattr(values, "KNOWN_DIGESTS", 2)
    for name in "abcabc":
        ledger.committed_add([replace(pod, name=f"{name}-{ledger.revision}") for pod in gang(name, 1)])

    assert _count(store_url, "pod_metadata") == 3
    assert len(ledger.objects()) == 6


def test_what_is_not_beyond_the_bounds_costs_no_transaction(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add(gang("a", 1))
    bounds = HistoryBounds(log_before_revision=2)
    before = store.find_old("main", bounds)
    ledger.compact(bounds)

    assert before == OldHistory(log_to=1)
    assert store.find_old("main", bounds) is None
