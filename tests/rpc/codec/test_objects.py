import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod, PodBatch, PodStatus
from muster.rpc.codec import decode_object, object_path
from muster.rpc.codec.objects import MAX_OBJECT_BYTES, ObjectDecoder, ObjectEncoder
from muster.v1 import node_pb2, object_pb2, pod_group_pb2, pod_pb2
from tests.rpc.codec.fields import Path, leaf_paths, read, shown, write
from tests.validation.examples import EXAMPLES

LEAVES = [path for path in leaf_paths(object_pb2.Object.DESCRIPTOR) if path[0].name != "pod_batch"]


def _decoded(message: object_pb2.Object) -> object:
    decoded, violations = ObjectDecoder().decode(message, object_path(message, 0))
    assert violations == []
    return decoded


def _round(message: object_pb2.Object) -> object_pb2.Object:
    decoded = _decoded(message)
    assert decoded is not None
    return ObjectEncoder().encode(decoded)  # type: ignore[arg-type]


def _pod(name: str = "p-0", **spec: object) -> object_pb2.Object:
    message = object_pb2.Object()
    message.pod.metadata.name = name
    message.pod.metadata.labels["app"] = "web"
    message.pod.spec.MergeFrom(pod_pb2.PodSpec(scheduler_name="s", **spec))  # type: ignore[arg-type]
    return message


@pytest.mark.parametrize("path", LEAVES, ids=shown)
def test_every_field_survives_the_way_to_the_model_and_back(path: Path) -> None:
    message = object_pb2.Object()
    write(message, path)

    assert read(_round(message), path) == read(message, path)


@pytest.mark.parametrize(
    "example",
    [each for each in EXAMPLES if not isinstance(each, PodBatch)],
    ids=lambda each: type(each).__name__,
)
def test_a_right_object_survives_the_way_to_the_wire_and_back(example: Node) -> None:
    assert _decoded(ObjectEncoder().encode(example)) == example


@given(
    st.lists(st.sampled_from(LEAVES), max_size=12),
    st.text(string.ascii_lowercase, max_size=3),
)
def test_what_was_encoded_once_is_encoded_the_same_again(paths: list[Path], name: str) -> None:
    kind = paths[0][0].name if paths else "node"
    message = object_pb2.Object()
    getattr(message, kind).metadata.name = name
    for path in paths:
        if path[0].name == kind:
            write(message, path)
    if message.HasField("pod") and message.pod.spec.HasField("scheduling_group"):
        message.pod.spec.scheduling_group.pod_group_name = "g"
    once = _round(message)

    assert _decoded(once) == _decoded(message)
    assert _round(once) == once


def test_numbers_at_zero_survive_where_zero_differs_from_unset() -> None:
    message = object_pb2.Object(pod_group=pod_group_pb2.PodGroup())
    message.pod_group.spec.priority = 0
    message.pod_group.spec.scheduling_policy.gang.min_count = 0

    spec = _round(message).pod_group.spec

    assert spec.HasField("priority")
    assert spec.scheduling_policy.gang.HasField("min_count")


def test_fields_that_were_not_set_are_not_set_afterwards() -> None:
    spec = _round(_pod()).pod.spec

    assert [field.name for field, _ in spec.ListFields()] == ["scheduler_name"]


def test_words_with_a_fixed_default_are_decoded_as_it() -> None:
    message = _pod(
        containers=[pod_pb2.Container(ports=[pod_pb2.ContainerPort(container_port=80)])],
        topology_spread_constraints=[pod_pb2.TopologySpreadConstraint()],
    )
    pod = _decoded(message)

    assert isinstance(pod, Pod)
    (spread,) = pod.spec.topology_spread_constraints
    assert pod.spec.containers[0].ports[0].protocol == "TCP"
    assert (spread.node_affinity_policy, spread.node_taints_policy) == ("Honor", "Ignore")


def test_a_phase_that_was_not_sent_is_not_taken_for_pending() -> None:
    pod = _decoded(_pod())

    assert isinstance(pod, Pod)
    assert pod.status == PodStatus(phase="")


def test_an_object_without_a_kind_is_refused_at_its_place() -> None:
    message = object_pb2.Object()

    decoded, violations = decode_object(message, object_path(message, 3))

    assert decoded is None
    assert [(each.field, each.reason) for each in violations] == [("objects[3]", "REQUIRED")]


def test_a_group_without_a_name_is_refused_since_the_model_has_no_such_thing() -> None:
    message = _pod(scheduling_group=pod_pb2.PodSchedulingGroup())

    decoded, violations = decode_object(message, object_path(message, 3))

    assert decoded is None
    assert [(each.field, each.reason) for each in violations] == [
        ("objects[3].pod.spec.schedulingGroup.podGroupName", "REQUIRED")
    ]
    assert violations[0].description.startswith("Pod default/p-0: ")


def test_a_refused_object_is_refused_with_all_its_faults() -> None:
    message = object_pb2.Object()
    message.pod_batch.template.spec.scheduling_group.SetInParent()
    message.pod_batch.template.spec.priority_class_name = "A"
    message.pod_batch.names.append("p-0")

    _, violations = decode_object(message, object_path(message, 0))

    assert [each.field for each in violations] == [
        "objects[0].podBatch.template.spec.schedulingGroup.podGroupName",
        "objects[0].podBatch.template.spec.priorityClassName",
    ]


@pytest.mark.parametrize("kind", ["node", "pod", "pod_batch"])
def test_an_object_that_is_too_large_is_refused(kind: str) -> None:
    message = object_pb2.Object()
    holder = message.pod_batch.template if kind == "pod_batch" else getattr(message, kind)
    holder.metadata.annotations["a"] = "x" * MAX_OBJECT_BYTES

    decoded, violations = decode_object(message, object_path(message, 0))

    where = {"node": "objects[0].node", "pod": "objects[0].pod", "pod_batch": "objects[0].podBatch.template"}
    assert decoded is None
    assert (where[kind], "TOO_MANY") in [(each.field, each.reason) for each in violations]


def test_a_batch_is_decoded_with_its_names() -> None:
    message = object_pb2.Object()
    message.pod_batch.template.CopyFrom(_pod("").pod)
    message.pod_batch.names.extend(["a", "b"])
    message.pod_batch.uids.extend(["u", "v"])

    batch = _decoded(message)

    assert batch == PodBatch(_decoded(_pod("")), ("a", "b"), ("u", "v"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("composite_pod_group", "objects[2].compositePodGroup."),
        ("pod_disruption_budget", "objects[2].podDisruptionBudget."),
        ("pod_batch", "objects[2].podBatch."),
    ],
)
def test_a_path_spells_the_kind_as_json_does(kind: str, path: str) -> None:
    message = object_pb2.Object()
    getattr(message, kind).SetInParent()

    assert object_path(message, 2) == path


def test_a_path_may_begin_elsewhere() -> None:
    message = object_pb2.Object(node=node_pb2.Node())

    assert object_path(message, 2, "overlay.objects") == "overlay.objects[2].node."


def test_keys_of_what_was_decoded_are_those_of_the_message() -> None:
    pod = _decoded(_pod("p-7"))

    assert isinstance(pod, Pod)
    assert pod.key == ObjectKey("Pod", "", "p-7")
