import tracemalloc
from dataclasses import replace

import pytest

from muster.model.pod import Pod
from muster.rpc.codec import pod as codec
from muster.rpc.codec.pod import PodDecoder, PodEncoder
from muster.v1 import pod_pb2 as pb
from tests.validation.examples import POD


def _message(name: str = "p-0", group: str = "g", uid: str = "", resource_version: int = 0) -> pb.Pod:
    message = pb.Pod()
    message.metadata.name = name
    message.metadata.labels.update({"app": "web", "tier": "front", "zone": "a"})
    message.spec.containers.add(name="main").resources.requests.update({"cpu": "1", "memory": "1Gi"})
    message.spec.scheduling_group.pod_group_name = group
    message.metadata.uid = uid
    message.metadata.resource_version = resource_version
    return message


def _decoded(decoder: PodDecoder, message: pb.Pod) -> Pod:
    pod, _ = decoder.decode(message)
    return pod


def test_pods_of_one_shape_share_what_they_have_in_common() -> None:
    decoder = PodDecoder()

    first = _decoded(decoder, _message("p-0"))
    second = _decoded(decoder, _message("p-1"))

    assert (first.name, second.name) == ("p-0", "p-1")
    assert first.spec is second.spec
    assert first.labels is second.labels
    assert first.status is second.status


def test_what_each_pod_has_for_itself_is_no_part_of_its_shape() -> None:
    decoder = PodDecoder()

    first = _decoded(decoder, _message())
    second = _decoded(decoder, _message("p-1", uid="u-1", resource_version=7))

    assert second == replace(first, name="p-1", uid="u-1", resource_version=7)
    assert second.spec is first.spec


def test_pods_on_different_nodes_share_their_spec() -> None:
    decoder = PodDecoder()
    bound = _message()
    bound.spec.node_name = "node-1"

    assert _decoded(decoder, bound).node_name == "node-1"
    assert _decoded(decoder, bound).spec is _decoded(decoder, _message()).spec


def test_pods_of_different_groups_and_gates_share_their_spec_and_labels() -> None:
    decoder = PodDecoder()
    gated = _message(group="other")
    gated.spec.scheduling_gates.add(name="x/y")

    first, second = _decoded(decoder, _message()), _decoded(decoder, gated)

    assert (first.group, first.gates, second.group, second.gates) == ("g", (), "other", ("x/y",))
    assert first.spec is second.spec
    assert first.labels is second.labels


def test_pods_of_different_labels_share_their_spec() -> None:
    decoder = PodDecoder()
    other = _message()
    other.metadata.labels["rank"] = "1"

    assert _decoded(decoder, other).spec is _decoded(decoder, _message()).spec
    assert _decoded(decoder, other).labels["rank"] == "1"


def test_the_message_is_the_same_after_it_was_decoded() -> None:
    message = _message(uid="u-1", resource_version=7)
    message.spec.node_name = "node-1"
    before = pb.Pod()
    before.CopyFrom(message)

    PodDecoder().decode(message)

    assert message == before


def test_a_decoder_that_is_full_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_BYTES", 3_000)
    decoder = PodDecoder()

    pods = [_decoded(decoder, _message(group=f"g-{index}")) for index in range(20)]

    assert [pod.group for pod in pods] == [f"g-{index}" for index in range(20)]


def test_pods_that_share_nothing_take_no_more_memory_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_BYTES", 2**20)
    decoder = PodDecoder()
    _decoded(decoder, _message(group="first"))

    tracemalloc.start()
    try:
        for index in range(5_000):
            message = _message()
            message.metadata.labels["own"] = str(index)
            _decoded(decoder, message)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 2 * 2**20


def test_each_pod_is_encoded_with_what_it_has_for_itself() -> None:
    encoder = PodEncoder()
    pods = [
        POD,
        replace(POD, name="p-1", uid="u", resource_version=7, generation=3, group="h", gates=("x/y",)),
        replace(POD, name="p-2", node_name="node-1"),
        replace(POD, name="p-3", namespace="team"),
        replace(POD, name="p-4", creation_us=5_000_000),
        replace(POD, name="p-5", deletion_us=0, deletion_grace_seconds=0),
        replace(POD, name="p-6", status=replace(POD.status, phase="Running")),
        replace(POD, name="p-7", labels={"a": "b"}),
    ]
    messages = []
    for pod in pods:
        message = pb.Pod()
        encoder.encode(pod, message)
        messages.append(message)

    assert [_decoded(PodDecoder(), message) for message in messages] == pods


