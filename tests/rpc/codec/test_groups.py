from dataclasses import replace

import pytest

from muster.model.group import CompositePodGroup, GroupSpec, PodGroup, WorkloadReference
from muster.rpc.codec import group as codec
from muster.rpc.codec.group import GroupDecoder, encode_composite, encode_pod_group
from muster.v1 import composite_pod_group_pb2 as composite_pb
from muster.v1 import pod_group_pb2 as pb
from tests.validation.examples import COMPOSITE, POD_GROUP, gang, with_group_spec


def _message(group: PodGroup) -> pb.PodGroup:
    message = pb.PodGroup()
    encode_pod_group(group, message)
    return message


def _composite_message(group: CompositePodGroup) -> composite_pb.CompositePodGroup:
    message = composite_pb.CompositePodGroup()
    encode_composite(group, message)
    return message


def _below(parent: str, workload: WorkloadReference) -> GroupSpec:
    return replace(POD_GROUP.spec, parent_composite_pod_group_name=parent, workload_ref=workload)


def test_groups_of_one_shape_share_what_they_have_in_common() -> None:
    decoder = GroupDecoder()

    first = decoder.pod_group(_message(replace(POD_GROUP, name="a", uid="u", resource_version=7)))
    second = decoder.pod_group(_message(replace(POD_GROUP, name="b")))

    assert first == replace(POD_GROUP, name="a", uid="u", resource_version=7)
    assert second == replace(POD_GROUP, name="b")
    assert first.spec is second.spec
    assert first.labels is second.labels
    assert (first.key.name, second.key.name) == ("a", "b")


@pytest.mark.parametrize(
    "other",
    [
        replace(POD_GROUP, namespace="team"),
        replace(POD_GROUP, labels={"own": "label"}),
        with_group_spec(POD_GROUP, scheduling_policy=gang(5)),
    ],
    ids=["namespace", "labels", "minimum"],
)
def test_groups_that_differ_in_more_than_names_are_told_apart(other: PodGroup) -> None:
    decoder = GroupDecoder()
    decoder.pod_group(_message(POD_GROUP))

    assert decoder.pod_group(_message(other)) == other


@pytest.mark.parametrize("workload", ["w", "p-1", "p-2"])
def test_a_group_behind_one_like_it_is_decoded_as_by_itself(workload: str) -> None:
    decoder = GroupDecoder()
    named = [
        ("a-1", "p-1"),
        ("a-2", "p-1"),
        ("a-3", "p-2"),
        ("a-4", "p-2"),
        ("b", "p-2"),
        ("a-5", ""),
        ("", "p-3"),
    ]
    named += [("a-6", "p-1"), ("x" * 128, "p-1"), ("y" * 128, "p-2"), ("a-7", "p-33"), ("a-8", "p-1")]
    groups = [
        replace(POD_GROUP, name=name, spec=_below(parent, WorkloadReference(workload, "t")))
        for name, parent in named
    ]
    groups.insert(2, replace(groups[1], uid="u", resource_version=3))
    groups.insert(5, replace(groups[1], labels={"other": "label"}))

    assert [decoder.pod_group(_message(each)) for each in groups] == groups


def test_children_of_one_parent_share_their_spec() -> None:
    decoder = GroupDecoder()

    children = [
        decoder.composite(_composite_message(replace(COMPOSITE, name=name))) for name in ("left", "right")
    ]

    assert [child.name for child in children] == ["left", "right"]
    assert children[0].spec is children[1].spec


def test_groups_that_differ_in_their_parents_are_of_one_shape() -> None:
    decoder = GroupDecoder()
    groups = [
        replace(POD_GROUP, spec=replace(POD_GROUP.spec, parent_composite_pod_group_name=parent))
        for parent in ("", "one", "other", "one", "")
    ]

    decoded = [decoder.pod_group(_message(group)) for group in groups]

    assert decoded == groups
    assert len(decoder._pod_groups._known) == 1
    assert decoded[1].labels is decoded[2].labels


def test_the_message_is_the_same_after_it_was_decoded() -> None:
    whole = replace(POD_GROUP, uid="u", resource_version=7)
    spec = replace(whole.spec, parent_composite_pod_group_name="root")
    message = _message(replace(whole, spec=spec))
    before = pb.PodGroup()
    before.CopyFrom(message)

    GroupDecoder().pod_group(message)

    assert message == before


def test_a_decoder_that_is_full_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_SHAPES", 2)
    decoder = GroupDecoder()

    groups = [replace(POD_GROUP, labels={"own": str(index)}) for index in range(5)]

    assert [decoder.pod_group(_message(group)) for group in groups] == groups
    assert len(decoder._pod_groups._known) <= 2
