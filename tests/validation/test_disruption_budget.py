from dataclasses import replace

import pytest

from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import LabelSelector, SelectorRequirement
from tests.validation.examples import BUDGET, faults


def _selecting(*requirements: SelectorRequirement) -> PodDisruptionBudget:
    return replace(BUDGET, selector=LabelSelector({}, requirements))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(replace(BUDGET, min_available=None), ("spec", "REQUIRED"), id="no bound"),
        pytest.param(replace(BUDGET, max_unavailable="1"), ("spec", "INVALID"), id="two bounds"),
        pytest.param(
            replace(BUDGET, min_available="-1"), ("spec.minAvailable", "INVALID"), id="negative number"
        ),
        pytest.param(replace(BUDGET, min_available=""), ("spec.minAvailable", "INVALID"), id="empty bound"),
        pytest.param(
            replace(BUDGET, min_available="2147483648"), ("spec.minAvailable", "INVALID"), id="large number"
        ),
        pytest.param(
            replace(BUDGET, min_available=None, max_unavailable="101%"),
            ("spec.maxUnavailable", "INVALID"),
            id="over 100%",
        ),
        pytest.param(
            replace(BUDGET, selector=LabelSelector({"a b": "c"})),
            ("spec.selector.matchLabels[a b]", "INVALID"),
            id="selected key",
        ),
        pytest.param(
            _selecting(SelectorRequirement("", "Exists")),
            ("spec.selector.matchExpressions[0].key", "REQUIRED"),
            id="expression without key",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "")),
            ("spec.selector.matchExpressions[0].operator", "REQUIRED"),
            id="expression without operator",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "Gt", ("1",))),
            ("spec.selector.matchExpressions[0].operator", "NOT_SUPPORTED"),
            id="Gt on pods",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "In")),
            ("spec.selector.matchExpressions[0].values", "REQUIRED"),
            id="In without values",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "NotIn")),
            ("spec.selector.matchExpressions[0].values", "REQUIRED"),
            id="NotIn without values",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "Exists", ("b",))),
            ("spec.selector.matchExpressions[0].values", "INVALID"),
            id="Exists with values",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "DoesNotExist", ("b",))),
            ("spec.selector.matchExpressions[0].values", "INVALID"),
            id="DoesNotExist with values",
        ),
        pytest.param(
            _selecting(SelectorRequirement("a", "In", ("b", "c d"))),
            ("spec.selector.matchExpressions[0].values[1]", "INVALID"),
            id="value's syntax",
        ),
    ],
)
def test_a_wrong_budget_is_refused_at_its_field(
    wrong: PodDisruptionBudget, expected: tuple[str, str]
) -> None:
    assert faults(wrong) == [expected]


@pytest.mark.parametrize("bound", ["0", "7", "0%", "100%"])
def test_numbers_and_percentages_are_bounds(bound: str) -> None:
    assert faults(replace(BUDGET, min_available=bound)) == []


@pytest.mark.parametrize("selector", [None, LabelSelector()], ids=["unset", "empty"])
def test_a_selector_may_be_unset_or_empty(selector: LabelSelector | None) -> None:
    assert faults(replace(BUDGET, selector=selector)) == []
