"""Manifests become objects as the descriptors say; what does not fit is refused, what is not read is reported."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from muster.client.manifest_documents import Source
from muster.client.manifest_fields import INT_OR_STRINGS, QUANTITIES, WRITTEN_AS_NUMBERS
from muster.client.manifests import ManifestError, Manifests, object_of, read_manifests
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import WorkloadReference

# Maps of texts that are no quantities.
LABELS = {
    "muster.v1.LabelSelector.match_labels",
    "muster.v1.ObjectMeta.annotations",
    "muster.v1.ObjectMeta.labels",
    "muster.v1.PodSpec.node_selector",
}


def _read(text: str, *, match_version: bool = False) -> Manifests:
    return read_manifests([Source("f.yaml", text)], match_version=match_version)


def _faults(text: str) -> dict[str, str]:
    with pytest.raises(ManifestError) as caught:
        _read(text)
    return {fault.field: fault.description for fault in caught.value.faults}


def _pod(spec: str, metadata: str = "name: p") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec: {{{spec}}}\n"


def _fields_below(descriptor: Descriptor, seen: set[str]) -> Iterator[FieldDescriptor]:
    if descriptor.full_name in seen:
        return
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        yield field
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            yield from _fields_below(field.message_type, seen)


def test_every_map_of_the_contract_is_known_as_labels_or_as_quantities() -> None:
    fields = _fields_below(Object.DESCRIPTOR, set())
    maps = {
        field.full_name
        for field in fields
        if field.message_type is not None and field.message_type.GetOptions().map_entry
    }

    assert maps == LABELS | QUANTITIES


def test_every_field_that_may_be_a_number_exists() -> None:
    names = {field.full_name for field in _fields_below(Object.DESCRIPTOR, set())}

    assert names >= WRITTEN_AS_NUMBERS
    assert INT_OR_STRINGS


@pytest.mark.parametrize(
    ("api_version", "kind", "field"),
    [
        ("v1", "Node", "node"),
        ("v1", "Pod", "pod"),
        ("policy/v1", "PodDisruptionBudget", "pod_disruption_budget"),
        ("scheduling.k8s.io/v1", "PriorityClass", "priority_class"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup", "pod_group"),
        ("scheduling.k8s.io/v1alpha2", "Workload", "workload"),
        ("scheduling.k8s.io/v1alpha3", "PodGroup", "pod_group"),
        ("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "composite_pod_group"),
        ("scheduling.k8s.io/v1beta1", "Workload", "workload"),
        ("scheduling.k8s.io/v1", "PodGroup", "pod_group"),
    ],
)
def test_api_version_and_kind_choose_the_object(api_version: str, kind: str, field: str) -> None:
    manifests = _read(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n")

    assert manifests.objects[0].WhichOneof("kind") == field
    assert getattr(manifests.objects[0], field).metadata.name == "x"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param("apiVersion: apps/v1\nkind: Deployment", "objects[0].kind", id="a kind of others"),
        pytest.param("apiVersion: v2\nkind: Pod", "objects[0].apiVersion", id="a version of the future"),
        pytest.param("kind: Pod", "objects[0].apiVersion", id="no version"),
        pytest.param("apiVersion: v1", "objects[0].kind", id="no kind"),
        pytest.param("apiVersion: scheduling.k8s.io/v1alpha2\nkind: CompositePodGroup", "objects[0].apiVersion", id="older than the kind"),
        pytest.param("- a", "objects[0]", id="no mapping"),
        pytest.param("apiVersion: [v1]\nkind: Pod", "objects[0].apiVersion", id="a list for a version"),
        pytest.param("apiVersion: v1\nkind: {Pod: 1}", "objects[0].kind", id="a mapping for a kind"),
    ],
)  # fmt: skip
def test_a_document_that_is_no_object_of_ours_is_a_fault(text: str, field: str) -> None:
    assert list(_faults(text)) == [field]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2", "2"),
        ("0.5", "0.5"),
        ("'500m'", "500m"),
        ("1e3", "1000"),
        ("12345678901234567890", "12345678901234567890"),
    ],
)
def test_a_quantity_may_be_a_number_and_keeps_its_value(written: str, expected: str) -> None:
    manifests = _read(_pod(f"containers: [{{name: a, resources: {{requests: {{cpu: {written}}}}}}}]"))

    assert manifests.objects[0].pod.spec.containers[0].resources.requests["cpu"] == expected


def test_a_program_may_give_a_quantity_as_a_float() -> None:
    resources = {"requests": {"cpu": 2.5}}
    spec = {"containers": [{"name": "a", "resources": resources}]}

    made = object_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})

    assert made.pod.spec.containers[0].resources.requests["cpu"] == "2.5"


def test_an_int_or_string_may_be_a_number() -> None:
    text = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: 2}"

    assert _read(text).objects[0].pod_disruption_budget.spec.min_available == "2"


def test_numbers_elsewhere_stay_numbers_and_texts_stay_texts() -> None:
    pod = _read(_pod("priority: -5, terminationGracePeriodSeconds: 0, hostNetwork: true")).objects[0].pod

    assert pod.spec.priority == -5
    assert pod.spec.HasField("termination_grace_period_seconds")
    assert pod.spec.host_network


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param("nodeName: 5", "spec.nodeName", id="a number for text"),
        pytest.param("nodeSelector: {disk: 1}", "spec.nodeSelector[disk]", id="a number for a label"),
        pytest.param("nodeSelector: {1: disk}", "spec.nodeSelector[1]", id="a number as a key"),
        pytest.param("priority: high", "spec.priority", id="text for a number"),
        pytest.param("priority: 1.5", "spec.priority", id="a fraction"),
        pytest.param("priority: 2147483648", "spec.priority", id="a number too large"),
        pytest.param("hostNetwork: 'true'", "spec.hostNetwork", id="text for a truth"),
        pytest.param("containers: {name: a}", "spec.containers", id="a mapping for a list"),
        pytest.param("affinity: [a]", "spec.affinity", id="a list for a mapping"),
        pytest.param("tolerations: [5]", "spec.tolerations[0]", id="a number for a mapping"),
        pytest.param("containers: [{resources: {limits: {cpu: [1]}}}]", "spec.containers[0].resources.limits[cpu]", id="a list for a quantity"),
        pytest.param("containers: [{resources: {limits: {cpu: }}}]", "spec.containers[0].resources.limits[cpu]", id="nothing for a quantity"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_a_fault_with_the_server_s_path(spec: str, path: str) -> None:
    assert list(_faults(_pod(spec))) == [f"objects[0].pod.{path}"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param('{"nodeName": "\\ud800"}', "spec.nodeName", id="a text"),
        pytest.param('{"nodeSelector": {"disk": "\\ud800"}}', "spec.nodeSelector[disk]", id="a label"),
        pytest.param('{"nodeSelector": {"\\ud800": ""}}', "spec.nodeSelector[\ud800]", id="a key"),
        pytest.param('{"nodeSelector": {"\\ud800": null}}', "spec.nodeSelector[\ud800]", id="a key alone"),
        pytest.param('{"overhead": {"cpu": "\\ud800"}}', "spec.overhead[cpu]", id="a quantity"),
    ],
)
def test_half_a_character_is_a_fault(spec: str, path: str) -> None:
    faults = _faults(f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "spec": {spec}}}')

    assert list(faults) == [f"objects[0].pod.{path}"]


def test_a_time_that_is_none_is_a_fault() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {startTime: yesterday}"

    assert list(_faults(text)) == ["objects[0].pod.status.startTime"]


def test_all_faults_of_all_documents_come_in_one_answer() -> None:
    faults = _faults(f"{_pod('priority: high, nodeName: 5')}---\nkind: Gadget\n")

    assert list(faults) == ["objects[0].pod.spec.priority", "objects[0].pod.spec.nodeName", "objects[1].kind"]


def test_null_counts_as_left_out() -> None:
    pod = _read(_pod("priority: null, affinity: null", "name: p, creationTimestamp: null")).objects[0].pod

    assert not pod.spec.HasField("priority")
    assert not pod.spec.HasField("affinity")


def test_an_empty_mapping_is_there() -> None:
    text = "apiVersion: scheduling.k8s.io/v1alpha3\nkind: PodGroup\nspec: {schedulingPolicy: {basic: {}}}"

    assert _read(text).objects[0].pod_group.spec.scheduling_policy.HasField("basic")


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param("{workloadName: w, podGroupTemplateName: t}", id="two names"),
        pytest.param("{workload: {workloadName: w, podGroupTemplateName: t}}", id="two names under workload"),
    ],
)
def test_the_reference_of_v1alpha2_becomes_the_present_one(reference: str) -> None:
    text = (
        f"apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nspec: {{podGroupTemplateRef: {reference}}}"
    )
    manifests = _read(text)

    expected = WorkloadReference(workload_name="w", template_name="t")
    assert manifests.objects[0].pod_group.spec.workload_ref == expected
    assert manifests.dropped == ()


def test_the_disruption_mode_of_v1alpha2_becomes_the_present_one() -> None:
    template = "{name: t, disruptionMode: PodGroup}"
    text = (
        f"apiVersion: scheduling.k8s.io/v1alpha2\nkind: Workload\nspec: {{podGroupTemplates: [{template}]}}"
    )

    (read,) = _read(text).objects[0].workload.spec.pod_group_templates
    assert read.disruption_mode.HasField("all")


def test_a_field_that_is_not_read_is_counted_by_kind_and_path() -> None:
    containers = "containers: [{name: a, image: x}, {name: b, image: y}]"
    manifests = _read(f"{_pod(containers)}---\n{_pod(containers)}")

    assert [str(each) for each in manifests.dropped] == ["Pod spec.containers[].image: 4 left out"]


@pytest.mark.parametrize(
    ("spec", "marked"),
    [
        pytest.param("volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]", True, id="a claim"),
        pytest.param("volumes: [{name: v, emptyDir: {}}]", False, id="a volume on the node"),
        pytest.param("resourceClaims: [{name: r}]", True, id="a device"),
        pytest.param("runtimeClassName: sandboxed", True, id="a runtime class"),
        pytest.param("restartPolicy: Never", False, id="a restart policy"),
    ],
)
def test_a_dropped_field_that_would_rule_out_nodes_is_marked(spec: str, *, marked: bool) -> None:
    (dropped,) = _read(_pod(spec)).dropped

    assert dropped.decides_placement is marked
    assert ("where the pod may run" in str(dropped)) is marked


def test_strictly_read_a_dropped_field_is_a_fault() -> None:
    manifests = _read(_pod("containers: [{name: a, image: x}]"))

    with pytest.raises(ManifestError) as caught:
        manifests.require_nothing_dropped()
    assert [fault.field for fault in caught.value.faults] == ["objects[0].pod.spec.containers[0].image"]


@pytest.mark.parametrize(("match_version", "expected"), [(False, 0), (True, 7)])
def test_a_version_is_kept_on_demand_only(*, match_version: bool, expected: int) -> None:
    metadata = "name: p, resourceVersion: '7', generation: 3, managedFields: [{manager: m}]"
    manifests = _read(_pod("priority: 1", metadata), match_version=match_version)

    assert manifests.objects[0].pod.metadata.resource_version == expected
    assert manifests.dropped == ()
