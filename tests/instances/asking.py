"""One instance through the public API of a server: what it decided, and how long the caller waited for it.

Everything but the root is stored first, then the root, which completes the unit; then Schedule with `validate_only`.
The server schedules by itself, so its own cycle may come before the dry run. Then that first decision is the answer:
it is the one that had the whole search budget. The time is that of the call, and never less than that cycle took.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from muster.client.client import Client
from muster.client.errors import MusterError
from muster.v1.cluster_service_pb2 import ApplyRequest, DeleteClusterRequest
from muster.v1.decision_pb2 import Assignments, Decision, DecisionCode, SearchEnd
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.scheduler_service_pb2 import ListDecisionsRequest, ScheduleRequest
from tests.instances.instance import Instance
from tests.instances.objects import Sets, sets_of

PLACED = (DecisionCode.DECISION_CODE_SCHEDULED, DecisionCode.DECISION_CODE_WAITING_FOR_PREEMPTION)
FITS_NOWHERE = "it would not fit even if all units of lower priority were gone"
HOPELESS = (
    # Whatever pods leave; and a unit that lacks members is hopeless whatever the cluster is like.
    DecisionCode.DECISION_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
    DecisionCode.DECISION_CODE_GATED,
)
DECISIONS_READ = 50
REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `exhaustive`: the server says that no placement exists, as proved."""

    status: str
    placements: dict[str, str]
    evicted: tuple[str, ...]
    ms: float
    exhaustive: bool
    message: str = ""

    @property
    def is_placed(self) -> bool:
        return bool(self.placements)


async def ask(address: str, cluster: str, instance: Instance, scheduler: str = "") -> Answer:
    """Asks for one instance in a cluster of its own, which is deleted afterwards.

    An error is an answer too, with the status REFUSED. Raises MusterError if the server is not reachable.
    """
    sets = sets_of(instance, scheduler)
    async with Client(address, cluster=cluster) as client:
        await client.apply(ApplyRequest(objects=sets.surroundings))
        try:
            if sets.parts:
                await client.apply(ApplyRequest(objects=sets.parts))
            return await _decided(client, instance, sets)
        except MusterError as error:
            return Answer(REFUSED, {}, (), 0.0, exhaustive=False, message=str(error))
        finally:
            await client.delete_cluster(DeleteClusterRequest(cluster=cluster))


async def _decided(client: Client, instance: Instance, sets: Sets) -> Answer:
    await client.apply(ApplyRequest(objects=[sets.root]))
    start = time.perf_counter()
    response = await client.schedule(ScheduleRequest(unit=sets.unit, validate_only=True))
    seconds = time.perf_counter() - start
    first = await _first_decision(client, sets.unit)
    if first is None:
        return answer_of(response.decision, instance, seconds)
    return answer_of(first, instance, max(seconds, first.duration.ToTimedelta().total_seconds()))


async def _first_decision(client: Client, unit: ObjectRef) -> Decision | None:
    """The oldest decision about a unit, None if no cycle ran for it."""
    listed = await client.list_decisions(ListDecisionsRequest(unit=unit, page_size=DECISIONS_READ))
    return listed.decisions[-1] if listed.decisions else None


def answer_of(decision: Decision, instance: Instance, seconds: float) -> Answer:
    """A decision in the terms of the instance."""
    is_placed = decision.code in PLACED
    nominated = decision.preemption.nominations
    evicted = [pod.name for unit in decision.preemption.victims for pod in unit.pods]
    return Answer(
        status=DecisionCode.Name(decision.code).removeprefix("DECISION_CODE_"),
        placements=_pairs(decision.assignments) | _pairs(nominated) if is_placed else {},
        evicted=tuple(sorted(evicted)) if is_placed else (),
        ms=round(seconds * 1_000, 3),
        exhaustive=not is_placed and _is_proof(decision, instance),
        message=decision.message,
    )


def _is_proof(decision: Decision, instance: Instance) -> bool:
    """A search that looked at everything proves nothing about evictions, unless they were looked at too."""
    if decision.code in HOPELESS:
        return True
    searched_all = decision.search.end == SearchEnd.SEARCH_END_EXHAUSTED
    return searched_all and (not instance.may_evict or decision.preemption.not_possible == FITS_NOWHERE)


def _pairs(assignments: Assignments) -> dict[str, str]:
    nodes = assignments.nodes
    return {pod: nodes[index] for pod, index in zip(assignments.pods, assignments.node_index, strict=True)}
