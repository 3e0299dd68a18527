"""Any number of rows goes in statements that have room for some: none is lost, none is written twice."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.store.bulk import Act, Statement
from muster.store.sqlite_bulk import ROWS_A_STATEMENT, _executions
from muster.store.store import SqlStore, open_store
from muster.store.tables import POD_CHANGES, pods
from tests.contract.ledger import Ledger, gang

COUNTS = (1, 2, 3, 4, 5, 63, 64, 65, 256, 257, 300, 600)
ROW = (1, 0, "default", "a", "u", 1, 1, 0, None, None, "", "", "", 1, 1, 1)


@pytest.mark.parametrize("count", COUNTS)
def test_as_many_pods_as_there_are_come_change_and_go(ledger: Ledger, count: int) -> None:
    other = ledger.committed_add(gang("other", 3))

    made = ledger.committed_add(gang("a", count))
    assert list(ledger.objects().values()) == [*other, *made]

    changed = ledger.committed_change(
        [replace(pod, node_name=f"node-{place % 7}") for place, pod in enumerate(made)]
    )
    assert list(ledger.objects().values()) == [*other, *changed]

    ledger.committed_remove(changed)
    assert list(ledger.objects().values()) == other


def test_gangs_of_all_sizes_share_a_commit(store: SqlStore, ledger: Ledger) -> None:
    writes = ledger.writes()
    made = [pod for size in (70, 3, 65, 1, 300) for pod in ledger.add(writes, gang(f"of-{size}", size))]

    store.commit([writes])

    assert list(ledger.objects().values()) == made


@pytest.mark.parametrize("every", [1, 2, 1000])
def test_many_pods_come_of_which_some_have_what_others_lack(ledger: Ledger, every: int) -> None:
    pods = [
        replace(
            pod,
            deletion_us=None if place % every else place,
            gates=() if place % every else ("50%", "\\N"),
            node_name="" if place % every else "100%\t",
        )
        for place, pod in enumerate(gang("a", 1000))
    ]

    made = ledger.committed_add(pods)

    assert list(ledger.objects().values()) == made


@pytest.mark.parametrize("act", [Act.UPDATE, Act.DELETE])
@pytest.mark.parametrize("count", ROWS_A_STATEMENT)
def test_sqlite_finds_what_it_changes_by_key(tmp_path: Path, act: Act, count: int) -> None:
    rows = [(*ROW[:1], place, *ROW[2:]) for place in range(count)]
    statement = (
        Statement.of_rows(act, pods, [row[:2] for row in rows])
        if act is Act.DELETE
        else Statement(act, pods, [list(zip(*rows, strict=True))], POD_CHANGES)
    )
    store = open_store(f"sqlite:///{tmp_path / 'm.db'}")
    with store._database.read() as connection:
        plans = [
            step[3]
            for text, (values, *_) in _executions(statement)
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
        ]
    store.close()

    searches = {plan for plan in plans if "pods" in plan}
    assert searches == {"SEARCH pods USING PRIMARY KEY (cluster_id=? AND ordinal=?)"}
