"""Responses of many results are those that one after the other make."""

import pytest

from muster.engine.api import AppliedObject, ApplyAnswer
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.rpc.answers import APPLY_OUTCOMES, MANY, apply_response
from muster.v1 import cluster_service_pb2 as pb
from muster.validation.admission import Outcome

CREATED = [AppliedObject(Outcome.CREATED, f"00000000-0000-4000-8000-{n:012}", 7) for n in range(2 * MANY)]
UNCHANGED = [each._replace(outcome=Outcome.UNCHANGED, resource_version=3) for each in CREATED]
SHORT = AppliedObject(Outcome.CREATED, "u", 7)
COUNTED = AppliedObject(Outcome.CREATED, "", 7, created=2, unchanged=1)

RESULTS = {
    "none": [],
    "few": CREATED[:3],
    "many": CREATED,
    "two kinds": [*CREATED, *UNCHANGED, *CREATED[:2]],
    "a uid of the client's": [*CREATED[:MANY], SHORT, *CREATED[MANY:]],
    "uids of other letters": [each._replace(uid=f"\u00fc{at:04}") for at, each in enumerate(CREATED)],
    "uids that are what stands around them": [
        each._replace(uid="\x08\x01\x12" if at == 0 else f"{at:03}") for at, each in enumerate(CREATED)
    ],
    "no uids": [each._replace(uid="") for each in CREATED],
}


@pytest.mark.parametrize("results", RESULTS.values(), ids=RESULTS)
def test_results_are_those_of_the_objects_in_their_order(results: list[AppliedObject]) -> None:
    sent = [Pod(name="p")] * len(results)

    assert response(sent, results) == one_by_one(results)


def test_a_batch_among_many_pods_has_its_counts() -> None:
    results = [*CREATED[:MANY], COUNTED, *CREATED[MANY:]]
    sent: list[ClusterObject | PodBatch | None] = [Pod(name="p")] * len(results)
    sent[MANY] = PodBatch(Pod(name=""))

    made = response(sent, results)

    assert made.results[MANY].counts == pb.ApplyCounts(created=2, unchanged=1)
    assert [each.uid for each in made.results] == [each.uid for each in results]
    assert sum(each.HasField("counts") for each in made.results) == 1


def response(
    sent: list[ClusterObject | PodBatch | None] | list[Pod], results: list[AppliedObject]
) -> pb.ApplyResponse:
    return apply_response(sent)(ApplyAnswer(9, tuple(results)))


def one_by_one(results: list[AppliedObject]) -> pb.ApplyResponse:
    made = pb.ApplyResponse(revision=9)
    for each in results:
        made.results.add(
            outcome=APPLY_OUTCOMES[each.outcome], uid=each.uid, resource_version=each.resource_version
        )
    return made
