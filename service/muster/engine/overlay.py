"""Changes on top of a copy of a cluster: objects taken away, objects put as Apply would, nodes drained (api.md, Simulate).

In this order, each a revision of the copy with all that follows from it. Whatever Apply would refuse is refused here,
with the same faults below the paths of the request; nothing is ever stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import TypeVar

from muster.engine.api import ApplyCall, ObjectRefusal
from muster.engine.applying import ApplyPlan, stateless_faults
from muster.engine.cluster import Cluster
from muster.engine.conditions import UNSCHEDULABLE
from muster.engine.errors import InvalidArgumentError, Precondition
from muster.engine.mutation import Mutation
from muster.engine.slices import finished
from muster.model.meta import NODE, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import PENDING, Pod, PodBatch
from muster.model.variations import varied
from muster.validation.objects import Rules
from muster.validation.violations import INVALID, Violation

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class SentObjects:
    """Objects of a request, None where decoding refused one; `paths` are their JSON prefixes, as in an ApplyCall."""

    objects: Sequence[ClusterObject | PodBatch | None] = ()
    paths: Sequence[str] = ()
    refusals: Sequence[ObjectRefusal] = ()


@dataclass(frozen=True, slots=True)
class Overlay:
    """What is changed before anything is decided. `drained` are names of nodes; removed: None where a request is at fault.

    removed_uids: the uid that each of `removed` must have, "" for any.
    """

    sent: SentObjects = SentObjects()
    removed: tuple[ObjectKey | None, ...] = ()
    removed_uids: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()


def lay_over(cluster: Cluster, overlay: Overlay, now_us: int) -> list[Violation]:
    """Make the changes; what is wrong with them, in the order of the request's fields: all or nothing is right then.

    Raises ConflictError and FailedPreconditionError as Apply does.
    """
    removed = list(_remove(cluster, overlay.removed, now_us))
    applied = put_objects(cluster, overlay.sent, now_us)
    return [*applied, *removed, *_drain(cluster, overlay.drained, now_us)]


def put_objects(cluster: Cluster, sent: SentObjects, now_us: int) -> list[Violation]:
    """Put objects as Apply does; if there are faults, none is put. Raises ConflictError, FailedPreconditionError."""
    if not sent.objects:
        return []
    mutation = Mutation(cluster, now_us)
    call = ApplyCall(cluster.name, sent.objects, sent.paths, sent.refusals)
    plan = ApplyPlan(cluster, call, now_us, _SimulatedIds(mutation.revision))
    try:
        admitted = finished(plan.admit(finished(stateless_faults(call, Rules()))))
    except InvalidArgumentError as error:
        return error.violations
    plan.write(admitted, mutation)
    mutation.finish()
    return []


def uid_conflicts(
    cluster: Cluster, keys: Iterable[ObjectKey | None], uids: Iterable[str]
) -> list[Precondition]:
    """The objects that are there and have another uid than the one they are named with."""
    conflicts: list[Precondition] = []
    for key, uid in zip(keys, uids, strict=False):
        found = cluster.state.get(key) if key is not None and uid else None
        if found is not None and found.uid != uid:
            text = f"has the uid {found.uid}, not {uid}"
            conflicts.append(Precondition("UID_MISMATCH", str(key), text))
    return conflicts


class _SimulatedIds:
    """Uids of objects that are put in one go."""

    def __init__(self, revision: int) -> None:
        self._made = (f"simulated-{revision}-{number}" for number in count(1))

    def uid(self) -> str:
        return next(self._made)

    def uids(self, number: int) -> list[str]:
        return list(islice(self._made, number))


def _remove(cluster: Cluster, keys: Sequence[ObjectKey | None], now_us: int) -> Iterator[Violation]:
    """Take objects away at once; nothing protects them, and nothing else goes with them."""
    mutation = Mutation(cluster, now_us)
    for index, key in enumerate(keys):
        if key is None:
            continue
        if cluster.state.get(key) is None:
            yield Violation(f"overlay.removed[{index}]", INVALID, f"{key} does not exist")
        else:
            mutation.remove(key)
    mutation.finish()


def _drain(cluster: Cluster, names: Sequence[str], now_us: int) -> Iterator[Violation]:
    mutation = Mutation(cluster, now_us)
    for index, name in enumerate(names):
        node = cluster.state.get(ObjectKey(NODE, "", name))
        if isinstance(node, Node):
            mutation.put(varied(node, unschedulable=True, resource_version=mutation.revision))
            for pod in cluster.state.pods_on(name):
                _send_away(mutation, pod)
        else:
            yield Violation(f"overlay.drainedNodes[{index}]", INVALID, f"Node {name} does not exist")
    mutation.finish()


def _send_away(mutation: Mutation, pod: Pod) -> None:
    """A pod of a drained node waits for another one; one that was on its way out is gone, and one that ended stays."""
    if pod.is_terminal:
        return
    if pod.is_leaving:
        mutation.remove(pod.key)
        return
    message = f"node {pod.node_name} is drained"
    status = mutation.pod_conditions.waiting(pod.status, UNSCHEDULABLE, message, pod.generation)
    status = varied(status, phase=PENDING, start_us=None)
    mutation.put(varied(pod, node_name="", status=status, resource_version=mutation.revision))
