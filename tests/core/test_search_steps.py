"""Steps of the search stand for time: each part charges what it costs, and nothing is begun that they do not pay for."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest

from muster.core.search.bounds import Cuts
from muster.core.search.chance import Chance
from muster.core.search.greedy import plain, prices, select, spread
from muster.core.search.packing import Effort, Packing, Verdict, pack
from muster.core.search.pattern_fill import PatternFill
from muster.core.search.question import Question, ask
from muster.core.search.selections import open_questions
from muster.core.search.steps import Budget
from tests.core.packing_questions import Packable, Some

STEPS = 6_000
ENOUGH = 10**9


def brimful(types: int, nodes: int, seed: int = 1) -> Packable:
    """All pods are needed, and take all that the nodes have: next to nobody finds how."""
    random = Random(seed)
    takes = [(random.randint(2, 9), random.randint(1, 12)) for _ in range(types)]
    pods: dict[int, int] = {}
    free: list[tuple[int, ...]] = []
    for _ in range(nodes):
        here = random.choices(range(types), k=random.randint(2, 5))
        for kind in here:
            pods[kind] = pods.get(kind, 0) + 1
        free.append((sum(takes[kind][0] for kind in here), sum(takes[kind][1] for kind in here)))
    return Packable(takes=takes, free=free, plan=pods)


def asked(packable: Packable) -> Question:
    problem = packable.problem()
    question = ask(problem, (problem.root,), problem.slots, problem.free, Budget(ENOUGH))
    assert question is not None
    return question


def packed(packable: Packable, budget: Budget) -> Packing:
    problem = packable.problem()
    return pack(problem, (problem.root,), problem.slots, problem.free, budget, Effort.FULL)


SIZES = [
    pytest.param(9, 100, id="few types"),
    pytest.param(120, 40, id="many types"),
    pytest.param(60, 600, id="many types and nodes"),
    pytest.param(6, 3_000, id="many nodes"),
]


@pytest.mark.parametrize(("types", "nodes"), SIZES)
def test_a_budget_is_hardly_overdrawn(types: int, nodes: int) -> None:
    budget = Budget(STEPS)

    assert packed(brimful(types, nodes), budget).verdict is Verdict.UNKNOWN
    assert budget.spent <= 1.1 * STEPS


@pytest.mark.parametrize(("types", "nodes"), SIZES)
def test_a_step_takes_about_as_long_whatever_the_question(types: int, nodes: int) -> None:
    usual, here = milliseconds_a_step(brimful(8, 60)), milliseconds_a_step(brimful(types, nodes))

    # Three times leaves room for a busy machine; parts that were not charged made it five and more.
    assert here < 3 * usual


def milliseconds_a_step(packable: Packable) -> float:
    problem = packable.problem()
    best = float("inf")
    for _ in range(3):
        budget = Budget(STEPS)
        start = time.thread_time()
        pack(problem, (problem.root,), problem.slots, problem.free, budget, Effort.FULL)
        best = min(best, (time.thread_time() - start) * 1e3 / budget.spent)
    return best


def test_nothing_is_begun_that_the_budget_does_not_pay_for() -> None:
    large = brimful(100, 2_000)
    presolve = Budget(ENOUGH)
    problem = large.problem()
    question = ask(problem, (problem.root,), problem.slots, problem.free, presolve)
    assert question is not None
    Cuts(question, presolve).rule_out(presolve)
    budget = Budget(presolve.spent + 50)

    assert packed(large, budget).verdict is Verdict.UNKNOWN
    assert budget.spent <= presolve.spent + 50


def test_listing_selections_ends_where_its_allowance_does() -> None:
    plan = Some(3, [Some(40, dict.fromkeys(range(12), 30)) for _ in range(6)])
    question = asked(Packable(takes=[(kind + 1,) for kind in range(12)], free=[(90,)] * 30, plan=plan))
    allowed = Budget(400)

    assert open_questions(question, Cuts(question, Budget(ENOUGH)), 1_000, allowed) is None
    assert allowed.spent <= 420


def test_nodes_filled_with_patterns_leave_fewer_pods_over_than_pods_placed_one_by_one() -> None:
    question = asked(brimful(6, 100))
    selection = select(question.root, prices(question, plain(question)), {})
    filling = PatternFill(question, Budget(ENOUGH))

    counts, homeless = filling.spread(selection, plain(question), Chance(1))

    assert (counts.T @ question.demand <= question.room).all()
    assert (counts <= question.fits).all()
    assert np.array_equal(counts.sum(axis=1) + homeless, question.most)
    assert 2 * homeless.sum() < spread(question, selection, plain(question))[1].sum()


def test_patterns_of_a_node_with_many_types_are_found_among_some_of_its_pods() -> None:
    question = asked(
        Packable(
            takes=[(kind % 5 + 1,) for kind in range(30)], free=[(40,)] * 4, plan=dict.fromkeys(range(30), 1)
        )
    )
    selection = select(question.root, prices(question, plain(question)), {})
    budget = Budget(ENOUGH)

    counts, _ = PatternFill(question, budget).spread(selection, plain(question), Chance(1))

    assert budget.spent < 1_000
    assert (counts.T @ question.demand <= question.room).all()


def test_many_typed_questions_get_the_same_answer_for_the_same_steps() -> None:
    first, second = Budget(STEPS), Budget(STEPS)
    tight = brimful(30, 80, seed=3)

    assert packed(tight, first) == packed(tight, second)
    assert first.spent == second.spent
