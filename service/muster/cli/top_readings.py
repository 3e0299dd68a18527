"""One look at a cluster: its queue, what is in use, what was decided last. Four calls, each bounded by a page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from muster.cli.decision_views import code_name, state_name
from muster.cli.kinds import shown_ref
from muster.cli.output import NONE, as_json
from muster.cli.state_check import quantity
from muster.client.client import Client
from muster.client.errors import MusterError
from muster.v1.cluster_service_pb2 import ListClustersRequest
from muster.v1.decision_pb2 import Decision
from muster.v1.meta_pb2 import ObjectMeta, ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.pod_pb2 import Pod
from muster.v1.queue_pb2 import UnitQueueState, UnitState
from muster.v1.scheduler_service_pb2 import (
    GetQueueRequest,
    GetQueueResponse,
    ListDecisionsRequest,
    ListDecisionsResponse,
    SimulateRequest,
)
from muster.v1.server_pb2 import Cluster

UNITS_SHOWN = 200
DECISIONS_SHOWN = 50
UNIT_TITLES = ("UNIT", "STATE", "PRIORITY", "PODS", "WAITS", "REASON")
DECISION_TITLES = ("AGO", "UNIT", "OUTCOME", "TOOK", "MESSAGE")
# A pod that asks for nothing: simulating it tells what is in use, and costs next to nothing.
_PROBE = "muster-top"
_BYTES = frozenset({"memory", "ephemeral-storage"})
_SECONDS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Use:
    """What is in use of a resource, as quantities."""

    resource: str
    used: str
    allocatable: str

    @property
    def share(self) -> float:
        used, allocatable = quantity(self.used), quantity(self.allocatable)
        return float(used / allocatable) if allocatable else 0.0

    def __str__(self) -> str:
        return f"{amount(self.resource, self.used)} of {amount(self.resource, self.allocatable)}"


@dataclass(frozen=True, slots=True)
class Readings:
    """What was seen at one time. counts: objects of the cluster by kind."""

    queue: GetQueueResponse
    decisions: ListDecisionsResponse
    uses: tuple[Use, ...]
    counts: Mapping[str, int]
    read_at: datetime


async def read(client: Client, cluster: str) -> Readings:
    """One look. Raises MusterError."""
    queue, decisions, uses, clusters = await asyncio.gather(
        client.get_queue(GetQueueRequest(page_size=UNITS_SHOWN)),
        client.list_decisions(ListDecisionsRequest(page_size=DECISIONS_SHOWN)),
        _uses(client),
        client.list_clusters(ListClustersRequest()),
    )
    return Readings(queue, decisions, uses, _counts(clusters.clusters, cluster), datetime.now(UTC))


def _probe() -> SimulateRequest:
    request = SimulateRequest(units=[ObjectRef(kind="Pod", name=_PROBE)], without_preemption=True)
    request.overlay.objects.append(Object(pod=Pod(metadata=ObjectMeta(name=_PROBE))))
    return request


async def _uses(client: Client) -> tuple[Use, ...]:
    """What is in use; nothing while simulations are not to be had, since the queue is worth seeing without."""
    try:
        simulated = await client.simulate(_probe())
    except MusterError:
        return ()
    return tuple(
        Use(each.resource, each.used_before or "0", each.allocatable or "0")
        for each in simulated.totals.resources
    )


def _counts(clusters: Iterable[Cluster], name: str) -> Mapping[str, int]:
    return next((dict(each.counts) for each in clusters if each.name == (name or "default")), {})


def state_counts(queue: GetQueueResponse) -> list[tuple[str, int]]:
    """Units by the words of their state."""
    return [(_words(UnitState.Name(each.state), "UNIT_STATE_"), each.count) for each in queue.counts]


def unit_row(state: UnitQueueState, now: datetime) -> tuple[str, ...]:
    """A unit under `UNIT_TITLES`."""
    return (
        shown_ref(state.unit),
        _words(state_name(state), ""),
        str(state.priority),
        str(state.pending_pod_count),
        ago(state.first_pending_time, now),
        "; ".join(each.message or each.code for each in state.reasons[:1]),
    )


def decision_row(decision: Decision, now: datetime) -> tuple[str, ...]:
    """A decision under `DECISION_TITLES`."""
    return (
        ago(decision.create_time, now),
        shown_ref(decision.unit),
        _words(code_name(decision), ""),
        f"{decision.duration.ToNanoseconds() / 1e6:.1f} ms",
        decision.message,
    )


def ago(moment: Timestamp, now: datetime) -> str:
    """How long ago, in its two largest units at most: "1h 5m"."""
    if not moment.seconds:
        return NONE
    left = max(0, int(now.timestamp()) - moment.seconds)
    parts: list[str] = []
    for unit, length in _SECONDS:
        if left >= length and len(parts) < 2:  # noqa: PLR2004 - two are read at a glance
            parts.append(f"{left // length}{unit}")
        left %= length
    return " ".join(parts) or "0s"


def amount(resource: str, text: str) -> str:
    """A quantity as people read it: bytes in Gi, all else as a number."""
    value = float(quantity(text))
    return f"{value / 2**30:.1f}Gi" if resource in _BYTES else f"{value:g}"


def as_value(readings: Readings) -> dict[str, Any]:
    """The same for JSON and YAML."""
    return {
        "queue": as_json(readings.queue),
        "decisions": as_json(readings.decisions)["decisions"],
        "use": [
            {"resource": use.resource, "used": use.used, "allocatable": use.allocatable}
            for use in readings.uses
        ],
        "counts": dict(readings.counts),
    }


def _words(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower().replace("_", " ")
