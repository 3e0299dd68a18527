"""The clusters of a service that has just started on a store, without anything above them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from muster.engine.cluster_service import ClusterService
from muster.engine.errors import Refusal
from muster.engine.mutation import Mutation
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.plugins.profile import default_profile
from muster.store.store import SqlStore
from tests.fakes.clock import FakeClock

OVER = Refusal("SERVER_DRAINING", "the test is over")


async def started(store: SqlStore, clock: FakeClock) -> ClusterRegistry:
    profile = default_profile()
    options = EngineOptions(workers=0)
    made = ClusterRegistry(store, clock, {profile.name: profile}, NullTelemetry(), options)
    await made.start()
    return made


async def started_with_a_node(store: SqlStore, clock: FakeClock) -> tuple[ClusterRegistry, ClusterService]:
    """A registry whose cluster holds the node `kept`, durably."""
    registry = await started(store, clock)
    service = registry.services["default"]
    service.write(lambda mutation: put(mutation, "kept"))
    await service.durable()
    return registry, service


def put(mutation: Mutation, name: str) -> tuple[None, bool]:
    mutation.put(
        Node(name=name, uid=name, resource_version=mutation.revision, ordinal=mutation.revision << 20)
    )
    return None, True


def putting(objects: Iterable[ClusterObject]) -> Callable[[Mutation], tuple[None, bool]]:
    """A step that puts them, as Apply would have made them."""

    def step(mutation: Mutation) -> tuple[None, bool]:
        for place, each in enumerate(objects):
            ordinal = (mutation.revision << 20) + place
            mutation.put(replace(each, uid=each.name, ordinal=ordinal, resource_version=mutation.revision))
        return None, True

    return step


def break_half_way(mutation: Mutation) -> tuple[None, bool]:
    put(mutation, "half")
    raise ZeroDivisionError


async def until_available(service: ClusterService) -> None:
    async with asyncio.timeout(30):
        while not service.available:  # noqa: ASYNC110 - the engine tells nobody when it is back
            await asyncio.sleep(0.001)
