"""Preemption against trying everything: never dearer, never in vain, always whole, and the same for the same input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decide import decide
from muster.core.decision import DecisionCode, PreemptionEnd
from muster.core.observer import NullObserver
from muster.core.preemption_units import DisruptionBudgets, units_of_rows
from muster.plugins.profile import default_profile, make_profile
from tests.dsl import gang, node, pod, pod_group
from tests.dsl.preemption import BusyCluster, Preempted
from tests.properties.preemption_reference import Low, Tiny

NODES = ("n0", "n1", "n2", "n3")
FIXED = make_profile({"name": "fixed", "preemption": {"moveBudget": 0}})


@st.composite
def tiny(draw: st.DrawFn) -> Tiny:
    nodes = NODES[: draw(st.integers(1, 4))]
    room = {name: draw(st.integers(1, 5)) for name in nodes}
    free = dict(room)
    lows = []
    for number in range(draw(st.integers(0, 6))):
        cpu = draw(st.integers(1, 3))
        able = [name for name in nodes if free[name] >= cpu]
        chosen = draw(st.lists(st.sampled_from(able), min_size=1, max_size=3)) if able else []
        on = tuple(
            name for place, name in enumerate(chosen) if free[name] >= cpu * chosen[: place + 1].count(name)
        )
        for name in on:
            free[name] -= cpu
        if on:
            lows.append(Low(f"low-{number}", draw(st.sampled_from([-5, 0, 10, 10, 50])), cpu, on))
    guarded = draw(st.sets(st.sampled_from([low.name for low in lows]))) if lows else set()
    return Tiny(
        room=room,
        racks={name: draw(st.sampled_from("xy")) for name in nodes},
        lows=tuple(lows),
        wanted=tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))),
        in_one_rack=draw(st.booleans()),
        allowed={name: draw(st.integers(0, 1)) for name in sorted(guarded)},
    )


def busy(case: Tiny) -> BusyCluster:
    cluster = BusyCluster(
        *(node(name, str(cpus), labels={"rack": case.racks[name]}) for name, cpus in case.room.items())
    )
    for low in case.lows:
        cluster.low_group(low.name, *low.nodes, cpu=str(low.cpu), priority=low.priority)
    for name, allowed in case.allowed.items():
        cluster.budget(f"of-{name}", allowed, name)
    return cluster


def preempted(cluster: BusyCluster, case: Tiny, minimum: int | None = None) -> Preempted:
    pods = tuple(pod(f"p{number}", cpu=str(cpu)) for number, cpu in enumerate(case.wanted))
    same = "rack" if case.in_one_rack else None
    return cluster.preempt(pod_group("g", gang(minimum or len(pods)), pods=pods, same=same))


def evicted(case: Tiny, result: Preempted) -> list[Low]:
    return [low for low in case.lows if low.name in result.victims]


def must_stand(case: Tiny, result: Preempted) -> None:
    """The nominated pods have room once the victims are gone, in one rack if that is asked."""
    free = case.free(evicted(case, result))
    for name, on in result.nominated.items():
        free[on] -= case.wanted[int(name[1:])]
    assert min(free.values()) >= 0
    if case.in_one_rack:
        assert len({case.racks[on] for on in result.nominated.values()}) == 1


@given(tiny())
@settings(max_examples=300, deadline=None)
def test_victims_cost_no_more_than_the_cheapest_set_there_is(case: Tiny) -> None:
    result = preempted(busy(case), case)

    cheapest = case.cheapest()
    if cheapest is None:
        assert result.code.startswith("UNSCHEDULABLE")
    elif case.fits(()):
        assert (result.code, result.victims) == ("SCHEDULED", [])
    else:
        assert result.code == DecisionCode.WAITING_FOR_PREEMPTION.value
        must_stand(case, result)
        assert case.cost(evicted(case, result)) == cheapest


@given(tiny(), st.data())
@settings(max_examples=150, deadline=None)
def test_nobody_goes_in_vain_whatever_the_minimum_is_and_however_little_is_spent(
    case: Tiny, data: st.DataObject
) -> None:
    minimum = data.draw(st.integers(1, len(case.wanted)))
    cluster = busy(case)
    cluster.profile = data.draw(st.sampled_from([FIXED, default_profile()]))

    result = preempted(cluster, case, minimum)

    if result.victims:
        must_stand(case, result)
        assert len(result.nominated) >= minimum
        wanted = tuple(case.wanted[int(name[1:])] for name in result.nominated)
        assert not replace(case, wanted=wanted).fits(())


@given(tiny())
@settings(max_examples=100, deadline=None)
def test_where_filters_read_other_pods_each_victim_is_still_needed_beside_the_placement(case: Tiny) -> None:
    cluster = busy(case)
    pods = tuple(
        pod(f"p{number}", cpu=str(cpu), host_port=8000 + number) for number, cpu in enumerate(case.wanted)
    )

    result = cluster.preempt(
        pod_group("g", gang(len(pods)), pods=pods, same="rack" if case.in_one_rack else None)
    )

    if result.victims:
        must_stand(case, result)
        gone = evicted(case, result)
        for low in gone:
            free = case.free([other for other in gone if other is not low])
            for name, on in result.nominated.items():
                free[on] -= case.wanted[int(name[1:])]
            assert min(free.values()) < 0


@given(tiny(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_in_which_units_and_budgets_are_listed_decides_nothing(case: Tiny, chance: object) -> None:
    cluster = busy(case)
    pods = tuple(pod(f"p{number}", cpu=str(cpu)) for number, cpu in enumerate(case.wanted))
    unit, _ = cluster.unit(pod_group("g", gang(len(pods)), pods=pods))
    assert unit.victims is not None
    known = unit.victims
    ends = np.cumsum(known.sizes)
    ordinals = [tuple(part.tolist()) for part in np.split(known.ordinals, ends[:-1])]
    rows = list(zip(known.keys, known.priorities.tolist(), known.starts.tolist(), ordinals, strict=False))
    chance.shuffle(rows)  # type: ignore[attr-defined]
    budgets = DisruptionBudgets(
        known.budgets.keys[::-1], known.budgets.allowed[::-1], known.budgets.pods[::-1]
    )
    shuffled = units_of_rows(rows, budgets)

    first = decide(cluster.snapshot, unit, cluster.profile, NullObserver())
    second = decide(cluster.snapshot, replace(unit, victims=shuffled), cluster.profile, NullObserver())

    assert first == second
    assert first.preemption is None or first.preemption.end in PreemptionEnd
