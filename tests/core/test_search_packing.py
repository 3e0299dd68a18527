"""Packing groups on nodes without topology: every technique places or proves what it is there for."""

from __future__ import annotations

import numpy as np
import pytest

from muster.core.search.bounds import Cuts
from muster.core.search.chance import Chance
from muster.core.search.count_sets import CountSpace
from muster.core.search.exact_counts import ExactCounts, fullest_patterns
from muster.core.search.greedy import plain, prices, select, spread
from muster.core.search.packing import Effort, Verdict
from muster.core.search.question import Question, ask
from muster.core.search.repair import Repair
from muster.core.search.selections import open_questions
from muster.core.search.steps import Budget
from tests.core.packing_questions import Packable, Some

PERFECT = Packable(takes=[(3,), (4,)], free=[(6,), (8,), (7,)], plan={0: 3, 1: 3})
ODD = Packable(takes=[(3,), (4,)], free=[(5,), (5,)], plan={0: 2, 1: 1})
"""Ten pieces for ten, but the nodes hold one pod each."""

ENOUGH = 100_000
"""Steps for whatever a test asks."""


def question(packable: Packable) -> Question:
    problem = packable.problem()
    asked = ask(problem, (problem.root,), problem.slots, problem.free, Budget(ENOUGH))
    assert asked is not None
    return asked


def test_a_type_that_too_few_nodes_hold_is_ruled_out_before_anything_is_tried() -> None:
    packable = Packable(takes=[(3,), (1,)], free=[(5,), (2,), (2,)], plan={0: 2, 1: 1})
    problem = packable.problem()

    assert ask(problem, (problem.root,), problem.slots, problem.free, Budget(ENOUGH)) is None
    assert packable.packed(steps=1).verdict is Verdict.IMPOSSIBLE


def test_children_that_cannot_hold_are_left_out_where_the_group_can_spare_them() -> None:
    packable = Packable(takes=[(9,), (2,)], free=[(4,)], plan=Some(1, [{0: 1}, {1: 2}]))

    packing = packable.packed()

    assert packing.placed == ((1, 1, 0, 2),)


@pytest.mark.parametrize(
    "packable",
    [
        pytest.param(
            Packable(takes=[(2, 1), (1, 2)], free=[(5, 9), (5, 9)], plan={0: 4, 1: 3}), id="one resource"
        ),
        pytest.param(
            Packable(takes=[(3, 1), (1, 3)], free=[(7, 7)], plan=Some(4, {0: 2, 1: 2})), id="two resources"
        ),
        pytest.param(
            Packable(takes=[(1,), (1,)], free=[(2,), (9,)], plan={0: 2, 1: 2}, on={0: [0], 1: [0]}),
            id="the room of those that can run nowhere else",
        ),
        pytest.param(
            Packable(takes=[(3,), (2,)], free=[(9,)], plan=Some(2, [{0: 3}, {1: 3}, {1: 4}])),
            id="cheapest children",
        ),
    ],
)
def test_counting_proves_what_needs_more_than_there_is(packable: Packable) -> None:
    assert Cuts(question(packable), Budget(ENOUGH)).rule_out(Budget(ENOUGH))
    assert packable.packed(steps=12).verdict is Verdict.IMPOSSIBLE


def test_the_greedy_fills_a_node_to_the_brim_before_it_opens_another() -> None:
    packable = Packable(takes=[(3,), (2,)], free=[(9,), (6,)], plan={0: 2, 1: 3})
    asked = question(packable)

    selection = select(asked.root, prices(asked, plain(asked)), {})
    counts, homeless = spread(asked, selection, plain(asked))

    assert counts.tolist() == [[0, 2], [3, 0]]
    assert not homeless.any()


def test_the_greedy_leaves_special_nodes_to_those_that_need_them() -> None:
    packable = Packable(takes=[(2,), (2,)], free=[(2,), (2,)], plan=Some(2, [{0: 1}, {1: 1}]), on={1: [0]})

    assert packable.packed(effort=Effort.LOW).placed == ((0, 0, 1, 1), (1, 1, 0, 1))


def test_the_cheapest_pods_of_the_cheapest_children_are_taken() -> None:
    packable = Packable(
        takes=[(1, 1), (3, 1), (2, 2)], free=[(4, 9)], plan=Some(1, [{1: 2}, Some(2, {0: 1, 2: 2, 1: 1})])
    )

    assert packable.packed().placed == ((1, 0, 0, 1), (1, 2, 0, 1))


def test_exact_counts_find_the_only_packing_there_is() -> None:
    asked = question(PERFECT)

    placed = ExactCounts(asked, 10_000, Budget(ENOUGH)).answer()

    assert placed is not None
    assert sorted((kind, node, number) for _, kind, node, number in placed) == [
        (0, 0, 2),
        (0, 2, 1),
        (1, 1, 2),
        (1, 2, 1),
    ]


def test_exact_counts_prove_what_sums_do_not_show() -> None:
    asked = question(ODD)

    assert not Cuts(asked, Budget(ENOUGH)).rule_out(Budget(ENOUGH))
    assert ExactCounts(asked, 10_000, Budget(ENOUGH)).answer() is None
    assert ODD.packed().verdict is Verdict.IMPOSSIBLE


