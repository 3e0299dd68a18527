"""Small groups that follow each other: what is looked at again for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from muster.core.arrays import IntArray
from muster.core.decide import decide_and_assume
from muster.core.decision import GroupResult, Status
from muster.core.framework import PlacementScorer, PlacementView, PlacementViews
from muster.core.observer import NullObserver
from muster.model.node import Node
from muster.plugins.profile import default_profile
from tests.dsl import Cluster, block, composite, gang, pod_group, rack
from tests.dsl.groups import GroupPlan


@dataclass(eq=False)
class CountedScores:
    """The usual scores, and how many candidates got them, one by one and in columns."""

    scorer: PlacementScorer = field(default_factory=lambda: default_profile().placement_scorer)
    one_by_one: int = 0
    in_columns: int = 0

    def score(self, view: PlacementView) -> tuple[Fraction | int, ...]:
        self.one_by_one += 1
        return self.scorer.score(view)

    def sort_key(self, view: PlacementView) -> tuple[Any, ...]:
        self.one_by_one += 1
        return self.scorer.sort_key(view)

    def ranks(self, views: PlacementViews) -> IntArray:
        self.in_columns += len(views.placed)
        return self.scorer.ranks(views)

    def describe(self, view: PlacementView) -> str:
        return self.scorer.describe(view)


class Stream:
    """Equal groups, one after the other, on what those before took."""

    def __init__(self, plan: GroupPlan, *racks: Node | list[Node]) -> None:
        self.scores = CountedScores()
        profile = replace(default_profile(), placement_scorer=self.scores)
        self._cluster = Cluster(*racks, profile=profile)
        self._unit, _ = self._cluster.unit(plan)

    def result_of_the(self, number: int) -> GroupResult:
        """What the group of that number comes to; scores are those of it alone."""
        for _ in range(number - 1):
            self._decide()
        self.scores.one_by_one = self.scores.in_columns = 0
        return self._decide()

    def _decide(self) -> GroupResult:
        cluster = self._cluster
        decision = decide_and_assume(cluster.snapshot, self._unit, cluster.profile, NullObserver())
        assert decision.result is not None
        return decision.result


def leaf(name: str) -> GroupPlan:
    return pod_group(name, gang(2), pods=2, same="rack")


def test_of_groups_that_follow_each_other_only_the_racks_that_changed_are_scored_again() -> None:
    stream = Stream(leaf("g"), *(rack(f"r{place}", free=20) for place in range(12)))

    result = stream.result_of_the(5)

    assert (stream.scores.one_by_one, stream.scores.in_columns) == (1, 0)
    assert (result.domain_value, result.tried) == ("r0", 12)


def test_a_tree_is_judged_again_in_the_block_that_changed_alone() -> None:
    blocks = (block(name, *(rack(f"{name}{place}", free=40) for place in range(6))) for name in "AB")
    stream = Stream(composite("t", gang(2), leaf("a"), leaf("b"), same="block"), *blocks)

    result = stream.result_of_the(6)

    # The block; the rack it had last taken pods in, as it is, with the first leaf in mind, and after that.
    assert (stream.scores.one_by_one, stream.scores.in_columns) == (4, 0)
    assert (result.domain_value, result.tried) == ("A", 2)


def test_a_rack_that_has_become_full_is_counted_as_ruled_out() -> None:
    stream = Stream(leaf("g"), *(rack(f"r{place}", free=4) for place in range(6)))

    result = stream.result_of_the(9)

    assert (result.domain_value, result.tried, result.pruned) == ("r4", 2, 4)
    assert stream.scores.in_columns == 0


def test_a_group_that_fits_nowhere_any_more_is_told_so_after_many_that_fitted() -> None:
    stream = Stream(leaf("g"), *(rack(f"r{place}", free=4) for place in range(4)))

    result = stream.result_of_the(9)

    assert result.status is Status.UNSCHEDULABLE
    assert (result.tried, result.pruned) == (0, 4)
