"""Whatever waits: counts add up, every help that is told is true, and so is every proof that less will not do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.explain.explanation import results_below
from muster.model.node import Node, Taint
from tests.dsl import basic, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.explain.test_situations import assert_true
from tests.explain.world import Runner, World

EXAMPLES = 80
_TAINT = (Taint("reserved", "yes", "NoSchedule"),)
_topology = st.sampled_from([None, None, "rack", "block"])


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    """Up to six nodes in up to four racks of two blocks."""
    made = []
    for number in range(draw(st.integers(1, 6))):
        rack = draw(st.integers(0, 3))
        made.append(
            node(
                f"n{number}",
                str(draw(st.integers(1, 6))),
                labels={"rack": f"r{rack}", "block": f"b{rack // 2}"},
                taints=_TAINT if draw(st.integers(0, 5)) == 0 else (),
                unschedulable=draw(st.integers(0, 5)) == 0,
            )
        )
    return tuple(made)


@st.composite
def leaves(draw: st.DrawFn, name: str) -> GroupPlan:
    """A gang of up to five pods of one or two sizes."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    pods = tuple(
        pod(f"{name}-{number}", cpu=str(size), host_port=80 if size == 3 else 0)
        for number, size in enumerate(sizes)
    )
    policy = gang(draw(st.integers(1, len(pods)))) if draw(st.booleans()) else basic()
    return pod_group(name, policy, pods=pods, same=draw(_topology))


@st.composite
def plans(draw: st.DrawFn) -> GroupPlan:
    """A leaf, or a tree of two or three levels."""
    if draw(st.integers(0, 2)) == 0:
        return draw(leaves("g0"))
    below = [draw(leaves(f"g{number}")) for number in range(draw(st.integers(1, 3)))]
    tree = composite("inner", gang(draw(st.integers(1, len(below)))), *below, same=draw(_topology))
    if draw(st.booleans()):
        return tree
    return composite("root", gang(2), tree, draw(leaves("g9")), same=draw(_topology))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    machines = draw(nodes())
    runners = tuple(
        Runner(
            f"run-{number}",
            (draw(st.sampled_from(machines)).name,),
            cpu="1",
            priority=draw(st.integers(1, 3)),
        )
        for number in range(draw(st.integers(0, 4)))
    )
    return World(machines, draw(plans()), runners, priority=draw(st.integers(0, 4)))


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds())
def test_every_help_is_true(world: World) -> None:
    told = world.explained()

    assert_true(world, told)


@settings(max_examples=EXAMPLES, deadline=None)
@given(worlds())
def test_an_explanation_agrees_with_the_decision(world: World) -> None:
    told = world.explained()

    decided = told.told.decision
    assert told.told.result is not None
    assert decided.result is not None
    assert told.told.result.status is decided.result.status
    assert world.schedules() == (decided.code.value == "SCHEDULED" and not decided.preemption)
    assert bool(told.helps) <= (not world.schedules())
    for each in results_below(told.told.result):
        assert min(each.satisfied, each.remaining, each.unschedulable, each.unresolvable) >= 0
