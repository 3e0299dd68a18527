"""What tests of the RPC layer say often: requests, and errors with their details unpacked."""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muster.rpc.limits import ServingLimits
from muster.rpc.telemetry_port import NullRpcTelemetry
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import (
    cluster_service_pb2_grpc,
    meta_pb2,
    object_pb2,
    pod_group_pb2,
    pod_pb2,
    scheduler_service_pb2_grpc,
)

D = TypeVar("D", bound=Message)
SHORT_LIMITS = ServingLimits(deadline_seconds=5, bookmark_seconds=0.2, watcher_seconds=0.5)
PATIENCE_SECONDS = 10


@dataclass
class Api:
    cluster: "cluster_service_pb2_grpc.ClusterServiceAsyncStub"
    scheduler: "scheduler_service_pb2_grpc.SchedulerServiceAsyncStub"


class RecordingTelemetry(NullRpcTelemetry):
    """Remembers what a test may wait for."""

    def __init__(self) -> None:
        self.refusals: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.ended: list[tuple[str, str]] = []

    def refused(self, method: str, reason: str) -> None:
        self.refusals.put_nowait((method, reason))

    def rpc_ended(self, method: str, code: str, seconds: float) -> None:
        self.ended.append((method, code))


@dataclass
class Refused:
    """A refusal as a caller sees it; `shown` is what the trailing metadata takes."""

    code: grpc.StatusCode
    message: str
    reason: str
    domain: str
    metadata: dict[str, str]
    details: Status
    trailer_bytes: int
    fields: dict[str, str] = field(default_factory=dict)

    def detail(self, kind: type[D]) -> D:
        found = kind()
        assert any(each.Unpack(found) for each in self.details.details), (
            f"no {kind.__name__} in {self.details}"
        )
        return found

    def has(self, kind: type[Message]) -> bool:
        return any(each.TypeName() == kind.DESCRIPTOR.full_name for each in self.details.details)


async def refused(call: Awaitable[Any]) -> Refused:
    """The error that a call ends with."""
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return unpacked(caught.value)


def unpacked(error: aio.AioRpcError) -> Refused:
    trailers = list(error.trailing_metadata() or ())
    status = Status.FromString(next(value for key, value in trailers if key == "grpc-status-details-bin"))
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info), "ErrorInfo comes first"
    answer = Refused(
        code=error.code(),
        message=error.details() or "",
        reason=info.reason,
        domain=info.domain,
        metadata=dict(info.metadata),
        details=status,
        trailer_bytes=sum(len(key) + len(value) + 32 for key, value in trailers) + len(error.details() or ""),
    )
    if answer.has(error_details_pb2.BadRequest):
        violations = answer.detail(error_details_pb2.BadRequest).field_violations
        answer.fields = {each.field: each.reason for each in violations}
    return answer


def ref(kind: str, name: str, namespace: str = "", uid: str = "") -> meta_pb2.ObjectRef:
    return meta_pb2.ObjectRef(kind=kind, namespace=namespace, name=name, uid=uid)


def pod(name: str, labels: dict[str, str] | None = None, *, note: str = "") -> object_pb2.Object:
    annotations = {"note": note} if note else {}
    metadata = meta_pb2.ObjectMeta(name=name, labels=labels or {}, annotations=annotations)
    return object_pb2.Object(pod=pod_pb2.Pod(metadata=metadata))


def pod_group(name: str) -> object_pb2.Object:
    return object_pb2.Object(
        pod_group=pod_group_pb2.PodGroup(
            metadata=meta_pb2.ObjectMeta(name=name),
            spec=pod_group_pb2.PodGroupSpec(
                scheduling_policy=pod_group_pb2.PodGroupSchedulingPolicy(
                    basic=pod_group_pb2.BasicSchedulingPolicy()
                )
            ),
        )
    )


def batch(names: Iterable[str]) -> object_pb2.Object:
    return object_pb2.Object(pod_batch=pod_pb2.PodBatch(template=pod_pb2.Pod(), names=list(names)))


def names(objects: Iterable[object_pb2.Object]) -> list[str]:
    return [each.pod.metadata.name for each in objects]


async def apply(api: Api, *objects: object_pb2.Object) -> pb.ApplyResponse:
    return await api.cluster.Apply(pb.ApplyRequest(objects=objects))


def health_stub(channel: aio.Channel) -> Any:
    """The stub of grpc.health.v1, whose methods its types do not know."""
    return health_pb2_grpc.HealthStub(channel)


async def status_of(channel: aio.Channel, service: str = "") -> int:
    answer = await health_stub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)
