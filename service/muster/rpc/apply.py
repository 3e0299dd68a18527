"""Apply and ApplyStream: requests of up to 20 000 objects become calls of the engine, without holding up others.

Decides the order of checks (size first), the slices in which objects are decoded, and what a stream has in work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grpc import aio

from muster.engine.api import ApplyAnswer, ApplyCall, ObjectRefusal, SchedulingEngine
from muster.engine.collector_rest import CollectorRest
from muster.engine.errors import InvalidArgumentError
from muster.engine.pod_runs import pod_runs
from muster.engine.slices import Slices
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.rpc.admission import Admission
from muster.rpc.answers import apply_response
from muster.rpc.apply_wait import add_decisions, awaited_units, wait_of
from muster.rpc.codec import ObjectPaths, decode_object, decode_pods_like, decode_right_pod
from muster.rpc.limits import APPLY_STREAM_IN_WORK, MAX_OBJECTS
from muster.rpc.replay import AnswerEncoder, apply_identity
from muster.rpc.request_checks import RequestFaults, refuse_too_many
from muster.v1 import cluster_service_pb2 as pb

_FEW, _MANY = 4, 256
"""Once so many pods of one group have followed each other, as many more are looked at together, up to a bound."""

Context = aio.ServicerContext[Any, Any]
Work = Coroutine[Any, Any, pb.ApplyResponse]


class Applier:
    """Serves both RPCs: a request is prepared (checked, decoded) in its turn, and then in work at the engine."""

    def __init__(self, engine: SchedulingEngine) -> None:
        self._engine = engine
        self._collector_rest = CollectorRest()

    async def apply(self, request: pb.ApplyRequest) -> pb.ApplyResponse:
        """The response to one Apply."""
        return await (await self._prepared("Apply", request))

    async def stream(
        self, requests: AsyncIterator[pb.ApplyRequest], context: Context, admission: Admission
    ) -> None:
        """Answers in order; the first request that is refused ends the stream with its error, and none behind it is applied.

        Of requests that the store did not take those behind may have been in work: their caller repeats them under the
        same request ids. A server that drains reads no more, and ends the stream once it has answered.
        """
        in_work: asyncio.Queue[Awaitable[pb.ApplyResponse] | None] = asyncio.Queue()
        slots = asyncio.Semaphore(APPLY_STREAM_IN_WORK)
        reading = asyncio.ensure_future(self._read(requests, in_work, slots))
        reading.add_done_callback(_note_exception)
        draining = asyncio.ensure_future(admission.draining.wait())
        draining.add_done_callback(lambda _: reading.cancel())
        try:
            sequence = 0
            while (work := await in_work.get()) is not None:
                sequence += 1
                response = await work
                await context.write(pb.ApplyStreamResponse(sequence=sequence, response=response))
                slots.release()
            admission.refuse_if_draining()
            await reading
        finally:
            draining.cancel()
            reading.cancel()

    async def _read(
        self,
        requests: AsyncIterator[pb.ApplyRequest],
        in_work: asyncio.Queue[Awaitable[pb.ApplyResponse] | None],
        slots: asyncio.Semaphore,
    ) -> None:
        """Prepares a request once the one before stands in memory: they are applied in order. None ends the queue."""
        try:
            await slots.acquire()
            async for request in requests:
                written = asyncio.Event()
                work = asyncio.ensure_future(await self._prepared("ApplyStream", request, written.set))
                work.add_done_callback(partial(_note_end, written))
                in_work.put_nowait(work)
                await written.wait()
                if _has_failed(work):
                    return
                await slots.acquire()
        finally:
            in_work.put_nowait(None)

    async def _prepared(
        self, method: str, request: pb.ApplyRequest, written: Callable[[], None] = lambda: None
    ) -> Work:
        """The work that is left once the request has been checked and decoded. Raises what refuses it."""
        count = _object_count(request)
        refuse_too_many("objects", count)
        self._collector_rest.begin(count)
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        has_cluster = not faults.violations
        faults.request_id(request.request_id)
        faults.not_empty("objects", len(request.objects))
        wait_seconds = wait_of(request, faults)
        identity = None if faults.violations else await apply_identity(method, request, cluster)
        kept = None if identity is None else await self._engine.find_replay(cluster, identity)
        if kept is not None and wait_seconds is None:
            return _kept(kept)
        paths = ObjectPaths(request.objects)
        objects, refusals = await _decoded(request, paths)
        units = [] if wait_seconds is None else awaited_units(objects, faults)
        if kept is not None:
            return self._waited(_kept(kept), cluster, units, wait_seconds)
        encoder = AnswerEncoder(apply_response(objects))
        call = ApplyCall(
            cluster=cluster,
            objects=objects,
            paths=paths,
            refusals=refusals,
            validate_only=request.validate_only,
            identity=identity,
            encode_answer=encoder.to_bytes if identity is not None else None,
            runs=pod_runs(objects),
            written=written,
        )
        if faults.violations:
            await self._refuse(faults, call, has_cluster=has_cluster)
        return self._waited(self._applied(call, encoder), cluster, units, wait_seconds)

    async def _waited(
        self, work: Work, cluster: str, units: Sequence[ObjectKey], wait_seconds: float | None
    ) -> pb.ApplyResponse:
        """The response, with what became of the units if the call waits for them; that is never kept for a repeat."""
        response = await work
        if wait_seconds is not None:
            await add_decisions(response, self._engine, cluster, units, wait_seconds)
        return response

    async def _applied(
        self, call: ApplyCall, encoder: AnswerEncoder[ApplyAnswer, pb.ApplyResponse]
    ) -> pb.ApplyResponse:
        return encoder.message(await self._engine.apply(call))

    async def _refuse(self, faults: RequestFaults, call: ApplyCall, *, has_cluster: bool) -> None:
        """Raises the faults of the request together with those of its objects, as far as they can be looked for."""
        if has_cluster and call.objects:
            try:
                await self._engine.apply(replace(call, validate_only=True))
            except InvalidArgumentError as error:
                faults.violations.extend(error.violations)
        else:
            for refusal in call.refusals:
                faults.violations.extend(refusal.violations)
        faults.refuse()


async def _kept(answer: bytes) -> pb.ApplyResponse:
    return pb.ApplyResponse.FromString(answer)


def _has_failed(work: asyncio.Future[Any]) -> bool:
    return work.done() and (work.cancelled() or work.exception() is not None)


def _note_end(written: asyncio.Event, work: asyncio.Future[Any]) -> None:
    """Nothing is written by work that has ended without it."""
    written.set()
    _note_exception(work)


def _note_exception(work: asyncio.Future[Any]) -> None:
    """Looks at the exception of work that nobody awaits any more, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()


