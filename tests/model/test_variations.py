import dataclasses

import pytest

from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.variations import alike, variation, varied_all

POD = Pod(name="p", namespace="n", uid="u", labels={"a": "b"}, group="g", gates=("x/y",))


def test_a_variation_equals_what_replace_makes() -> None:
    vary = variation(Pod, "name", "node_name")

    assert vary(POD, "q", "node-1") == dataclasses.replace(POD, name="q", node_name="node-1")


def test_a_variation_shares_the_values_that_it_does_not_replace() -> None:
    varied = variation(Pod, "name")(POD, "q")

    assert varied.labels is POD.labels
    assert varied.spec is POD.spec


def test_a_variation_is_frozen_as_its_original_is() -> None:
    varied = variation(Pod, "name")(POD, "q")

    assert type(varied) is Pod
    with pytest.raises(dataclasses.FrozenInstanceError):
        varied.name = "r"  # type: ignore[misc]


def test_a_variation_leaves_its_original_as_it_was() -> None:
    variation(Pod, "name")(POD, "q")

    assert POD.name == "p"


def test_other_kinds_vary_too() -> None:
    assert variation(Node, "unschedulable")(Node(name="n"), True).unschedulable


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="Pod has no fields \\['nmae'\\]"):
        variation(Pod, "nmae")


def test_a_variation_with_another_name_has_the_key_of_that_name() -> None:
    before = Pod(name="a", namespace="n")
    assert before.key == ObjectKey("Pod", "n", "a")

    assert variation(Pod, "name")(before, "b").key == ObjectKey("Pod", "n", "b")
    assert variation(Pod, "name", kind="Pod")(before, "b").key == ObjectKey("Pod", "n", "b")
    assert variation(Pod, "name", "namespace", kind="Pod")(before, "b", "m").key == ObjectKey("Pod", "m", "b")


def test_many_records_vary_each_by_its_values() -> None:
    records = [POD, dataclasses.replace(POD, name="q", labels={})]

    made = varied_all(Pod, "uid", "node_name")(records, ["1", "2"], ["node-1", "node-2"])

    assert made == [
        dataclasses.replace(records[0], uid="1", node_name="node-1"),
        dataclasses.replace(records[1], uid="2", node_name="node-2"),
    ]
    assert [each.key.name for each in made] == ["p", "q"]


def test_many_records_with_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        varied_all(Pod, "uid")([POD, POD], ["1"])


def test_records_are_alike_only_if_all_have_the_same_object_in_each_field() -> None:
    same = [POD, dataclasses.replace(POD, name="q")]
    other = dataclasses.replace(POD, labels=dict(POD.labels))

    assert alike(Pod, "labels")([POD])
    assert alike(Pod, "labels", "uid")(same)
    assert not alike(Pod, "uid", "labels")([*same, other])
    assert alike(Pod, "uid")([*same, other])