def test_exact_counts_choose_children_and_pods_as_they_fit() -> None:
    packable = Packable(
        takes=[(4,), (3,), (2,)],
        free=[(5,), (5,)],
        plan=Some(2, [{0: 2}, Some(2, {0: 1, 1: 1}), Some(2, {1: 1, 2: 2})]),
    )
    asked = question(packable)

    placed = ExactCounts(asked, 10_000, Budget(ENOUGH)).answer()

    assert placed is None
    assert packable.packed().verdict is Verdict.IMPOSSIBLE


def test_the_cost_of_exact_counts_is_known_before_and_never_above_what_is_allowed() -> None:
    many = dict.fromkeys(range(8), 50)
    takes = [(kind + 2, 11 - kind) for kind in range(8)]
    asked = question(Packable(takes=takes, free=[(90, 90)] * 30, plan=many))

    assert ExactCounts(asked, 20_000, Budget(ENOUGH)).cost > 20_000
    assert 0 < ExactCounts(question(PERFECT), 20_000, Budget(ENOUGH)).cost < 100


def test_full_patterns_are_those_to_which_nothing_can_be_added() -> None:
    asked = question(Packable(takes=[(3,), (4,)], free=[(11,)], plan={0: 3, 1: 2}))

    patterns = fullest_patterns(asked.demand, asked.fits[:, 0], asked.room[0])

    assert patterns == ((1, 2), (2, 1), (3, 0))


def test_sets_of_counts_add_and_close_as_sets_of_vectors_do() -> None:
    space = CountSpace((2, 3))
    members = 1 << space.index((1, 0)) | 1 << space.index((0, 2))

    assert set(space.members(space.plus(members, (1, 1)))) == {(2, 1), (1, 3)}
    assert set(space.members(space.plus(members, (2, 0)))) == {(2, 2)}
    assert set(space.members(space.plus_any(1, ((0, 1), (0, 2), (2, 0))))) == {(0, 1), (0, 2), (2, 0)}
    assert set(space.members(space.closed(members))) == {(0, 0), (1, 0), (0, 1), (0, 2)}


def test_repair_drives_out_what_is_in_the_way() -> None:
    asked = question(PERFECT)
    selection = [(0, 0, 3), (0, 1, 3)]
    badly = asked.fits * 0
    badly[0] = [1, 1, 1]
    badly[1] = [0, 1, 1]
    repair = Repair(asked, selection, badly, asked.most - badly.sum(axis=1), Chance(1))

    assert repair.stuck == [1]
    assert repair.run(50, ENOUGH)
    chosen, counts = repair.result()
    assert sorted(chosen) == selection
    assert (counts.T @ asked.demand <= asked.room).all()


def test_repair_takes_another_pod_of_the_leaf_where_one_finds_no_node() -> None:
    asked = question(Packable(takes=[(4,), (3,)], free=[(4,), (3,)], plan=Some(2, {0: 2, 1: 1})))
    counts = asked.fits * 0
    counts[0, 0] = 1
    repair = Repair(asked, [(0, 0, 2)], counts, np.array([1, 0]), Chance(1))

    assert repair.run(5, ENOUGH)
    assert repair.result()[0] == [(0, 0, 1), (0, 1, 1)]


def test_repair_gives_up_where_no_pod_can_make_room() -> None:
    asked = question(Packable(takes=[(3,)], free=[(4,), (4,)], plan=Some(2, {0: 3})))
    counts = asked.fits.copy()

    assert not Repair(asked, [(0, 0, 3)], counts, asked.most * 0 + 1, Chance(1)).run(50, ENOUGH)


def test_few_selections_are_told_one_by_one_and_hopeless_ones_left_out() -> None:
    packable = Packable(takes=[(4,), (3,), (2,)], free=[(5,), (4,)], plan=Some(1, [{0: 3}, {1: 2}, {2: 3}]))
    asked = question(packable)

    opened = open_questions(asked, Cuts(asked, Budget(ENOUGH)), 10, Budget(ENOUGH))

    assert opened is not None
    assert [(each.types, each.most.tolist()) for each in opened] == [((1,), [2]), ((2,), [3])]
    assert open_questions(asked, Cuts(asked, Budget(ENOUGH)), 1, Budget(ENOUGH)) is None


def test_pods_that_may_not_share_a_node_get_one_each() -> None:
    packable = Packable(takes=[(1,)], free=[(9,), (9,), (9,)], plan={0: 3}, alone=frozenset({0}))

    assert packable.packed().placed == ((0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 2, 1))


def test_pods_that_ask_for_nothing_fit_anywhere() -> None:
    assert Packable(takes=[()], free=[()], plan={0: 7}).packed().placed == ((0, 0, 0, 7),)


def test_a_spent_budget_is_no_verdict() -> None:
    assert ODD.packed(steps=11).verdict is Verdict.UNKNOWN


def test_the_same_question_gets_the_same_answer() -> None:
    assert PERFECT.packed() == PERFECT.packed()


def test_chance_is_the_same_everywhere() -> None:
    chance = Chance(4671)

    assert [chance.below(1000) for _ in range(5)] == [508, 626, 675, 3, 673]
    assert all(0.9 <= chance.around_one(0.1) <= 1.1 for _ in range(100))
