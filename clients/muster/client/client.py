"""The client: one typed method an RPC.

Each method takes the RPC's request message and returns its response. The client fills in `cluster` and `request_id`
where the request leaves them out, repeats what was UNAVAILABLE and raises the errors of `errors`. Requests are never
changed. Watches that resume by themselves are in `watches`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, AsyncIterator
from types import TracebackType
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message

from muster.client.connection import Connection
from muster.client.errors import error_of
from muster.client.retry import repeated
from muster.v1.cluster_service_pb2 import (
    ApplyRequest,
    ApplyResponse,
    ApplyStreamResponse,
    DeleteClusterRequest,
    DeleteClusterResponse,
    DeleteRequest,
    DeleteResponse,
    GetRequest,
    GetResponse,
    GetServerInfoRequest,
    GetServerInfoResponse,
    ListClustersRequest,
    ListClustersResponse,
    ListRequest,
    ListResponse,
    ReportPodsRequest,
    ReportPodsResponse,
    WatchRequest,
    WatchResponse,
)
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub
from muster.v1.object_pb2 import Object
from muster.v1.scheduler_service_pb2 import (
    ExplainRequest,
    ExplainResponse,
    GetDecisionRequest,
    GetDecisionResponse,
    GetQueueRequest,
    GetQueueResponse,
    ListDecisionsRequest,
    ListDecisionsResponse,
    PreemptRequest,
    PreemptResponse,
    ScheduleRequest,
    ScheduleResponse,
    SimulateRequest,
    SimulateResponse,
    WatchDecisionsRequest,
    WatchDecisionsResponse,
)
from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceStub

LARGEST_PAGE = 5_000
RETRY_SECONDS = 30.0

_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response")


class Client:
    """Calls one server about one cluster; an async context manager that closes its channel.

    `retry_seconds` is for how long an UNAVAILABLE server is tried again, in each call; 0 is not at all.
    """

    def __init__(
        self,
        connection: Connection | str = Connection(),  # noqa: B008 - frozen
        *,
        cluster: str = "",
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self.connection = Connection(connection) if isinstance(connection, str) else connection
        self.cluster = cluster
        self.retry_seconds = retry_seconds
        self.channel = self.connection.channel()
        self._metadata = self.connection.metadata()
        self._objects = ClusterServiceStub(self.channel)
        self._scheduler = SchedulerServiceStub(self.channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all calls."""
        await self.channel.close()

    async def apply(self, request: ApplyRequest) -> ApplyResponse:
        """Stores objects, all or none."""
        return await self._unary(self._objects.Apply, request)

    async def apply_stream(self, requests: AsyncIterable[ApplyRequest]) -> AsyncIterator[ApplyStreamResponse]:
        """Stores many sets of objects; answers come in order, each once durable. Not repeated by itself."""

        async def completed() -> AsyncIterator[ApplyRequest]:
            async for request in requests:
                yield self.completed(request)

        call = self._objects.ApplyStream(completed(), metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error

    async def get(self, request: GetRequest) -> GetResponse:
        """Reads one object."""
        return await self._unary(self._objects.Get, request)

    async def list_objects(self, request: ListRequest) -> ListResponse:
        """Reads one page."""
        return await self._unary(self._objects.List, request)

    async def list_all(self, request: ListRequest) -> AsyncIterator[Object]:
        """Reads all pages, one after the other: the state of one revision."""
        page_request = _copy(request)
        page_request.page_size = request.page_size or LARGEST_PAGE
        while True:
            page = await self.list_objects(page_request)
            for listed in page.objects:
                yield listed
            if not page.next_page_token:
                return
            page_request.page_token = page.next_page_token

    async def delete(self, request: DeleteRequest) -> DeleteResponse:
        """Deletes objects, all or none."""
        return await self._unary(self._objects.Delete, request)

    def watch(self, request: WatchRequest) -> AsyncIterator[WatchResponse]:
        """Streams changes until the stream breaks; `watches.watch_objects` goes on after that."""
        return self._streaming(self._objects.Watch, request)

    async def report_pods(self, request: ReportPodsRequest) -> ReportPodsResponse:
        """Tells the server what happened to pods."""
        return await self._unary(self._objects.ReportPods, request)

    async def get_server_info(self) -> GetServerInfoResponse:
        """Asks what the server is and allows."""
        return await self._unary(self._objects.GetServerInfo, GetServerInfoRequest())

    async def list_clusters(self, request: ListClustersRequest) -> ListClustersResponse:
        """Reads one page of the clusters."""
        return await self._unary(self._objects.ListClusters, request)

    async def delete_cluster(self, request: DeleteClusterRequest) -> DeleteClusterResponse:
        """Removes a cluster with all that is in it; it must be named."""
        prepared = _copy(request)
        prepared.request_id = request.request_id or new_request_id()
        return await repeated(
            lambda: self._objects.DeleteCluster(prepared, metadata=self._metadata), self.retry_seconds
        )

    async def schedule(self, request: ScheduleRequest) -> ScheduleResponse:
        """Hurries a unit and waits for its decision."""
        return await self._unary(self._scheduler.Schedule, request)

    async def preempt(self, request: PreemptRequest) -> PreemptResponse:
        """Runs one cycle that may preempt for a unit."""
        return await self._unary(self._scheduler.Preempt, request)

    async def simulate(self, request: SimulateRequest) -> SimulateResponse:
        """Decides on a copy."""
        return await self._unary(self._scheduler.Simulate, request)

    async def explain(self, request: ExplainRequest) -> ExplainResponse:
        """Asks why a unit is where it is."""
        return await self._unary(self._scheduler.Explain, request)

    def watch_decisions(self, request: WatchDecisionsRequest) -> AsyncIterator[WatchDecisionsResponse]:
        """Streams decisions until the stream breaks; `watches.watch_decisions` goes on after that."""
        return self._streaming(self._scheduler.WatchDecisions, request)

    async def get_decision(self, request: GetDecisionRequest) -> GetDecisionResponse:
        """Reads one decision."""
        return await self._unary(self._scheduler.GetDecision, request)

    async def list_decisions(self, request: ListDecisionsRequest) -> ListDecisionsResponse:
        """Reads one page of decisions, newest first."""
        return await self._unary(self._scheduler.ListDecisions, request)

    async def get_queue(self, request: GetQueueRequest) -> GetQueueResponse:
        """Reads one page of the queue, with counts of all of it."""
        return await self._unary(self._scheduler.GetQueue, request)

    def completed(self, request: _Request) -> _Request:
        """A copy with the client's cluster and a fresh `request_id`, where the request has neither."""
        fields = request.DESCRIPTOR.fields_by_name
        prepared = _copy(request)
        if "cluster" in fields and not getattr(request, "cluster"):  # noqa: B009 - not a field of every message
            setattr(prepared, "cluster", self.cluster)  # noqa: B010
        if "request_id" in fields and not getattr(request, "request_id"):  # noqa: B009
            setattr(prepared, "request_id", new_request_id())  # noqa: B010
        return prepared

    async def _unary(
        self, method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response], request: _Request
    ) -> _Response:
        prepared = self.completed(request)
        return await repeated(lambda: method(prepared, metadata=self._metadata), self.retry_seconds)

    async def _streaming(
        self, method: grpc.aio.UnaryStreamMultiCallable[_Request, _Response], request: _Request
    ) -> AsyncIterator[_Response]:
        call = method(self.completed(request), metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error
        finally:
            call.cancel()


def new_request_id() -> str:
    """An id that no other call has."""
    return uuid.uuid4().hex


def _copy(request: _Request) -> _Request:
    copy = type(request)()
    copy.CopyFrom(request)
    return copy
