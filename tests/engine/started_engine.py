"""An engine that has just started on a store, without workers and without the RPC layer."""

from __future__ import annotations

from collections.abc import Sequence

from muster.core.framework import Profile
from muster.engine.api import ApplyCall
from muster.engine.engine import Engine
from muster.engine.registry import EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.store.store import SqlStore
from tests.engine.tree_cluster import PROFILE
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds


async def started_engine(store: SqlStore, clock: FakeClock, profile: Profile = PROFILE) -> Engine:
    """To be drained at the end."""
    profiles = {profile.name: profile}
    made = Engine(store, clock, FakeIds(), profiles, NullTelemetry(), EngineOptions(workers=0))
    await made.start()
    return made


def applying(sent: Sequence[ClusterObject | PodBatch], cluster: str = "default") -> ApplyCall:
    return ApplyCall(cluster, sent, [f"objects[{i}]." for i in range(len(sent))])
