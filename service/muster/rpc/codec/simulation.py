"""Simulate from bytes to bytes, for the process that simulates: decoding and encoding cost the server nothing there.

Decides what is left out of an answer that is larger than a response may be. Imports neither gRPC nor a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.engine.api import ObjectRefusal
from muster.engine.aside import Setting
from muster.engine.cluster import Cluster
from muster.engine.overlay import Overlay, SentObjects
from muster.engine.side_process import OutOfTimeError
from muster.engine.simulation import Simulation, SimulationAnswer, simulate
from muster.engine.simulation_totals import DomainUse, ResourceUse, Totals
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.model.resources import quantity_text
from muster.rpc.codec.decision import encode_decision
from muster.rpc.codec.objects import decode_object, object_path
from muster.rpc.limits import PAGE_BYTES
from muster.v1 import decision_pb2, object_pb2, simulation_pb2
from muster.v1 import scheduler_service_pb2 as pb
from muster.validation.violations import Violation


@dataclass(frozen=True, slots=True)
class SimulateQuestion:
    """A request as it came, its references checked. faults: what was found wrong with it before its objects were read.

    removed: None in place of references that are at fault. Answers with the bytes of a SimulateResponse.
    """

    request: bytes
    units: tuple[ObjectKey, ...] = ()
    removed: tuple[ObjectKey | None, ...] = ()
    faults: tuple[Violation, ...] = ()

    def __call__(self, cluster: Cluster, setting: Setting) -> bytes:
        """Simulate on this cluster, which is a copy. Raises the refusals of `simulate`."""
        try:
            return self._response(cluster, setting).SerializeToString()
        except OutOfTimeError:
            return pb.SimulateResponse(partial=True).SerializeToString()

    def _response(self, cluster: Cluster, setting: Setting) -> pb.SimulateResponse:
        request = pb.SimulateRequest.FromString(self.request)
        simulation = Simulation(
            base=_sent(request.inline.objects, "inline.") if request.HasField("inline") else None,
            overlay=Overlay(
                sent=_sent(request.overlay.objects, "overlay."),
                removed=self.removed,
                removed_uids=tuple(each.uid for each in request.overlay.removed),
                drained=tuple(request.overlay.drained_nodes),
            ),
            units=self.units,
            unit_uids=tuple(each.uid for each in request.units),
            with_preemption=not request.without_preemption,
            faults=self.faults,
        )
        return encode_simulation(cluster.name, simulate(cluster, simulation, setting))


def encode_simulation(cluster: str, answer: SimulationAnswer) -> pb.SimulateResponse:
    """The answer as a message that is not too large for a response."""
    response = pb.SimulateResponse(
        decisions=[encode_decision(cluster, record) for record in answer.decisions],
        totals=_encode_totals(answer.totals),
        partial=answer.is_partial,
        revision=answer.revision,
    )
    _fit(response)
    return response


def _sent(messages: Sequence[object_pb2.Object], prefix: str) -> SentObjects:
    objects: list[ClusterObject | PodBatch | None] = []
    paths: list[str] = []
    refusals: list[ObjectRefusal] = []
    for index, message in enumerate(messages):
        path = prefix + object_path(message, index)
        decoded, violations = decode_object(message, path)
        objects.append(decoded)
        paths.append(path)
        if violations:
            refusals.append(ObjectRefusal(index, tuple(violations)))
    return SentObjects(objects, paths, refusals)


def _encode_totals(totals: Totals) -> simulation_pb2.SimulationTotals:
    return simulation_pb2.SimulationTotals(
        units=totals.units,
        scheduled_units=totals.scheduled_units,
        preempting_units=totals.preempting_units,
        unscheduled_units=totals.unscheduled_units,
        placed_pods=totals.placed_pods,
        pending_pods=totals.pending_pods,
        victim_pods=totals.victim_pods,
        budget_violations=totals.budget_violations,
        resources=_encode_uses(totals.resources),
        domains=[_encode_domain(each) for each in totals.domains],
    )


def _encode_domain(domain: DomainUse) -> simulation_pb2.DomainUse:
    key, value = domain.domain
    return simulation_pb2.DomainUse(
        key=key, value=value, nodes=domain.nodes, resources=_encode_uses(domain.resources)
    )


def _encode_uses(uses: Iterable[ResourceUse]) -> list[simulation_pb2.ResourceUse]:
    return [
        simulation_pb2.ResourceUse(
            resource=use.resource,
            allocatable=quantity_text(use.resource, use.allocatable),
            used=quantity_text(use.resource, use.used),
            used_before=quantity_text(use.resource, use.used_before),
            utilization=use.used / use.allocatable if use.allocatable else 0.0,
            fragmentation=use.fragmentation,
        )
        for use in uses
    ]


def _fit(response: pb.SimulateResponse) -> None:
    """Leave out the columns of pods, then what explains, then domains, as far as that is needed; largest first."""
    for strip in (_without_assignments, _without_preemption_columns, _without_children):
        excess = response.ByteSize() - PAGE_BYTES
        for decision in sorted(response.decisions, key=lambda each: -each.ByteSize()) if excess > 0 else ():
            before = decision.ByteSize()
            strip(decision)
            excess -= before - decision.ByteSize()
            if excess <= 0:
                break
    if response.ByteSize() > PAGE_BYTES:
        response.totals.ClearField("domains")


def _without_assignments(decision: decision_pb2.Decision) -> None:
    decision.ClearField("assignments")
    decision.assignments_omitted = True


def _without_preemption_columns(decision: decision_pb2.Decision) -> None:
    if decision.HasField("preemption"):
        decision.preemption.ClearField("reprieved")
        decision.preemption.ClearField("nominations")


def _without_children(decision: decision_pb2.Decision) -> None:
    if decision.HasField("result"):
        decision.result.ClearField("children")
