"""Selectors find the pods that they select, however many there are of both, without asking each about each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.engine.selected_pods import SelectedPods, SelectorIndex
from muster.model import selectors
from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.pod import Pod
from muster.model.selectors import requirements_of, selector_matches
from tests.engine.small_cluster import pod
from tests.engine.tree_cluster import TreeCluster

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
LABELS = st.dictionaries(KEYS, VALUES)
LISTED = st.builds(
    SelectorRequirement,
    KEYS,
    st.sampled_from(["In", "NotIn"]),
    st.lists(VALUES, min_size=1, max_size=3).map(tuple),
)
PRESENT = st.builds(SelectorRequirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"]))
SELECTORS = st.builds(LabelSelector, LABELS, st.lists(LISTED | PRESENT, max_size=2).map(tuple))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of requirements that were held against labels."""
    seen: list[str] = []
    plain = selectors.value_matches

    def value_matches(requirement: SelectorRequirement, value: str | None) -> bool:
        seen.append(requirement.key)
        return plain(requirement, value)

    monkeypatch.setattr(selectors, "value_matches", value_matches)
    return seen


@given(
    some=st.lists(SELECTORS, max_size=8),
    gone=st.sets(st.integers(0, 7)),
    labels=st.lists(LABELS, min_size=1, max_size=4),
)
def test_the_index_finds_the_selectors_that_select_labels_whichever_came_and_went(
    some: list[LabelSelector], gone: set[int], labels: list[dict[str, str]]
) -> None:
    made = [SelectedPods(requirements_of(selector), place) for place, selector in enumerate(some)]
    index = SelectorIndex(made)
    for each in labels:
        index.of(each)
    for selected in made:
        if selected.place in gone:
            index.discard(selected)

    for each in labels:
        expected = [
            place
            for place, selector in enumerate(some)
            if place not in gone and selector_matches(selector, each)
        ]
        assert [selected.place for selected in index.of(each)] == expected


def test_many_budgets_with_labels_of_their_own_are_not_each_asked_about_each_pod(looks: list[str]) -> None:
    trees = TreeCluster()

    trees.apply(*(budget(i, LabelSelector({"all": "same", "app": f"app-{i}"})) for i in range(100)))
    trees.apply(*(labelled(i, {"all": "same", "app": f"app-{i}"}) for i in range(100)))
    trees.apply(*(budget(i + 100, LabelSelector({"app": f"app-{i}"})) for i in range(100)))

    assert {each.status.expected_pods for each in budgets(trees)} == {1}
    assert len(looks) <= 10 * 100


def test_many_budgets_with_one_selector_look_at_each_pod_once(looks: list[str]) -> None:
    trees = TreeCluster()
    web = LabelSelector({"app": "web"})

    trees.apply(*(labelled(i, {"app": "web"}) for i in range(100)))
    trees.apply(*(budget(i, web) for i in range(100)))
    trees.apply(*(labelled(i + 100, {"app": "web"}) for i in range(100)))
    trees.delete(budget(0, web))

    assert {each.status.expected_pods for each in budgets(trees)} == {200}
    assert len(looks) <= 4 * 200


def budget(number: int, selector: LabelSelector) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        name=f"budget-{number}", namespace="default", min_available="1", selector=selector
    )


def labelled(number: int, labels: dict[str, str]) -> Pod:
    return replace(pod(f"pod-{number}", on="node"), labels=labels)


def budgets(trees: TreeCluster) -> list[PodDisruptionBudget]:
    found = trees.cluster.state.objects["PodDisruptionBudget"].values()
    return [each for each in found if isinstance(each, PodDisruptionBudget)]
