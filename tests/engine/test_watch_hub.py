"""Feeds of revisions and decisions: what a watcher gets, in which batches, from the store and from the ring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import DecisionBatch, DecisionFilter, ObjectFilter, WatchBatch
from muster.engine.errors import ResourceExhaustedError, UnavailableError
from muster.engine.log_entries import Change, EventType, LogEntry
from muster.engine.ports import DecisionRecord
from muster.engine.selection import anything
from muster.engine.watch_hub import DecisionFeed, RevisionFeed
from muster.model.meta import NODE, POD, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod

Batch = TypeVar("Batch", WatchBatch, DecisionBatch)
PODS = ObjectFilter(frozenset({POD}))


def _changed(name: str, namespace: str = "default") -> Change:
    return Change(EventType.MODIFIED, Pod(name=name, namespace=namespace))


def _entry(revision: int, *changes: Change) -> LogEntry:
    return LogEntry.of(revision, revision * 1_000, changes)


@dataclass
class Log:
    """What the store holds, and a feed that begins at its end. `while_reading` happens during the next read."""

    entries: list[LogEntry] = field(default_factory=list)
    most_changes: int = 200_000
    reads: int = 0
    while_reading: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        revision = self.entries[-1].revision if self.entries else 0
        self.feed = RevisionFeed(revision, self._read, self.most_changes)

    def commit(self, *entries: LogEntry) -> None:
        self.entries += entries
        self.feed.publish(entries)

    def watch(self, from_revision: int, selection: ObjectFilter = PODS) -> AsyncIterator[WatchBatch]:
        def in_namespace(item: object) -> bool:
            return getattr(item, "namespace", "") == "default"

        return self.feed.changes(selection, in_namespace, from_revision)

    async def _read(self, after: int, limit: int) -> list[LogEntry]:
        self.reads += 1
        found = [entry for entry in self.entries if entry.revision > after][:limit]
        meanwhile, self.while_reading = self.while_reading, None
        await asyncio.sleep(0)
        if meanwhile is not None:
            meanwhile()
        return found


def _names(batch: WatchBatch) -> list[str]:
    return [each.name for each in batch.objects]


async def _until(batches: AsyncIterator[Batch], revision: int) -> list[Batch]:
    """All batches up to the one that reaches the revision."""
    got: list[Batch] = []
    async for batch in batches:
        got.append(batch)
        if batch.revision >= revision:
            return got
    raise AssertionError("a watch ended")


async def test_a_watcher_gets_what_is_published_after_its_revision() -> None:
    log = Log()
    log.commit(_entry(1, _changed("a")), _entry(2, _changed("b")))
    watch = log.watch(1)

    first = await anext(watch)
    upcoming = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert not upcoming.done()
    log.commit(_entry(3, _changed("c")))

    assert (_names(first), first.revision) == (["b"], 2)
    assert (_names(await upcoming), upcoming.result().revision) == (["c"], 3)
    assert log.reads == 0


async def test_a_watcher_behind_the_ring_reads_the_store_first_and_misses_nothing() -> None:
    log = Log([_entry(revision, _changed(f"p{revision}")) for revision in range(1, 251)])
    log.commit(_entry(251, _changed("p251")))

    got = await _until(log.watch(10), 251)

    assert [name for batch in got for name in _names(batch)] == [f"p{n}" for n in range(11, 252)]


async def test_what_leaves_the_ring_while_the_store_reads_is_not_missed() -> None:
    log = Log([_entry(3, _changed("p3"))], most_changes=4)
    log.entries.clear()
    watch = log.watch(2)
    log.while_reading = lambda: log.commit(*(_entry(n, _changed(f"p{n}")) for n in range(4, 10)))

    got = await _until(watch, 9)

    assert [name for batch in got for name in _names(batch)] == [f"p{n}" for n in range(4, 10)]


async def test_a_revision_that_spans_batches_moves_the_revision_with_its_last() -> None:
    log = Log()
    log.commit(_entry(1, _changed("a")), _entry(2, *(_changed(f"p{n}") for n in range(450))))

    got = await _until(log.watch(0), 2)

    assert [(len(batch.objects), batch.revision) for batch in got] == [
        (1, 0 + 1),
        (200, 1),
        (200, 1),
        (50, 2),
    ]


@pytest.mark.parametrize("kinds", [{POD}, {POD, NODE}], ids=["pods", "pods and nodes"])
async def test_who_wants_all_objects_of_a_kind_gets_them_in_order_and_no_others(kinds: set[str]) -> None:
    log = Log()
    pods = [Change(EventType.ADDED, Pod(name=f"p{number}")) for number in range(450)]
    node = Change(EventType.DELETED, Node(name="n"))
    log.commit(_entry(1, *pods), _entry(2, node), _entry(3, *pods[:2], node, *pods[2:4]))

    got = await _until(log.feed.changes(ObjectFilter(frozenset(kinds)), anything, 0), 3)

    expected = [
        change
        for change in (*pods, node, *pods[:2], node, *pods[2:4])
        if type(change.object) is Pod or NODE in kinds
    ]
    told = [each for batch in got for each in zip(batch.types, batch.objects, strict=True)]
    assert told == [(change.type, change.object) for change in expected]
    assert [len(batch.objects) for batch in got[:2]] == [200, 200]


async def test_revisions_share_a_batch_up_to_its_size() -> None:
    log = Log()
    log.commit(*(_entry(n, *(_changed(f"p{n}-{each}") for each in range(80))) for n in range(1, 4)))

    got = await _until(log.watch(0), 3)

    assert [(len(batch.objects), batch.revision) for batch in got] == [(160, 2), (80, 3)]


async def test_revisions_without_a_matching_change_come_as_one_batch() -> None:
    log = Log()
    log.commit(*(_entry(n, _changed("x", "elsewhere")) for n in range(1, 1_001)))

    got = await _until(log.watch(0), 1_000)

    assert got == [WatchBatch([], [], 1_000)]


async def test_others_run_while_a_watcher_looks_at_what_is_not_for_it() -> None:
    log = Log()
    log.commit(*(_entry(n, *(_changed("x", "elsewhere") for _ in range(100))) for n in range(1, 101)))
    upcoming = asyncio.ensure_future(anext(log.watch(0)))

    await asyncio.sleep(0)

    assert not upcoming.done()
    assert (await upcoming).revision == 100


async def test_other_kinds_are_left_out() -> None:
    log = Log()
    log.commit(_entry(1, _changed("a")))

    got = await _until(log.watch(0, ObjectFilter(frozenset({POD_GROUP}))), 1)

    assert got == [WatchBatch([], [], 1)]


@pytest.mark.parametrize(
    ("event", "before", "after", "seen"),
    [
        (EventType.ADDED, None, "web", EventType.ADDED),
        (EventType.ADDED, None, "db", None),
        (EventType.MODIFIED, None, "web", EventType.MODIFIED),
        (EventType.MODIFIED, None, "db", None),
        (EventType.MODIFIED, "web", "db", EventType.DELETED),
        (EventType.MODIFIED, "db", "web", EventType.ADDED),
        (EventType.MODIFIED, "db", "cache", None),
        (EventType.DELETED, None, "web", EventType.DELETED),
        (EventType.DELETED, None, "db", None),
    ],
)
async def test_a_selector_makes_those_who_leave_it_deleted_and_those_who_enter_it_added(
    event: EventType, before: str | None, after: str, seen: EventType | None
) -> None:
    log = Log()
    pod = Pod(name="p", namespace="default", labels={"app": after})
    log.commit(_entry(1, Change(event, pod, None if before is None else {"app": before})))
    selection = ObjectFilter(frozenset({POD}), matches_labels=lambda labels: labels.get("app") == "web")

    (batch,) = await _until(log.watch(0, selection), 1)

    assert list(batch.types) == ([] if seen is None else [seen])


async def test_a_watcher_that_falls_out_of_the_ring_is_cut_off_and_others_are_not() -> None:
    log = Log(most_changes=10)
    slow, quick = log.watch(0), log.watch(0)
    log.commit(_entry(1, _changed("a")))
    await anext(slow)
    for revision in range(2, 20):
        log.commit(_entry(revision, _changed("a")))
        await _until(quick, revision)

    with pytest.raises(ResourceExhaustedError) as refused:
        await anext(slow)

    assert refused.value.reason == "WATCHER_TOO_SLOW"


async def test_a_watcher_that_never_caught_up_may_be_as_slow_as_it_likes() -> None:
    log = Log([_entry(n, _changed(f"p{n}")) for n in range(1, 301)], most_changes=10)
    watch = log.watch(0)
    await anext(watch)
    log.commit(*(_entry(n, _changed(f"p{n}")) for n in range(301, 401)))

    got = await _until(watch, 400)

    assert _names(got[-1])[-1] == "p400"
    assert sum(len(batch.objects) for batch in got) == 300


async def test_a_failed_feed_ends_its_watches_with_the_refusal() -> None:
    log = Log()
    upcoming = asyncio.ensure_future(anext(log.watch(0)))
    await asyncio.sleep(0)

    log.feed.fail(UnavailableError("SERVER_DRAINING", "the server stops"))

    with pytest.raises(UnavailableError, match="the server stops"):
        await upcoming


def _record(revision: int, unit: str = "u", code: DecisionCode = DecisionCode.SCHEDULED) -> DecisionRecord:
    decision = Decision(ObjectKey(POD_GROUP, "default", unit), code)
    return DecisionRecord(str(revision), revision, revision - 1, decision)


async def test_decisions_come_from_the_store_then_from_the_feed_in_order() -> None:
    older = [_record(revision) for revision in (2, 4, 6)]

    async def read(after: int, limit: int) -> list[DecisionRecord]:
        return [record for record in older if record.revision > after][:limit]

    feed = DecisionFeed(7, read)
    feed.publish([_record(8)])

    got = await _until(feed.decisions(2, DecisionFilter()), 8)

    assert [record.revision for batch in got for record in batch.decisions] == [4, 6, 8]


async def test_decisions_that_are_not_selected_move_the_revision() -> None:
    async def read(after: int, limit: int) -> list[DecisionRecord]:
        raise AssertionError("the ring has it all")

    feed = DecisionFeed(0, read)
    failed = DecisionCode.UNSCHEDULABLE
    feed.publish([_record(1), _record(2, "v"), _record(3, code=failed), _record(4, "v", failed)])
    key = ObjectKey(POD_GROUP, "default", "u")

    by_unit = await _until(feed.decisions(0, DecisionFilter(unit=key)), 4)
    by_code = await _until(feed.decisions(0, DecisionFilter(codes=frozenset({"SCHEDULED"}))), 4)
    neither = await _until(feed.decisions(3, DecisionFilter(unit=key)), 4)

    assert [record.revision for batch in by_unit for record in batch.decisions] == [1, 3]
    assert [record.revision for batch in by_code for record in batch.decisions] == [1, 2]
    assert neither == [DecisionBatch((), 4)]


async def test_a_watcher_is_told_of_what_was_committed_though_nobody_heard_of_it() -> None:
    log = Log()
    log.commit(_entry(1, _changed("told")))
    watcher = log.watch(0)
    assert _names(await anext(watcher)) == ["told"]

    log.entries.append(_entry(2, _changed("unheard-of")))
    log.feed.restart(2)
    log.commit(_entry(3, _changed("later")))

    assert [name for batch in await _until(watcher, 3) for name in _names(batch)] == ["unheard-of", "later"]


async def test_what_came_long_ago_leaves_the_ring_and_is_read_from_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    log.commit(_entry(1, _changed("old")))
    monkeypatch.setattr("muster.engine.watch_hub.KEPT_SECONDS", -1.0)
    log.commit(_entry(2, _changed("new")))

    batches = await _until(log.watch(0), 2)

    assert [name for batch in batches for name in _names(batch)] == ["old", "new"]
    assert log.reads == 1
    assert log.feed._ring.start == 1
