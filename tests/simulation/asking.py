"""Simulations of a cluster of a running service, in the words of the tests."""

from __future__ import annotations

from collections.abc import Iterable

from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import CALL_SECONDS, Cluster
from tests.endtoend.service import node


class Simulated(Cluster):
    """A cluster that may be asked what would be."""

    def simulate(
        self,
        *units: str,
        objects: Iterable[Object] = (),
        removed: Iterable[ObjectRef] = (),
        drained: Iterable[str] = (),
        inline: Iterable[Object] | None = None,
        without_preemption: bool = False,
        seconds: float | None = None,
    ) -> spb.SimulateResponse:
        """What would be decided for these PodGroups, or for the whole queue."""
        request = spb.SimulateRequest(
            cluster=self.name,
            overlay=spb.Overlay(objects=objects, removed=removed, drained_nodes=drained),
            units=[ObjectRef(kind="PodGroup", name=unit) for unit in units],
            whole_queue=not units,
            without_preemption=without_preemption,
        )
        if inline is not None:
            request.inline.objects.extend(inline)
        if seconds is not None:
            request.time_limit.FromMilliseconds(int(seconds * 1000))
        return self.service.scheduler.Simulate(request, timeout=CALL_SECONDS)


def code(decision: Decision) -> str:
    return DecisionCode.Name(decision.code).removeprefix("DECISION_CODE_")


def codes(response: spb.SimulateResponse) -> dict[str, str]:
    """The outcome of each unit by its name."""
    return {decision.unit.name: code(decision) for decision in response.decisions}


def places(decision: Decision) -> dict[str, str]:
    """The node of each pod that is assigned one."""
    columns = decision.assignments
    return {pod: columns.nodes[place] for pod, place in zip(columns.pods, columns.node_index, strict=True)}


def labelled(name: str, cpu: str = "16", **labels: str) -> Object:
    made = node(name, cpu)
    made.node.metadata.labels.update(labels)
    return made