def test_an_encoder_that_is_full_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_VALUES", 2)
    encoder = PodEncoder()
    messages = [pb.Pod() for _ in range(5)]

    for index, message in enumerate(messages):
        encoder.encode(replace(POD, creation_us=index + 1), message)

    assert [message.metadata.creation_timestamp.nanos for message in messages] == [
        1000,
        2000,
        3000,
        4000,
        5000,
    ]


def _as_by_itself(decoder: PodDecoder, messages: list[pb.Pod]) -> bool:
    """Whether each is decoded as it is by a decoder that has seen none of the others; and in runs, too."""
    one_by_one = all(decoder.decode(each) == PodDecoder().decode(each) for each in messages)
    return one_by_one and _in_runs(messages) == [PodDecoder().decode(each)[0] for each in messages]


def _in_runs(messages: list[pb.Pod]) -> list[Pod]:
    decoder, pods = PodDecoder(), list[Pod]()
    while len(pods) < len(messages):
        pods.append(_decoded(decoder, messages[len(pods)]))
        pods += decoder.decode_like(messages[len(pods) :])
    return pods


def test_pods_that_differ_in_their_names_alone_share_all_else() -> None:
    decoder = PodDecoder()

    first, *others = [_decoded(decoder, _message(f"p-{number}")) for number in range(8, 12)]

    assert [each.name for each in others] == ["p-9", "p-10", "p-11"]
    assert all(each.group is first.group and each.spec is first.spec for each in others)


def test_a_run_ends_before_the_first_pod_that_differs_in_more_than_its_name() -> None:
    decoder = PodDecoder()
    names = ["p-0", "p-1", "p-2", "p-30", "p-4"]
    first, *others = [_message(name, group="g") for name in names]
    assert not decoder.decode_like(others)

    pod = _decoded(decoder, first)
    like = decoder.decode_like(others)

    assert [each.name for each in like] == ["p-1", "p-2"]
    assert all(each.spec is pod.spec and each.group is pod.group for each in like)


@pytest.mark.parametrize("labels", [1, 20], ids=["short metadata", "long metadata"])
@pytest.mark.parametrize("before", ["p-0", "", "x" * 127, "x" * 128, "é-0"])
def test_a_pod_behind_one_like_it_is_decoded_as_by_itself(before: str, labels: int) -> None:
    names = [before, "p-1", "p-22", "", "x" * 127, "y" * 127, "y" * 128, "z" * 128, "é-1", "ab-1", "p-3"]
    messages = [_message(name) for name in names]
    for each in messages:
        each.metadata.labels.update({f"label-{number}": "value" for number in range(labels)})

    assert _as_by_itself(PodDecoder(), messages)


def test_pods_of_a_group_behind_another_share_its_name() -> None:
    decoder = PodDecoder()

    messages = [_message(f"p-{group}-{pod}", group=f"g-{group}") for group in (7, 8, 9, 10) for pod in (0, 1)]
    pods = [_decoded(decoder, each) for each in messages]

    assert [each.group for each in pods[::2]] == ["g-7", "g-8", "g-9", "g-10"]
    assert all(one.group is other.group for one, other in zip(pods[::2], pods[1::2], strict=True))
    assert all(each.spec is pods[0].spec and each.labels is pods[0].labels for each in pods)


@pytest.mark.parametrize("label", ["", "g-1", "xg-1x", "g-2"])
@pytest.mark.parametrize("group", ["g-1", "aa", "é", "default", "p-1", "x" * 127, "x" * 128])
def test_a_pod_behind_one_of_another_group_is_decoded_as_by_itself(group: str, label: str) -> None:
    groups = [group, "g-2", "bb", "aa", "é", "", "defaulu", "g-3", "y" * 127, "y" * 128, group, "g-33"]
    messages = [_message(f"p-{place % 3}", group=each) for place, each in enumerate(groups)]
    for each in messages:
        each.metadata.labels["of"] = label
        each.spec.scheduler_name = "aaa"

    assert _as_by_itself(PodDecoder(), messages)


def test_whatever_differs_beside_the_name_is_seen() -> None:
    other_label, other_priority, gated, odd = (_message(f"q-{number}") for number in range(4))
    other_label.metadata.labels["app"] = "wob"
    other_priority.spec.priority = 7
    gated.spec.scheduling_gates.add(name="x/y")
    odd.ClearField("spec")
    messages = [
        _message("a-1"),
        other_label,
        _message("a-2"),
        other_priority,
        _message("a-3", group="h"),
        gated,
        _message("a-4", uid="u-4"),
        _message("a-5", resource_version=5),
        odd,
        _message("a-6"),
    ]

    assert _as_by_itself(PodDecoder(), messages)
