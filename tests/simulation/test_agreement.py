"""A simulation and what then happens agree, in random cases: MUSTER_SIMULATION_CASES says how many (60 if it does not).

Each case adds a unit to a cluster that runs already, and at times a node or a budget, or takes pods away. It is
simulated, done for real, and the unit's first decision compared: placements, results, victims, how the search ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random

import pytest

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import CALL_SECONDS, WAIT_SECONDS, identity
from tests.simulation import random_cases
from tests.simulation.asking import Simulated

CASES = int(os.environ.get("MUSTER_SIMULATION_CASES", "60"))
CASES_A_CLUSTER = 20
_KINDS = {"pod": "Pod", "pod_group": "PodGroup", "composite_pod_group": "CompositePodGroup"}


def compared(decision: Decision) -> Decision:
    """What makes decisions equal, and the message; uids are made anew for objects that only a simulation had."""
    kept = Decision(
        unit=decision.unit,
        code=decision.code,
        message=decision.message,
        result=decision.result,
        assignments=decision.assignments,
        preemption=decision.preemption,
        search=decision.search,
    )
    kept.assignments.ClearField("uids")
    kept.preemption.nominations.ClearField("uids")
    return kept


def ref_of(item: Object) -> ObjectRef:
    kind, name = identity(item)
    return ObjectRef(kind=_KINDS[kind], name=name)


class Case:
    """One unit that may come, with what comes and goes beside it."""

    def __init__(self, cluster: Simulated, random: Random, number: int) -> None:
        self._cluster = cluster
        self._random = random
        self.unit = random_cases.unit(random, f"u{number}")
        self._beside = random_cases.nodes(random, 100 + number, int(random.random() < 0.2))
        if random.random() < 0.1:
            self._beside.append(random_cases.budget(random, f"b{number}"))
        bound = sorted(cluster.bound())
        leaving = random.sample(bound, min(len(bound), random.choice((0, 0, 0, 2))))
        self._leaving = [ObjectRef(kind="Pod", name=name) for name in leaving]

    def simulated(self) -> Decision:
        request = spb.SimulateRequest(
            cluster=self._cluster.name,
            units=[ref_of(self.unit[0])],
            overlay=spb.Overlay(objects=[*self._beside, *self.unit], removed=self._leaving),
        )
        answer = self._cluster.service.scheduler.Simulate(request, timeout=CALL_SECONDS)
        assert not answer.partial
        return answer.decisions[0]

    def done(self) -> Decision:
        """The first decision on the unit once all of it is there."""
        if self._leaving:
            self._delete(self._leaving)
        self._cluster.apply(*self._beside, *self.unit)
        unit = ref_of(self.unit[0])
        self._cluster.schedule(unit.kind, unit.name)
        request = spb.ListDecisionsRequest(cluster=self._cluster.name, unit=unit)
        return self._cluster.service.scheduler.ListDecisions(request, timeout=CALL_SECONDS).decisions[-1]

    def clear_up(self) -> None:
        """A unit that is not placed goes again, so that the next case finds a queue at rest."""
        if self._cluster.queue().units:
            self._delete(map(ref_of, self.unit))
            assert not self._cluster.queue().units

    def _delete(self, refs: Iterable[ObjectRef]) -> None:
        request = pb.DeleteRequest(cluster=self._cluster.name, force=True, allow_missing=True)
        request.grace_period_seconds = 0
        for ref in refs:
            request.refs.add(ref=ref)
        self._cluster.service.cluster.Delete(request, timeout=CALL_SECONDS)


@pytest.mark.timeout(WAIT_SECONDS * CASES_A_CLUSTER)
@pytest.mark.parametrize("seed", range(CASES // CASES_A_CLUSTER))
def test_a_simulation_and_what_follows_it_agree(cluster: Simulated, seed: int) -> None:
    random = Random(seed)
    cluster.apply(*random_cases.nodes(random, 0, 8))

    for number in range(CASES_A_CLUSTER):
        case = Case(cluster, random, number)
        simulated, done = case.simulated(), case.done()
        assert compared(simulated) == compared(done), f"seed {seed}, case {number}"
        case.clear_up()
