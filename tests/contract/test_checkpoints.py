"""Checkpoints of a real SQLite file beside its writer."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from muster.store import checkpoints
from muster.store.checkpoints import Checkpoints

SOON = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """Makes no checkpoints itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE words (word TEXT)")
        yield connection


@pytest.fixture
def made(path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkpoints]:
    monkeypatch.setattr(checkpoints, "PAUSE_SECONDS", 0.01)
    made = Checkpoints(str(path))
    made.start()
    yield made
    made.stop()


def write_much(writer: sqlite3.Connection) -> None:
    writer.executemany("INSERT INTO words VALUES (?)", [("word" * 1_000,)] * 100)


def becomes_true(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + SOON
    while not (is_true := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return is_true


def test_what_was_written_is_copied_into_the_database_without_its_writer(
    path: Path, writer: sqlite3.Connection, made: Checkpoints
) -> None:
    before = path.stat().st_size

    write_much(writer)
    made.written()

    assert becomes_true(lambda: path.stat().st_size > before + 100_000)


def test_the_log_begins_anew_again_and_again(
    path: Path, writer: sqlite3.Connection, made: Checkpoints
) -> None:
    log = Path(f"{path}-wal")

    def begins_anew() -> bool:
        before = log.stat().st_size
        write_much(writer)
        made.written()
        return log.stat().st_size <= before

    assert [becomes_true(begins_anew) for _ in range(5)] == [True] * 5


def test_a_transaction_goes_on_while_a_checkpoint_is_made(
    path: Path, writer: sqlite3.Connection, made: Checkpoints
) -> None:
    write_much(writer)
    before = path.stat().st_size
    writer.execute("BEGIN IMMEDIATE")
    made.written()

    assert becomes_true(lambda: path.stat().st_size > before)
    writer.execute("INSERT INTO words VALUES ('more')")
    writer.execute("COMMIT")


def test_stopping_waits_for_nothing_that_may_never_come(made: Checkpoints) -> None:
    began = time.monotonic()

    made.stop()

    assert time.monotonic() - began < SOON


def test_a_checkpoint_begins_behind_a_commit_if_another_comes_soon(
    path: Path, writer: sqlite3.Connection, made: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_copied_behind_another_commit() -> bool:
        made.written()
        return path.stat().st_size > before

    monkeypatch.setattr(checkpoints, "COMMIT_SECONDS", 2 * SOON)
    write_much(writer)
    before = path.stat().st_size
    made.written()
    # Ten times the pause between checkpoints, in which one that waits for no commit would have been made.
    time.sleep(0.1)

    assert path.stat().st_size == before
    assert becomes_true(is_copied_behind_another_commit)
