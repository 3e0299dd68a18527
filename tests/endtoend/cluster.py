"""Calls about one cluster of a service, in the words of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import grpc
import pytest

from muster.client.errors import MusterError, error_of
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.meta_pb2 import Condition, ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.pod_report_pb2 import PodReport
from muster.v1.queue_pb2 import UnitQueueState
from tests.endtoend.service import Service

WAIT_SECONDS = 30
CALL_SECONDS = 60.0


class Cluster:
    """One cluster; it exists once something was applied."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name

    def apply(self, *objects: Object, request_id: str = "", validate_only: bool = False) -> pb.ApplyResponse:
        return self.service.cluster.Apply(
            pb.ApplyRequest(
                cluster=self.name, objects=objects, request_id=request_id, validate_only=validate_only
            ),
            timeout=CALL_SECONDS,
        )

    def delete(self, kind: str, *names: str, **options: bool) -> pb.DeleteResponse:
        request = pb.DeleteRequest(cluster=self.name, **options)  # type: ignore[arg-type]
        for name in names:
            request.refs.add(ref=ObjectRef(kind=kind, name=name))
        return self.service.cluster.Delete(request, timeout=CALL_SECONDS)

    def get(self, kind: str, name: str) -> Object:
        request = pb.GetRequest(cluster=self.name, ref=ObjectRef(kind=kind, name=name))
        return self.service.cluster.Get(request, timeout=CALL_SECONDS).object

    def report(self, *reports: PodReport) -> pb.ReportPodsResponse:
        return self.service.cluster.ReportPods(
            pb.ReportPodsRequest(cluster=self.name, reports=reports), timeout=CALL_SECONDS
        )

    def nodes(self) -> dict[str, str]:
        """The node of each pod, "" where it has none."""
        return {
            item.pod.metadata.name: item.pod.spec.node_name for item in self.service.objects("Pod", self.name)
        }

    def bound(self) -> set[str]:
        """The names of the pods that have a node."""
        return {name for name, node in self.nodes().items() if node}

    def revision(self) -> int:
        return self.service.cluster.List(pb.ListRequest(cluster=self.name, kind="Node", page_size=1)).revision

    def schedule(self, kind: str, name: str, *, wait: int = 0, dry: bool = False) -> spb.ScheduleResponse:
        return self.service.scheduler.Schedule(
            self.schedule_request(kind, name, wait=wait, dry=dry), timeout=CALL_SECONDS
        )

    def schedule_request(
        self, kind: str, name: str, *, wait: int = 0, dry: bool = False
    ) -> spb.ScheduleRequest:
        unit = ObjectRef(kind=kind, name=name)
        request = spb.ScheduleRequest(cluster=self.name, unit=unit, validate_only=dry)
        if wait:
            request.wait.FromSeconds(wait)
        return request

    def until_scheduled(self, name: str) -> Decision:
        """The decision that bound a PodGroup, which comes without more being done for it."""
        decision = self.schedule("PodGroup", name, wait=WAIT_SECONDS).decision
        assert decision.code == DecisionCode.DECISION_CODE_SCHEDULED, decision.message
        return decision

    def queue(self) -> spb.GetQueueResponse:
        return self.service.scheduler.GetQueue(spb.GetQueueRequest(cluster=self.name), timeout=CALL_SECONDS)

    def queued(self, name: str) -> UnitQueueState:
        """What the queue says of one unit."""
        [found] = [unit for unit in self.queue().units if unit.unit.name == name]
        return found

    def list_decisions(self, unit: ObjectRef | None = None) -> list[Decision]:
        """All decisions, or those on the unit of an object, newest first."""
        found: list[Decision] = []
        request = spb.ListDecisionsRequest(cluster=self.name, page_size=100, unit=unit)
        while True:
            page = self.service.scheduler.ListDecisions(request, timeout=CALL_SECONDS)
            found.extend(page.decisions)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token


class Replica:
    """A copy of a cluster's objects, held up to date by a watch that may be cut off and opened again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._from: int | None = None
        self.objects: dict[tuple[str, str], Object] = {}

    def follow_to(self, revision: int) -> None:
        """Take in changes until the watch has told everything up to a revision; then leave the watch."""
        request = pb.WatchRequest(cluster=self._cluster.name)
        if self._from is not None:
            request.from_revision = self._from
        call = self._cluster.service.cluster.Watch(request, timeout=CALL_SECONDS)
        for message in call:
            self._take(message)
            if self._from is not None and self._from >= revision:
                break
        call.cancel()

    def _take(self, message: pb.WatchResponse) -> None:
        for event in message.events:
            if event.type == pb.EVENT_TYPE_DELETED:
                del self.objects[identity(event.object)]
            else:
                self.objects[identity(event.object)] = event.object
        if message.initial_state_complete or self._from is not None:
            self._from = message.revision


def identity(item: Object) -> tuple[str, str]:
    """Kind and name of an object."""
    kind = str(item.WhichOneof("kind"))
    return kind, getattr(item, kind).metadata.name


def condition(conditions: list[Condition], kind: str) -> Condition:
    """The one condition of a type."""
    [found] = [each for each in conditions if each.type == kind]
    return found


class Refusal:
    """Holds the error once the block has ended."""

    error: MusterError


@contextmanager
def refused(code: grpc.StatusCode) -> Iterator[Refusal]:
    """The block's call is refused with this code."""
    refusal = Refusal()
    with pytest.raises(grpc.RpcError) as raised:
        yield refusal
    refusal.error = error_of(cast("grpc.aio.AioRpcError", raised.value))
    assert refusal.error.code is code, refusal.error


def outcome_of(call: Callable[[], object]) -> grpc.StatusCode:
    """The code with which a call or a stream ends."""
    try:
        call()
    except grpc.RpcError as error:
        return error_of(cast("grpc.aio.AioRpcError", error)).code
    return grpc.StatusCode.OK
