"""What an Apply with `wait` tells beside its results: the decisions on the units that its objects are part of.

Decides which units these are, as the request names them, and how many there may be. What a unit waits for is the engine's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from muster.engine.api import ScheduleCall, SchedulingEngine
from muster.engine.errors import FailedPreconditionError, NotFoundError
from muster.engine.ports import DecisionRecord
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_GROUP, ObjectKey
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.rpc.decisions import fitted
from muster.rpc.limits import PAGE_BYTES
from muster.rpc.request_checks import RequestFaults
from muster.v1 import cluster_service_pb2 as pb
from muster.validation.violations import INVALID, TOO_MANY

MAX_UNITS_WAITED_FOR = 1_000


def wait_of(request: pb.ApplyRequest, faults: RequestFaults) -> float | None:
    """For how many seconds the call waits for its units; None if not at all."""
    seconds = faults.wait_seconds(request.wait, present=request.HasField("wait"))
    if seconds is not None and request.validate_only:
        faults.add("wait", INVALID, "what is only checked is not scheduled: there is nothing to wait for")
    return seconds


def awaited_units(
    objects: Sequence[ClusterObject | PodBatch | None], faults: RequestFaults
) -> list[ObjectKey]:
    """An object of each unit that the request's objects are about, in their order: a group below no other of them, or a pod."""
    parents = {_key(each): _parent(each) for each in objects if isinstance(each, AnyGroup)}
    found = dict[ObjectKey, ObjectKey]()
    for part, named in _parts(objects):
        top = _top(part, parents)
        found.setdefault(top, top if top in parents else named)
    if len(found) > MAX_UNITS_WAITED_FOR:
        faults.add("wait", TOO_MANY, f"at most {MAX_UNITS_WAITED_FOR} units, not {len(found)}")
    return list(found.values())


async def add_decisions(
    response: pb.ApplyResponse,
    engine: SchedulingEngine,
    cluster: str,
    units: Sequence[ObjectKey],
    wait_seconds: float,
) -> None:
    """Wait for the units, all at once, and add their outcomes; of those of which there is one."""
    waits = [_decided(engine, ScheduleCall(cluster, unit, wait_seconds=wait_seconds)) for unit in units]
    records = [await waits[0]] if len(waits) == 1 else await asyncio.gather(*waits)
    told = {each.decision.unit: each for each in records if each is not None}
    room = (PAGE_BYTES - response.ByteSize()) // max(1, len(told))
    response.decisions.extend(fitted(cluster, record, room) for record in told.values())


async def _decided(engine: SchedulingEngine, call: ScheduleCall) -> DecisionRecord | None:
    """The unit's latest outcome; None if it was never tried, is gone by now, or is another scheduler's."""
    try:
        return (await engine.schedule(call)).decision
    except NotFoundError:
        return None
    except FailedPreconditionError as error:
        if error.reason != "FOREIGN_SCHEDULER":
            raise
        return None


def _top(part: ObjectKey, parents: Mapping[ObjectKey, ObjectKey]) -> ObjectKey:
    """The highest group of the request above it; of groups that are above each other in a circle any one."""
    seen = {part}
    while (parent := parents.get(part)) is not None and parent in parents and parent not in seen:
        part = parent
        seen.add(part)
    return part


def _key(group: AnyGroup) -> ObjectKey:
    kind = POD_GROUP if isinstance(group, PodGroup) else COMPOSITE_POD_GROUP
    return ObjectKey(kind, group.namespace or DEFAULT_NAMESPACE, group.name)


def _parent(group: AnyGroup) -> ObjectKey:
    namespace = group.namespace or DEFAULT_NAMESPACE
    return ObjectKey(COMPOSITE_POD_GROUP, namespace, group.spec.parent_composite_pod_group_name)


def _parts(
    objects: Sequence[ClusterObject | PodBatch | None],
) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """The groups that objects are or have pods of, pods without a group, and in each case an object to ask by.

    Pods of one group that follow each other are one part.
    """
    last = None
    for sent in objects:
        names: Sequence[str]
        if isinstance(sent, Pod):
            if sent.group and (sent.namespace, sent.group) == last:
                continue
            template, names = sent, (sent.name,)
        elif isinstance(sent, PodBatch):
            template, names = sent.template, sent.names
        elif isinstance(sent, AnyGroup):
            yield _key(sent), _key(sent)
            continue
        else:
            continue
        namespace, group = template.namespace or DEFAULT_NAMESPACE, template.group
        last = template.namespace, group
        for name in names[:1] if group else names:
            pod = ObjectKey(POD, namespace, name)
            yield ObjectKey(POD_GROUP, namespace, group) if group else pod, pod
