from dataclasses import replace

import pytest

from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.validation.objects import (
    key_of,
    subject_of,
    validate,
)
from tests.validation.examples import BATCH, EXAMPLES, NODE, POD, POD_GROUP, faults


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: type(each).__name__)
def test_a_right_object_of_each_kind_has_no_fault(example: ClusterObject | PodBatch) -> None:
    assert faults(example) == []


def test_all_faults_of_an_object_are_found_at_once() -> None:
    wrong = replace(
        POD_GROUP, name="", labels={"a/b/c": "v"}, spec=replace(POD_GROUP.spec, topology=("a b",))
    )

    assert [field for field, _ in faults(wrong)] == [
        "metadata.name",
        "metadata.labels[a/b/c]",
        "spec.schedulingConstraints.topology[0].key",
    ]


def test_a_description_names_kind_namespace_and_name() -> None:
    (violation,) = validate(replace(POD_GROUP, namespace="", name="G"))

    assert violation.description.startswith("PodGroup default/G: must be a DNS subdomain")


def test_a_description_of_a_cluster_scoped_object_names_no_namespace() -> None:
    (violation,) = validate(replace(NODE, name="N"))

    assert violation.description.startswith("Node N: ")


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        pytest.param(replace(POD, namespace=""), ObjectKey("Pod", "default", "p-0"), id="default namespace"),
        pytest.param(replace(POD, namespace="x"), ObjectKey("Pod", "x", "p-0"), id="named namespace"),
        pytest.param(NODE, ObjectKey("Node", "", "node-1.example.com"), id="cluster-scoped"),
    ],
)
def test_an_object_is_stored_under_its_namespace(sent: ClusterObject, key: ObjectKey) -> None:
    assert key_of(sent) == key


def test_a_batch_is_called_by_its_first_and_last_name() -> None:
    assert subject_of(BATCH) == "PodBatch default/p-0 to p-1"
