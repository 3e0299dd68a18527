from dataclasses import replace

import pytest

from muster.model.priority import PriorityClass
from tests.validation.examples import CLASS, faults


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(replace(CLASS, name="system-x"), ("metadata.name", "INVALID"), id="reserved name"),
        pytest.param(replace(CLASS, value=1_000_000_001), ("value", "INVALID"), id="too high"),
        pytest.param(
            replace(CLASS, preemption_policy="Always"),
            ("preemptionPolicy", "NOT_SUPPORTED"),
            id="unknown preemption policy",
        ),
    ],
)
def test_a_wrong_class_is_refused_at_its_field(wrong: PriorityClass, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


def test_the_highest_value_and_negative_ones_are_right() -> None:
    assert faults(replace(CLASS, value=1_000_000_000)) == []
    assert faults(replace(CLASS, value=-1)) == []
