"""A server on a real port whose answers a test writes down in advance."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from muster.v1.cluster_service_pb2 import (
    ApplyRequest,
    ApplyResponse,
    ListRequest,
    ListResponse,
    WatchRequest,
    WatchResponse,
)
from muster.v1.cluster_service_pb2_grpc import ClusterServiceServicer, add_ClusterServiceServicer_to_server
from muster.v1.scheduler_service_pb2 import WatchDecisionsRequest, WatchDecisionsResponse
from muster.v1.scheduler_service_pb2_grpc import (
    SchedulerServiceServicer,
    add_SchedulerServiceServicer_to_server,
)


@dataclass(frozen=True)
class Failure:
    """A status to answer with, and its details."""

    code: grpc.StatusCode
    reason: str = ""
    details: Sequence[Message] = ()
    message: str = "no"


@dataclass
class ToyServer(ClusterServiceServicer, SchedulerServiceServicer):
    """Answers come from the front of the queues; a stream is a list of messages, then a Failure or its end."""

    applies: deque[ApplyResponse | Failure] = field(default_factory=deque)
    lists: deque[ListResponse] = field(default_factory=deque)
    watches: deque[list[WatchResponse | Failure]] = field(default_factory=deque)
    decisions: deque[list[WatchDecisionsResponse | Failure]] = field(default_factory=deque)
    requests: list[Message] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    address: str = ""

    async def Apply(  # noqa: N802
        self, request: ApplyRequest, context: "aio.ServicerContext[ApplyRequest, ApplyResponse]"
    ) -> ApplyResponse:
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata() or ()))
        answer = self.applies.popleft()
        return answer if isinstance(answer, ApplyResponse) else await _abort(context, answer)

    async def List(  # noqa: N802
        self, request: ListRequest, context: "aio.ServicerContext[ListRequest, ListResponse]"
    ) -> ListResponse:
        self.requests.append(request)
        return self.lists.popleft()

    async def Watch(  # noqa: N802
        self, request: WatchRequest, context: "aio.ServicerContext[WatchRequest, WatchResponse]"
    ) -> AsyncIterator[WatchResponse]:
        self.requests.append(request)
        for answer in self.watches.popleft():
            if isinstance(answer, Failure):
                await _abort(context, answer)
            else:
                yield answer

    async def WatchDecisions(  # noqa: N802
        self,
        request: WatchDecisionsRequest,
        context: "aio.ServicerContext[WatchDecisionsRequest, WatchDecisionsResponse]",
    ) -> AsyncIterator[WatchDecisionsResponse]:
        self.requests.append(request)
        for answer in self.decisions.popleft():
            if isinstance(answer, Failure):
                await _abort(context, answer)
            else:
                yield answer


@asynccontextmanager
async def running_toy(most_bytes: int = -1) -> AsyncIterator[ToyServer]:
    """A server on a free port until the block ends; what it does not know is UNIMPLEMENTED."""
    toy = ToyServer()  # type: ignore[abstract]
    server = aio.server(options=[("grpc.max_receive_message_length", most_bytes)])
    add_ClusterServiceServicer_to_server(toy, server)
    add_SchedulerServiceServicer_to_server(toy, server)
    toy.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield toy
    finally:
        await server.stop(0)


async def _abort(context: "aio.ServicerContext[Any, Any]", failure: Failure) -> NoReturn:
    details = [ErrorInfo(reason=failure.reason, domain="muster"), *failure.details]
    status = Status(
        code=failure.code.value[0], message=failure.message, details=[_packed(each) for each in details]
    )
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(failure.code, failure.message, trailing)
    raise AssertionError("abort does not return")


def _packed(detail: Message) -> PackedAny:
    packed = PackedAny()
    packed.Pack(detail)
    return packed
