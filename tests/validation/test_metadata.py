from dataclasses import replace

import pytest

from muster.model.meta import KubernetesObject, OwnerReference
from muster.model.objects import ClusterObject
from tests.validation.examples import BUDGET, CLASS, COMPOSITE, NODE, POD, POD_GROUP, WORKLOAD, faults

OWNER = OwnerReference("batch/v1", "Job", "training", "u-1", controller=True)


def _owned(*owners: OwnerReference) -> KubernetesObject:
    return replace(POD_GROUP, owner_references=owners)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(replace(POD_GROUP, name=""), ("metadata.name", "REQUIRED"), id="no name"),
        pytest.param(replace(POD_GROUP, name="A"), ("metadata.name", "INVALID"), id="name in capitals"),
        pytest.param(replace(POD_GROUP, uid="u" * 254), ("metadata.uid", "TOO_MANY"), id="long uid"),
        pytest.param(
            replace(POD_GROUP, resource_version=-1),
            ("metadata.resourceVersion", "INVALID"),
            id="negative revision",
        ),
        pytest.param(
            replace(POD_GROUP, namespace="a.b"), ("metadata.namespace", "INVALID"), id="namespace with a dot"
        ),
        pytest.param(
            replace(NODE, namespace="default"), ("metadata.namespace", "INVALID"), id="node in a namespace"
        ),
        pytest.param(
            replace(CLASS, namespace="default"), ("metadata.namespace", "INVALID"), id="class in a namespace"
        ),
        pytest.param(
            replace(POD_GROUP, labels={"-a": "b"}), ("metadata.labels[-a]", "INVALID"), id="label key"
        ),
        pytest.param(
            replace(POD_GROUP, labels={"a": "b c"}), ("metadata.labels[a]", "INVALID"), id="label value"
        ),
        pytest.param(
            replace(POD_GROUP, annotations={"-a": ""}),
            ("metadata.annotations[-a]", "INVALID"),
            id="annotation key",
        ),
        pytest.param(
            replace(POD_GROUP, annotations={"a": "x" * 256 * 1024}),
            ("metadata.annotations", "TOO_MANY"),
            id="annotations too large",
        ),
        pytest.param(
            replace(POD_GROUP, finalizers=("a", "b c")),
            ("metadata.finalizers[1]", "INVALID"),
            id="finalizer syntax",
        ),
        pytest.param(
            _owned(replace(OWNER, api_version="")),
            ("metadata.ownerReferences[0].apiVersion", "REQUIRED"),
            id="owner without version",
        ),
        pytest.param(
            _owned(replace(OWNER, kind="")),
            ("metadata.ownerReferences[0].kind", "REQUIRED"),
            id="owner without kind",
        ),
        pytest.param(
            _owned(replace(OWNER, name="")),
            ("metadata.ownerReferences[0].name", "REQUIRED"),
            id="owner without name",
        ),
        pytest.param(
            _owned(replace(OWNER, uid="")),
            ("metadata.ownerReferences[0].uid", "REQUIRED"),
            id="owner without uid",
        ),
        pytest.param(
            _owned(replace(OWNER, kind="k" * 254)),
            ("metadata.ownerReferences[0].kind", "INVALID"),
            id="owner with a long kind",
        ),
        pytest.param(
            _owned(OWNER, replace(OWNER, uid="u-2")),
            ("metadata.ownerReferences[1].controller", "INVALID"),
            id="two controllers",
        ),
    ],
)
def test_wrong_metadata_is_refused_at_its_field(wrong: KubernetesObject, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "example",
    [NODE, POD, POD_GROUP, COMPOSITE, WORKLOAD, CLASS, BUDGET],
    ids=lambda each: type(each).__name__,
)
def test_the_metadata_of_every_kind_is_looked_at(example: ClusterObject) -> None:
    wrong = replace(example, name="A", finalizers=("b c",))

    assert set(faults(wrong)) == {("metadata.name", "INVALID"), ("metadata.finalizers[0]", "INVALID")}


def test_server_owned_metadata_is_never_wrong() -> None:
    sent = replace(POD_GROUP, generation=-1, creation_us=-1, deletion_us=-1, deletion_grace_seconds=-1)

    assert faults(sent) == []


def test_annotations_may_take_256_kib() -> None:
    assert faults(replace(POD_GROUP, annotations={"a": "x" * (256 * 1024 - 1)})) == []
