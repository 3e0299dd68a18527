from dataclasses import replace

import pytest

from muster.model.node import Node, Taint
from tests.validation.examples import NODE, faults


def _tainted(*taints: Taint) -> Node:
    return replace(NODE, taints=taints)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(
            _tainted(Taint("", "", "NoSchedule")), ("spec.taints[0].key", "REQUIRED"), id="no taint key"
        ),
        pytest.param(
            _tainted(Taint("a b", "", "NoSchedule")), ("spec.taints[0].key", "INVALID"), id="taint key"
        ),
        pytest.param(
            _tainted(Taint("a", "b c", "NoSchedule")), ("spec.taints[0].value", "INVALID"), id="taint value"
        ),
        pytest.param(_tainted(Taint("a", "b")), ("spec.taints[0].effect", "REQUIRED"), id="no effect"),
        pytest.param(
            _tainted(Taint("a", "b", "Evict")),
            ("spec.taints[0].effect", "NOT_SUPPORTED"),
            id="unknown effect",
        ),
        pytest.param(
            _tainted(Taint("a", "b", "NoExecute"), Taint("a", "c", "NoExecute")),
            ("spec.taints[1]", "DUPLICATE"),
            id="taint twice",
        ),
        pytest.param(
            replace(NODE, capacity={"cpu": "1x"}), ("status.capacity[cpu]", "INVALID"), id="malformed"
        ),
        pytest.param(
            replace(NODE, capacity={"cpu": "-1"}), ("status.capacity[cpu]", "INVALID"), id="negative"
        ),
        pytest.param(
            replace(NODE, allocatable={"memory": "9223372036854775808"}),
            ("status.allocatable[memory]", "INVALID"),
            id="over 2^63-1",
        ),
        pytest.param(
            replace(NODE, allocatable={"cpu": "9223372036854775808m"}),
            ("status.allocatable[cpu]", "INVALID"),
            id="cpu over 2^63-1 milli",
        ),
        pytest.param(
            replace(NODE, allocatable={"example.com/gpu": "500m"}),
            ("status.allocatable[example.com/gpu]", "INVALID"),
            id="half an extended resource",
        ),
        pytest.param(
            replace(NODE, allocatable={"a b": "1"}),
            ("status.allocatable[a b]", "INVALID"),
            id="resource name",
        ),
    ],
)
def test_a_wrong_node_is_refused_at_its_field(wrong: Node, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


def test_one_key_may_have_taints_of_several_effects() -> None:
    assert faults(_tainted(Taint("a", "b", "NoExecute"), Taint("a", "b", "NoSchedule"))) == []


def test_the_largest_amount_is_accepted() -> None:
    assert faults(replace(NODE, allocatable={"memory": "9223372036854775807"})) == []
