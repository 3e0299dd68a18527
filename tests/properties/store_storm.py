"""A storm around a real engine whose store fails now and then: nothing that was acknowledged or told is lost or told twice.

What clients were answered and what watches were told is kept here as they would keep it, and compared with the state
whenever the noise stops. Every commit is judged by `tree_engine`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence

from muster.engine.api import (
    ApplyAnswer,
    BindingFailed,
    DeleteAnswer,
    ObjectFilter,
    PhaseChanged,
    PodReport,
    Removed,
    ReportAnswer,
    WatchBatch,
)
from muster.engine.errors import Refusal, UnavailableError
from muster.engine.log_entries import EventType
from muster.engine.ports import StoreUnavailableError, UnitState
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import KINDS, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.store.store import SqlStore
from tests.engine.tree_cluster import NAMESPACE, composite, leaf, node, pods
from tests.properties.faulty_store import Fault, FaultyStore
from tests.properties.tree_engine import TreeEngine, all_pods, is_admissible, overcommitted
from tests.properties.tree_places import Places

NODES = ("n-0", "n-1", "n-2")
SOON_SECONDS = 30
EVERYTHING = ObjectFilter(kinds=frozenset(KINDS))


class StoreStorm(TreeEngine):
    """`step_once` does one thing; `rest_and_judge` lets the noise stop and says what is wrong."""

    def __init__(self, folder: str, seed: int) -> None:
        super().__init__(folder)
        self.random = random.Random(seed)
        self.story: list[str] = []
        self.acknowledged = 0
        self.refused = 0
        self.struck: Counter[Fault] = Counter()
        self.told: dict[ObjectKey, ClusterObject] = {}
        self.told_revision = 0
        self._watching: asyncio.Task[None] | None = None
        chosen = self.random.choice
        root = composite("root", chosen((1, 2)))
        self.groups: list[AnyGroup] = [
            root,
            leaf("a", chosen((1, 2)), parent=root),
            leaf("b", chosen((None, 2)), parent=root, same=chosen(("", "zone"))),
            leaf("lone", chosen((1, 3)), workload=""),
        ]

    def new_store(self) -> SqlStore:
        self.store = FaultyStore(self._url, self.struck)
        return self.store

    async def start(self) -> None:
        await super().start()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        await super().stop()
        if self._watching is not None:
            await self._watching

    async def _watch(self) -> None:
        """A watch that resumes where the last one ended, as clients do, and keeps what it was told."""
        while True:
            try:
                async for batch in self._running.watch("default", EVERYTHING, self.told_revision or None):
                    self._hear(batch)
            except StoreUnavailableError:
                await asyncio.sleep(0.001)
            except Refusal as refusal:
                if refusal.reason == "SERVER_DRAINING":
                    return
                await asyncio.sleep(0.001)

    def _hear(self, batch: WatchBatch) -> None:
        for kind, item in zip(batch.types, batch.objects, strict=True):
            known = self.told.get(item.key)
            if known is not None and known.resource_version > item.resource_version:
                self.faults.append(f"{item.key} was told of a time before the last")
            if kind is EventType.DELETED:
                self.told.pop(item.key, None)
            else:
                self.told[item.key] = item
        self.told_revision = max(self.told_revision, batch.revision)

    async def step_once(self) -> None:
        acts: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self._put_pods),
            (2, self._put_group),
            (2, self._put_node),
            (3, self._delete),
            (2, self._report),
            (3, self._answer),
            (3, self._arm),
            (1, self._compact),
            (1, self._restart),
        ]
        weights, choices = zip(*acts, strict=True)
        (act,) = self.random.choices(choices, weights)
        await act()

    async def rest_and_judge(self) -> list[str]:
        """The noise stops, and everything is where it belongs."""
        await self._available()
        await self.rest()
        await self.service.durable()
        state = self.state
        async with asyncio.timeout(SOON_SECONDS):
            while self.told_revision < state.revision:  # noqa: ASYNC110 - the engine tells nobody else
                await asyncio.sleep(0.001)
        present = {item.key: item for kind in KINDS for item in state.objects[kind].values()}
        faults = [*self.faults, *overcommitted(state), *self._sleepers()]
        if self.told != present:
            keys = {key for key in {*self.told, *present} if self.told.get(key) != present.get(key)}
            faults.append(f"watches were told otherwise of {sorted(map(str, keys))}")
        if state.revision < self.acknowledged:
            faults.append(f"revision {self.acknowledged} was acknowledged, the state is at {state.revision}")
        return faults

    def _sleepers(self) -> Iterator[str]:
        state = self.state
        free = {
            each.name: 1000 * (int(each.allocatable["cpu"]) - self._used(each.name)) for each in self._nodes()
        }
        places = Places(state, free, lambda *_: True)
        excluded = self.service.cluster.failed_bindings
        for key, row in self.service.cluster.queue.rows.items():
            root = state.group(key)
            if root is None or excluded:
                continue
            if (row.state is UnitState.GATED) is is_admissible(state, root):
                yield f"{key} is {row.state.name}"
            elif row.state is not UnitState.GATED and places.could_grow(root):
                yield f"{key} sleeps: {row}, {free}"

    async def _put_pods(self) -> None:
        group = self.random.choice([each for each in self.groups if isinstance(each, PodGroup)])
        await self._apply(pods(group, self.random.randint(1, 4), first=self.random.randrange(2)))

    async def _put_group(self) -> None:
        await self._apply([self.random.choice(self.groups)])

    async def _put_node(self) -> None:
        name = self.random.choice(NODES)
        used = self._used(name)
        zone = "a" if name == NODES[0] else "b"
        await self._apply([node(name, cpu=max(used, self.random.randint(1, 4)), labels={"zone": zone})])

    async def _delete(self) -> None:
        state = self.state
        present = [item for kind in KINDS for item in state.objects[kind].values()]
        item = self.random.choice(present) if present else None
        if item is not None and not (isinstance(item, Node) and self._used(item.name)):
            self.story.append(f"delete {item.key}")
            await self.delete([item.key], force=self.random.choice((False, True)))

    async def _report(self) -> None:
        present = list(all_pods(self.state))
        if present:
            pod = self.random.choice(present)
            failed = BindingFailed(pod.node_name or NODES[0], "", "")
            said = self.random.choice((Removed(), PhaseChanged("Succeeded", "", ""), failed))
            self.story.append(f"report {pod.name} {said}")
            await self.report(PodReport(NAMESPACE, pod.name, "", said))

    async def _answer(self) -> None:
        self.pool.answer()
        await self.step(self.random.randint(1, 30))

    async def _arm(self) -> None:
        fault = self.random.choice(list(Fault))
        self.story.append(f"arm {fault.name}")
        if fault is Fault.UNREADABLE:
            self.store.arm(Fault.LOCKED)
        self.store.arm(fault, self.random.randrange(12))

    async def _compact(self) -> None:
        self.story.append("compact")
        await self._running._registry.compact()

    async def _restart(self) -> None:
        self.story.append("restart")
        await self._available()
        await self.restart()

    async def _available(self) -> None:
        """Until nothing is wrong with the store, and all that was written is in it."""
        self.store.disarm()
        async with asyncio.timeout(SOON_SECONDS):
            while True:
                self.pool.answer()
                try:
                    self.service.check_available()
                    await self.service.durable()
                    return
                except Refusal:
                    await asyncio.sleep(0.001)

    async def _loaded_again(self) -> None:
        """Until the engine is over what went wrong; more may go wrong meanwhile."""
        async with asyncio.timeout(SOON_SECONDS):
            while not self.service.available:
                self.pool.answer()
                await asyncio.sleep(0.001)

    async def _apply(self, objects: Sequence[ClusterObject]) -> None:
        self.story.append(f"apply {[each.name for each in objects]}")
        await self.apply(objects)

    async def _called(self, call: Awaitable[object]) -> None:
        try:
            answer = await call
        except Refusal as refusal:
            self.refused += isinstance(refusal, UnavailableError)
            if self.random.randrange(4):
                await self._loaded_again()
        else:
            assert isinstance(answer, ApplyAnswer | DeleteAnswer | ReportAnswer)
            self.acknowledged = max(self.acknowledged, answer.revision)

    def _used(self, node: str) -> int:
        return sum(pod.node_name == node and not pod.is_terminal for pod in all_pods(self.state))

    def _nodes(self) -> Iterator[Node]:
        for each in self.state.objects["Node"].values():
            assert isinstance(each, Node)
            yield each
