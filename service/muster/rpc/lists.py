"""List: which objects are asked for, and the pages of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.engine.api import ObjectFilter, SchedulingEngine
from muster.engine.errors import ConflictError, NotFoundError, Precondition
from muster.engine.slices import Slices
from muster.model.meta import GROUP_KINDS, POD, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PHASES
from muster.rpc.codec import encode_object
from muster.rpc.pagination import KeptLists, PageBudget, PageTokens, Position
from muster.rpc.request_checks import RequestFaults
from muster.rpc.selectors import compiled
from muster.v1 import cluster_service_pb2 as pb
from muster.validation.violations import INVALID, NOT_SUPPORTED


class ObjectLister:
    """Serves List: the first page asks the engine, all others go on in what the first one kept."""

    def __init__(self, engine: SchedulingEngine, tokens: PageTokens, lists: KeptLists[ClusterObject]) -> None:
        self._engine = engine
        self._tokens = tokens
        self._lists = lists

    async def list(self, request: pb.ListRequest) -> pb.ListResponse:
        """One page. Raises InvalidArgumentError, NotFoundError, OutOfRangeError."""
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        selection = _selection(request, faults)
        size = faults.page_size(request.page_size)
        faults.refuse()
        if request.page_token:
            position = self._tokens.read(request, request.page_token)
            kept, offset = self._lists.find(position.list_id), position.offset
        else:
            await self._check_group_uid(cluster, request, selection)
            answer = await self._engine.list_objects(cluster, selection)
            kept, offset = self._lists.keep(answer.revision, answer.objects), 0
        response = pb.ListResponse(revision=kept.revision)
        end = await _fill(response, kept.elements[offset : offset + size]) + offset
        if end < len(kept.elements):
            response.next_page_token = self._tokens.make(request, Position(kept.list_id, end))
        elif offset == 0:
            # Nobody has a token for it; a list of several pages stays, since its last page may be asked for again.
            self._lists.drop(kept.list_id)
        return response

    async def _check_group_uid(self, cluster: str, request: pb.ListRequest, selection: ObjectFilter) -> None:
        if selection.group is not None and request.group.uid:
            await checked_uid(self._engine, cluster, selection.group, request.group.uid)


async def checked_uid(
    engine: SchedulingEngine, cluster: str, key: ObjectKey, uid: str
) -> tuple[ClusterObject, int]:
    """The object and the revision read. Raises NotFoundError, ConflictError UID_MISMATCH for a set uid of another."""
    found, revision = await engine.get(cluster, key)
    if uid and found.uid != uid:
        message = f"{key} has the uid {found.uid}, not {uid[:80]}"
        raise ConflictError("UID_MISMATCH", message, [Precondition("UID_MISMATCH", str(key), message)])
    return found, revision


async def refuse_other_uids(
    engine: SchedulingEngine, cluster: str, named: Iterable[tuple[ObjectKey, str]]
) -> None:
    """Raise ConflictError UID_MISMATCH with all objects that are there and have another uid than a set one."""
    conflicts: list[Precondition] = []
    for key, uid in named:
        try:
            if uid:
                await checked_uid(engine, cluster, key, uid)
        except NotFoundError:
            continue
        except ConflictError as conflict:
            conflicts += conflict.preconditions
    if conflicts:
        raise ConflictError("UID_MISMATCH", conflicts[0].description, conflicts)


async def _fill(response: pb.ListResponse, objects: Sequence[ClusterObject]) -> int:
    """Adds objects while they fit and returns how many did; other calls get their turn in between."""
    budget, slices = PageBudget(), Slices()
    for index, each in enumerate(objects):
        encoded = encode_object(each)
        if not budget.takes(encoded):
            return index
        response.objects.append(encoded)
        if slices.is_over:
            await slices.give_way()
    return len(objects)


def _selection(request: pb.ListRequest, faults: RequestFaults) -> ObjectFilter:
    known = faults.kind(request.kind, "kind")
    if known and request.namespace:
        faults.namespace(request.kind, request.namespace, "namespace")
    predicate = None
    if request.HasField("label_selector"):
        predicate = compiled(request.label_selector, "labelSelector", faults.violations)
    if known:
        _check_pod_filters(request, faults)
    return ObjectFilter(
        kinds=frozenset([request.kind]),
        namespace=request.namespace,
        matches_labels=predicate,
        node_name=request.node_name,
        unbound=request.unbound,
        deleting=request.deleting,
        group=_group(request, faults, known=known),
        phase=request.phase,
    )


def _check_pod_filters(request: pb.ListRequest, faults: RequestFaults) -> None:
    if request.kind != POD:
        for field, value in (
            ("nodeName", request.node_name),
            ("unbound", request.unbound),
            ("phase", request.phase),
        ):
            if value:
                faults.add(field, INVALID, f"only pods are listed by {field}, not {request.kind}")
        return
    if request.node_name:
        faults.name(request.node_name, "nodeName")
    if request.node_name and request.unbound:
        faults.add("unbound", INVALID, "a pod without a node is on none: give nodeName or unbound")
    if request.phase and request.phase not in PHASES:
        faults.add("phase", NOT_SUPPORTED, f"one of {', '.join(PHASES)}")


def _group(request: pb.ListRequest, faults: RequestFaults, *, known: bool) -> ObjectKey | None:
    if not request.HasField("group"):
        return None
    if known and request.kind != POD and request.kind not in GROUP_KINDS:
        faults.add("group", INVALID, f"only pods and groups are below a group, not {request.kind}")
    return faults.ref(request.group, "group", present=True, allowed=GROUP_KINDS)
