"""What the writer writes, the reader reads back as it was."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from muster.client.manifest_documents import Source
from muster.client.manifest_writer import document_of, write_manifests
from muster.client.manifests import read_manifests
from muster.v1.disruption_budget_pb2 import PodDisruptionBudget, PodDisruptionBudgetSpec
from muster.v1.meta_pb2 import Condition, LabelSelector, ObjectMeta
from muster.v1.node_pb2 import Node, NodeSpec, NodeStatus, Taint
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import BasicSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from muster.v1.pod_pb2 import (
    Container,
    ContainerPort,
    Pod,
    PodBatch,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from muster.v1.priority_class_pb2 import PriorityClass
from muster.v1.workload_pb2 import PodGroupTemplate, Workload, WorkloadSpec


def _stored_pod() -> Pod:
    metadata = ObjectMeta(name="p", namespace="n", uid="u", resource_version=9, generation=2)
    metadata.creation_timestamp.FromJsonString("2026-01-31T12:00:00.5Z")
    ports = [ContainerPort(host_port=80, host_ip="10.0.0.1")]
    requests = ResourceRequirements(requests={"cpu": "0.5", "memory": "1e3"})
    spec = PodSpec(
        containers=[Container(name="c", resources=requests, ports=ports)],
        priority=0,
        termination_grace_period_seconds=0,
    )
    return Pod(
        metadata=metadata, spec=spec, status=PodStatus(conditions=[Condition(type="T", status="True")])
    )


EXAMPLES = [
    Object(pod=_stored_pod()),
    Object(node=Node(spec=NodeSpec(taints=[Taint(key="k", effect="NoSchedule")]), status=NodeStatus(capacity={"cpu": "4"}))),
    Object(pod_group=PodGroup(spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())))),
    Object(workload=Workload(spec=WorkloadSpec(pod_group_templates=[PodGroupTemplate(name="t")]))),
    Object(priority_class=PriorityClass(metadata=ObjectMeta(name="c"), value=-5, global_default=True)),
    Object(pod_disruption_budget=PodDisruptionBudget(spec=PodDisruptionBudgetSpec(max_unavailable="0", selector=LabelSelector()))),
    Object(pod_disruption_budget=PodDisruptionBudget(spec=PodDisruptionBudgetSpec(min_available="50%"))),
]  # fmt: skip


@pytest.mark.parametrize("stored", EXAMPLES, ids=lambda stored: stored.WhichOneof("kind"))
def test_an_object_survives_the_way_through_its_manifest(stored: Object) -> None:
    manifests = read_manifests([Source("f", write_manifests([stored]))], match_version=True)

    assert manifests.objects == (stored,)
    assert manifests.dropped == ()


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=4))
def test_annotations_of_any_text_survive(annotations: dict[str, str]) -> None:
    printable = {key: value for key, value in annotations.items() if _yaml_can_hold(key + value)}
    stored = Object(pod=Pod(metadata=ObjectMeta(name="p", annotations=printable)))

    assert read_manifests([Source("f", write_manifests([stored]))]).objects == (stored,)


def _yaml_can_hold(text: str) -> bool:
    return yaml.reader.Reader.NON_PRINTABLE.search(text) is None


@pytest.mark.parametrize(
    "text", ["yes", "on", "1e3", "0x10", "2026-01-31", "12:30", "null", "1_000", "", "0o7"]
)
def test_a_text_that_other_readers_take_for_something_else_is_quoted(text: str) -> None:
    stored = Object(node=Node(metadata=ObjectMeta(name="n", labels={"k": text})))

    (line,) = [
        line.strip() for line in write_manifests([stored]).splitlines() if line.strip().startswith("k:")
    ]
    assert line == f"k: '{text}'"


def test_kubernetes_reads_versions_as_text_and_counts_as_numbers() -> None:
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(resource_version=7), spec=PodDisruptionBudgetSpec(min_available="2")
    )
    document = document_of(Object(pod_disruption_budget=budget))

    assert document == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"resourceVersion": "7"},
        "spec": {"minAvailable": 2},
    }


def test_a_batch_has_no_manifest() -> None:
    with pytest.raises(ValueError, match="pod_batch"):
        document_of(Object(pod_batch=PodBatch()))