def _object_count(request: pb.ApplyRequest) -> int:
    """Objects and names of pod batches; looks no further than needed to know that there are too many."""
    objects = len(request.objects)
    if objects > MAX_OBJECTS:
        return objects
    batches = [each.pod_batch for each in request.objects if each.HasField("pod_batch")]
    return objects + sum(max(0, len(batch.names) - 1) for batch in batches) if batches else objects


async def _decoded(
    request: pb.ApplyRequest, paths: Sequence[str]
) -> tuple[list[ClusterObject | PodBatch | None], list[ObjectRefusal]]:
    """Objects (None where refused) and the refusals; other calls get their turn in between."""
    objects: list[ClusterObject | PodBatch | None] = []
    refusals: list[ObjectRefusal] = []
    slices, messages = Slices(), list(request.objects)
    group, in_a_row = "", 0
    while (index := len(objects)) < len(messages):
        pod = decode_right_pod(messages[index])
        if pod is not None:
            objects.append(pod)
            in_a_row = in_a_row + 1 if pod.group is group else 1
            group = pod.group
            if in_a_row >= _FEW:
                like = decode_pods_like(messages[index + 1 : index + 1 + min(in_a_row, _MANY)])
                objects += like
                in_a_row += len(like)
        else:
            decoded, violations = decode_object(messages[index], paths[index])
            if violations:
                refusals.append(ObjectRefusal(index, tuple(violations)))
            objects.append(decoded)
            in_a_row = 0
        if slices.is_over:
            await slices.give_way()
    return objects, refusals
