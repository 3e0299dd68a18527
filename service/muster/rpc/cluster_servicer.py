"""muster.v1.ClusterService: each method checks its request, calls the engine, encodes the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from grpc import aio

from muster.engine.api import (
    DeleteAnswer,
    DeleteCall,
    DeleteRef,
    ObjectFilter,
    Propagation,
    ReportAnswer,
    ReportCall,
    SchedulingEngine,
    WatchBatch,
)
from muster.engine.errors import NotFoundError
from muster.model.meta import CLUSTER_SCOPED_KINDS, KINDS
from muster.model.names import MOST_ANNOTATION_BYTES
from muster.model.objects import ClusterObject
from muster.rpc import limits as bounds
from muster.rpc.admission import Admission
from muster.rpc.answers import DELETE_OUTCOMES, delete_response, report_response
from muster.rpc.apply import Applier
from muster.rpc.codec import encode_object
from muster.rpc.events import EncodedEvents
from muster.rpc.lists import ObjectLister, checked_uid
from muster.rpc.pagination import KeptLists, PageTokens, Position
from muster.rpc.replay import AnswerEncoder, identity_of
from muster.rpc.reports import decode_reports
from muster.rpc.request_checks import RequestFaults, refuse_too_many
from muster.rpc.selectors import compiled
from muster.rpc.telemetry_port import RpcTelemetry
from muster.rpc.watch import WatchStream, split_by_size
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import cluster_service_pb2_grpc, outcome_pb2, server_pb2
from muster.validation.violations import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED

Context = aio.ServicerContext[Any, Any]

PROPAGATIONS = {
    pb.PROPAGATION_UNSPECIFIED: Propagation.BACKGROUND,
    pb.PROPAGATION_BACKGROUND: Propagation.BACKGROUND,
    pb.PROPAGATION_FOREGROUND: Propagation.FOREGROUND,
    pb.PROPAGATION_ORPHAN: Propagation.ORPHAN,
}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What GetServerInfo tells beside the limits. `capabilities` are sorted."""

    version: str = ""
    capabilities: tuple[str, ...] = ()
    clients_evict: bool = False
    replica: str = ""


