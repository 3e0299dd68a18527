"""PodDisruptionBudgets: how many pods may go, whom they select, and what their status says as pods come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.pod import Pod, PodStatus
from tests.engine.tree_cluster import TreeCluster, leaf, node, pods

WEB = LabelSelector({"app": "web"})


def budget(
    name: str = "b",
    *,
    at_least: str | None = None,
    at_most: str | None = None,
    selector: LabelSelector | None = WEB,
    namespace: str = "default",
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        name=name, namespace=namespace, min_available=at_least, max_unavailable=at_most, selector=selector
    )


def members(count: int, *, first: int = 0, on: str = "n", **labels: str) -> list[Pod]:
    shared = labels or {"app": "web"}
    made = pods(leaf("web"), count, first=first, on=on)
    return [replace(pod, group="", labels=shared) for pod in made]


def status(cluster: TreeCluster, item: PodDisruptionBudget) -> DisruptionStatus:
    found = cluster.get(item)
    assert isinstance(found, PodDisruptionBudget)
    return found.status


def allowed(cluster: TreeCluster) -> dict[str, tuple[int, set[str]]]:
    """By budget: how many may go, and whom it selects among all that run."""
    table = cluster.cluster.disruption
    found = table.below(1_000, cluster.cluster.budgets).budgets
    names = {pod.ordinal: pod.name for pod in table.running.values()}
    return {
        key.name: (number, {names[ordinal] for ordinal in selected})
        for key, number, selected in zip(found.keys, found.allowed, found.pods, strict=True)
    }


@pytest.mark.parametrize(
    ("item", "running", "waiting", "expected"),
    [
        (budget(at_least="2"), 3, 0, DisruptionStatus(1, 3, 2, 3)),
        (budget(at_least="2"), 1, 4, DisruptionStatus(0, 1, 2, 5)),
        (budget(at_least="50%"), 3, 2, DisruptionStatus(0, 3, 3, 5)),
        (budget(at_least="100%"), 4, 0, DisruptionStatus(0, 4, 4, 4)),
        (budget(at_least="0"), 2, 0, DisruptionStatus(2, 2, 0, 2)),
        (budget(at_most="1"), 4, 0, DisruptionStatus(1, 4, 3, 4)),
        (budget(at_most="1"), 3, 1, DisruptionStatus(0, 3, 3, 4)),
        (budget(at_most="1"), 2, 2, DisruptionStatus(0, 2, 3, 4)),
        (budget(at_most="30%"), 4, 0, DisruptionStatus(2, 4, 2, 4)),
        (budget(at_most="75%"), 2, 2, DisruptionStatus(1, 2, 1, 4)),
        (budget(at_most="9"), 2, 0, DisruptionStatus(9, 2, 0, 2)),
    ],
    ids=lambda value: (
        value.min_available or value.max_unavailable if isinstance(value, PodDisruptionBudget) else None
    ),
)
def test_a_status_counts_bound_and_all_members(
    item: PodDisruptionBudget, running: int, waiting: int, expected: DisruptionStatus
) -> None:
    cluster = TreeCluster(node("n"))

    cluster.apply(item, *members(running), *members(waiting, first=running, on=""))

    assert status(cluster, item) == expected


def test_a_budget_that_comes_after_its_pods_counts_them() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(*members(3), *members(2, first=3, app="other"))

    cluster.apply(budget(at_least="1"))

    assert status(cluster, budget()) == DisruptionStatus(2, 3, 1, 3)


def test_a_status_follows_pods_that_leave_finish_and_go() -> None:
    cluster = TreeCluster(node("n"))
    first, second, third = members(3)
    cluster.apply(budget(at_least="1"), first, second, third)

    cluster.apply(replace(first, deletion_us=1), replace(second, status=PodStatus(phase="Failed")))
    after = status(cluster, budget())
    cluster.delete(third)

    assert (after, status(cluster, budget())) == (DisruptionStatus(0, 1, 1, 1), DisruptionStatus(0, 0, 1, 0))


def test_a_status_follows_labels() -> None:
    cluster = TreeCluster(node("n"))
    [pod] = members(1)
    cluster.apply(budget(at_most="1"), pod)

    cluster.apply(replace(pod, labels={"app": "other"}))
    without = status(cluster, budget())
    cluster.apply(replace(pod, labels={"app": "web"}))

    assert (without.expected_pods, status(cluster, budget()).expected_pods) == (0, 1)


def test_an_unchanged_status_is_not_written() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(budget(at_least="1"), *members(1))
    before = cluster.get(budget())

    cluster.apply(*members(3, first=5, app="other"))

    assert cluster.get(budget()) is before


def test_a_budget_whose_selector_changes_counts_anew() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(budget(at_least="1"), *members(2), *members(3, first=2, app="other"))

    cluster.apply(budget(at_least="1", selector=LabelSelector({"app": "other"})))

    assert status(cluster, budget()) == DisruptionStatus(2, 3, 1, 3)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (LabelSelector(), {"b": (2, {"web-0", "web-1"})}),
        (None, {}),
        (LabelSelector({"app": "nobody"}), {}),
        (
            LabelSelector({}, (SelectorRequirement("app", "In", ("web", "db")),)),
            {"b": (2, {"web-0", "web-1"})},
        ),
    ],
    ids=["empty selects all", "unset selects nothing", "no pod", "expressions"],
)
def test_whom_a_budget_selects(
    selector: LabelSelector | None, expected: dict[str, tuple[int, set[str]]]
) -> None:
    cluster = TreeCluster(node("n"))

    cluster.apply(budget(at_least="0", selector=selector), *members(2))

    assert allowed(cluster) == expected


def test_a_budget_of_another_namespace_selects_nobody_here() -> None:
    cluster = TreeCluster(node("n"))

    cluster.apply(budget(at_least="0", selector=LabelSelector(), namespace="other"), *members(1))

    assert allowed(cluster) == {}


def test_a_pod_may_be_in_several_budgets_and_one_may_forbid_everything() -> None:
    cluster = TreeCluster(node("n"))

    cluster.apply(
        budget("all", at_most="0"), budget("half", at_least="50%"), budget("short", at_least="9"), *members(3)
    )

    everybody = {"web-0", "web-1", "web-2"}
    assert allowed(cluster) == {"all": (0, everybody), "half": (1, everybody), "short": (-6, everybody)}


def test_a_budget_that_is_deleted_selects_nobody() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(budget(at_most="0"), *members(1))

    cluster.delete(budget())
    cluster.apply(*members(1, first=1))

    assert allowed(cluster) == {}


def test_a_restart_finds_budgets_and_their_counts() -> None:
    cluster = TreeCluster(node("n"))
    cluster.apply(budget(at_most="1"), *members(2))

    again = cluster.restarted()

    assert allowed(again) == allowed(cluster) == {"b": (1, {"web-0", "web-1"})}
    assert status(again, budget()) == DisruptionStatus(1, 2, 1, 2)
