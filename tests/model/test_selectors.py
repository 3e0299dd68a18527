from itertools import combinations, product

import pytest

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Taint
from muster.model.pod import NodeSelectorTerm, Toleration
from muster.model.selectors import (
    Tolerance,
    is_tolerated,
    node_term_matches,
    selector_matches,
    tolerates,
    value_matches,
    value_test,
)


@pytest.mark.parametrize(
    ("operator", "values", "value", "matches"),
    [
        ("In", ("a", "b"), "a", True),
        ("In", ("",), "", True),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), None, True),
        ("NotIn", ("a",), "a", False),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), "x", False),
        ("Gt", ("5",), None, False),
        ("Lt", ("5",), "-6", True),
        ("Lt", ("five",), "6", False),
        ("Near", ("5",), "5", False),
    ],
)
def test_each_operator_judges_one_value(
    operator: str, values: tuple[str, ...], value: str | None, *, matches: bool
) -> None:
    requirement = SelectorRequirement("key", operator, values)

    assert value_matches(requirement, value) is matches
    assert value_test(requirement)(value) is matches


def test_a_selector_selects_only_what_meets_all_of_it() -> None:
    selector = LabelSelector({"app": "web"}, (SelectorRequirement("tier", "Exists"),))

    assert selector_matches(selector, {"app": "web", "tier": "x"})
    assert not selector_matches(selector, {"app": "web"})
    assert not selector_matches(selector, {"app": "db", "tier": "x"})


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selector_matches(None, {})
    assert selector_matches(LabelSelector(), {"a": "b"})


def test_a_node_term_reads_labels_and_the_name() -> None:
    by_name = NodeSelectorTerm(match_fields=(SelectorRequirement("metadata.name", "In", ("n1",)),))
    by_label = NodeSelectorTerm(match_expressions=(SelectorRequirement("zone", "In", ("a",)),))

    assert node_term_matches(by_name, "n1", {})
    assert not node_term_matches(by_name, "n2", {})
    assert node_term_matches(by_label, "n2", {"zone": "a"})
    assert not node_term_matches(NodeSelectorTerm(), "n1", {"zone": "a"})


@pytest.mark.parametrize(
    ("toleration", "bears"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="k", operator="Exists", effect="NoSchedule", toleration_seconds=0), True),
        (Toleration(key="other", operator="Exists"), False),
    ],
)
def test_a_toleration_bears_the_taints_it_names(toleration: Toleration, *, bears: bool) -> None:
    taint = Taint("k", "v", "NoSchedule")

    assert tolerates(toleration, taint) is bears
    assert Tolerance((toleration,)).bears(taint) is bears


def test_many_tolerations_bear_what_one_of_them_does() -> None:
    fields = (
        ("", "k", "j"),
        ("", "Equal", "Exists", "Other"),
        ("", "v", "w"),
        ("", "NoSchedule", "NoExecute"),
    )
    each = [Toleration(*of_one) for of_one in product(*fields)]
    taints = [Taint(*of_one) for of_one in product(("k", "l"), ("", "v"), ("NoSchedule", "PreferNoSchedule"))]

    for some in combinations(each, 2):
        for taint in taints:
            assert Tolerance(some).bears(taint) is is_tolerated(taint, some)