class ClusterServicer(cluster_service_pb2_grpc.ClusterServiceServicer):
    """Holds nothing but what its answers are made with.

    Streams write to their context, which the generated types do not foresee: a write can be given a time limit.
    """

    def __init__(
        self,
        engine: SchedulingEngine,
        admission: Admission,
        identity: ServerIdentity,
        telemetry: RpcTelemetry,
        lists: KeptLists[ClusterObject],
        tokens: PageTokens,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._identity = identity
        self._telemetry = telemetry
        self._tokens = tokens
        self._applier = Applier(engine)
        self._lister = ObjectLister(engine, tokens, lists)
        self._events = EncodedEvents()

    async def Apply(self, request: pb.ApplyRequest, context: Context) -> pb.ApplyResponse:
        return await self._applier.apply(request)

    async def ApplyStream(self, request_iterator: AsyncIterator[pb.ApplyRequest], context: Context) -> None:  # type: ignore[override]
        await self._applier.stream(request_iterator, context, self._admission)

    async def Get(self, request: pb.GetRequest, context: Context) -> pb.GetResponse:
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        key = faults.ref(request.ref, "ref", present=request.HasField("ref"))
        faults.refuse()
        found, revision = await checked_uid(self._engine, cluster, key, request.ref.uid)
        return pb.GetResponse(object=encode_object(found), revision=revision)

    async def List(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        return await self._lister.list(request)

    async def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.DeleteResponse:
        call, encoder = _delete_call(request)
        if call.identity is not None:
            kept = await self._engine.find_replay(call.cluster, call.identity)
            if kept is not None:
                return pb.DeleteResponse.FromString(kept)
        return encoder.message(await self._engine.delete(call))

    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # type: ignore[override]
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        selection = _watch_selection(request, faults)
        start = request.from_revision if request.HasField("from_revision") else None
        faults.revision(start, "fromRevision")
        faults.refuse()
        messages = _WatchMessages(self._events, start)
        self._telemetry.watch_opened("Watch")
        try:
            with self._admission.watch():
                stream = WatchStream(context, self._admission, messages.of, messages.bookmark)
                await stream.run(self._engine.watch(cluster, selection, start))
        finally:
            self._telemetry.watch_closed("Watch")

    async def ReportPods(self, request: pb.ReportPodsRequest, context: Context) -> pb.ReportPodsResponse:
        """An outcome for each report; those that are accepted commit together."""
        refuse_too_many("reports", len(request.reports))
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        faults.request_id(request.request_id)
        faults.not_empty("reports", len(request.reports))
        faults.refuse()
        identity = identity_of("ReportPods", request.request_id, request)
        if identity is not None:
            kept = await self._engine.find_replay(cluster, identity)
            if kept is not None:
                return pb.ReportPodsResponse.FromString(kept)
        encoder = AnswerEncoder[ReportAnswer, pb.ReportPodsResponse](report_response)
        encode = encoder.to_bytes if identity is not None else None
        call = ReportCall(cluster, decode_reports(request.reports), identity, encode)
        return encoder.message(await self._engine.report_pods(call))

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Context
    ) -> pb.GetServerInfoResponse:
        evicts = self._identity.clients_evict
        return pb.GetServerInfoResponse(
            version=self._identity.version,
            capabilities=self._identity.capabilities,
            limits=_limits(self._admission.limits),
            eviction_mode=server_pb2.EVICTION_MODE_CLIENT if evicts else server_pb2.EVICTION_MODE_SERVER,
            profiles=self._engine.profile_names(),
            replica=self._identity.replica,
        )

    async def ListClusters(
        self, request: pb.ListClustersRequest, context: Context
    ) -> pb.ListClustersResponse:
        """Clusters by name, a page at a time; the offset in the token is the number already given."""
        faults = RequestFaults()
        size = faults.page_size(request.page_size)
        faults.refuse()
        offset = self._tokens.read(request, request.page_token).offset if request.page_token else 0
        summaries = sorted(await self._engine.list_clusters(), key=lambda each: each.name)
        response = pb.ListClustersResponse(
            clusters=[
                server_pb2.Cluster(name=each.name, revision=each.revision, counts=each.counts)
                for each in summaries[offset : offset + size]
            ]
        )
        if offset + size < len(summaries):
            response.next_page_token = self._tokens.make(request, Position(0, offset + size))
        return response

    async def DeleteCluster(
        self, request: pb.DeleteClusterRequest, context: Context
    ) -> pb.DeleteClusterResponse:
        """All of a cluster at once. The name must be given: here empty is not the default cluster."""
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        if not request.cluster:
            faults.add("cluster", REQUIRED, "must be set: here empty is not default")
        faults.request_id(request.request_id)
        faults.refuse()
        try:
            identity = identity_of("DeleteCluster", request.request_id, request)
            outcome = await self._engine.delete_cluster(cluster, identity)
        except NotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteClusterResponse(outcome=outcome_pb2.DELETE_OUTCOME_MISSING)
        return pb.DeleteClusterResponse(outcome=DELETE_OUTCOMES[outcome])


class _WatchMessages:
    """Makes the messages of one watch and remembers what has been promised."""

    def __init__(self, events: EncodedEvents, start: int | None) -> None:
        self._events = events
        self._revision = start

    def of(self, batch: WatchBatch) -> Iterator[bytes]:
        """One message or more; only the last has the batch's revision, since the others do not complete it."""
        events = list(map(self._events.encoded, batch.types, batch.objects))
        runs = [events]
        if len(events) > bounds.WATCH_EVENTS or sum(map(len, events)) > bounds.WATCH_BYTES:
            runs = list(split_by_size(events, len, bounds.WATCH_EVENTS, bounds.WATCH_BYTES))
        unfinished = pb.WatchResponse(revision=self._revision or 0).SerializeToString()
        for run in runs[:-1]:
            yield b"".join((*run, unfinished))
        self._revision = batch.revision
        finished = pb.WatchResponse(
            revision=batch.revision, initial_state_complete=batch.initial_state_complete
        ).SerializeToString()
        yield b"".join((*runs[-1], finished))

    def bookmark(self) -> Message | None:
        return None if self._revision is None else pb.WatchResponse(revision=self._revision)


def _watch_selection(request: pb.WatchRequest, faults: RequestFaults) -> ObjectFilter:
    for index, kind in enumerate(request.kinds):
        faults.kind(kind, f"kinds[{index}]")
    if request.namespace:
        faults.namespace_name(request.namespace, "namespace")
        if request.kinds and CLUSTER_SCOPED_KINDS.issuperset(request.kinds):
            faults.add("namespace", INVALID, f"{', '.join(request.kinds)}: no namespace there")
    predicate = None
    if request.HasField("label_selector"):
        predicate = compiled(request.label_selector, "labelSelector", faults.violations)
    return ObjectFilter(
        kinds=frozenset(request.kinds or KINDS), namespace=request.namespace, matches_labels=predicate
    )


def _delete_call(
    request: pb.DeleteRequest,
) -> tuple[DeleteCall, AnswerEncoder[DeleteAnswer, pb.DeleteResponse]]:
    refuse_too_many("refs", len(request.refs))
    faults = RequestFaults()
    cluster = faults.cluster(request.cluster)
    faults.request_id(request.request_id)
    faults.not_empty("refs", len(request.refs))
    refs = _delete_refs(request, faults)
    if request.propagation not in PROPAGATIONS:
        faults.add("propagation", NOT_SUPPORTED, f"value {request.propagation} means nothing here")
    has_grace = request.HasField("grace_period_seconds")
    grace = faults.grace_seconds(request.grace_period_seconds, present=has_grace)
    faults.refuse()
    identity = identity_of("Delete", request.request_id, request)
    encoder = AnswerEncoder[DeleteAnswer, pb.DeleteResponse](delete_response)
    call = DeleteCall(
        cluster=cluster,
        refs=refs,
        propagation=PROPAGATIONS[request.propagation],
        allow_missing=request.allow_missing,
        force=request.force,
        grace_period_seconds=grace,
        validate_only=request.validate_only,
        identity=identity,
        encode_answer=encoder.to_bytes if identity is not None else None,
    )
    return call, encoder


def _delete_refs(request: pb.DeleteRequest, faults: RequestFaults) -> list[DeleteRef]:
    refs: list[DeleteRef] = []
    seen: dict[tuple[str, str, str], int] = {}
    for index, target in enumerate(request.refs):
        field = f"refs[{index}]"
        key = faults.ref(target.ref, f"{field}.ref", present=target.HasField("ref"))
        first = seen.setdefault(key, index)
        if first != index and key.name:
            faults.add(f"{field}.ref", DUPLICATE, f"{key} is refs[{first}] already")
        faults.revision(target.resource_version, f"{field}.resourceVersion")
        refs.append(DeleteRef(key, target.ref.uid, target.resource_version))
    return refs


def _limits(limits: bounds.ServingLimits) -> server_pb2.Limits:
    return server_pb2.Limits(
        max_request_bytes=bounds.MAX_REQUEST_BYTES,
        max_response_bytes=bounds.MAX_RESPONSE_BYTES,
        max_object_bytes=bounds.MAX_OBJECT_BYTES,
        max_annotations_bytes=MOST_ANNOTATION_BYTES,
        max_objects=bounds.MAX_OBJECTS,
        max_page_size=bounds.MAX_PAGE_SIZE,
        max_groups_per_hierarchy=bounds.MAX_GROUPS_PER_HIERARCHY,
        max_pods_per_unit=bounds.MAX_PODS_PER_UNIT,
        max_watches=limits.watches,
        max_unary_calls=limits.unary_calls,
        max_wait=Duration(seconds=bounds.MAX_WAIT_SECONDS),
        max_request_id_length=bounds.MAX_REQUEST_ID_LENGTH,
    )
