"""Units put back beside a placement that stays: the answers for all at once are those of asking one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.arrays import BoolArray, IntArray
from muster.core.domains import CLUSTER
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.preemption.placers import placer_in
from muster.core.preemption.room_beside import fit_beside
from tests.core.preemption_ground import ground_on
from tests.dsl import gang, node, pod_group
from tests.dsl.preemption import BusyCluster

LowGroups = list[tuple[int, list[int]]]
"""Cpus of each pod, and the nodes that the pods are on."""


def _placed_over(rooms: list[int], lows: LowGroups, gang_of: int) -> tuple[Ground, Placement]:
    """A gang of pods of one cpu, placed with all the groups gone; earlier ones of them are more important."""
    cluster = BusyCluster(*(node(f"n{number:02}", str(cpus)) for number, cpus in enumerate(rooms)))
    for number, (cpus, on) in enumerate(lows):
        names = (f"n{place % len(rooms):02}" for place in on)
        cluster.low_group(f"low-{number:02}", *names, cpu=str(cpus), priority=90 - number)
    unit, _ = cluster.unit(pod_group("high", gang(gang_of), pods=gang_of))
    ground = ground_on(cluster, unit)
    placement = placer_in(ground, CLUSTER).most(ground.victims.everybody())
    assert placement is not None
    return ground, placement


def _one_after_the_other(ground: Ground, placement: Placement, order: IntArray) -> BoolArray:
    room = ground.snapshot.nodes.free + ground.usage.freed(ground.victims.everybody())
    load = placement.load(*room.shape)
    fits = []
    for unit in order.tolist():
        only = ground.victims.nobody()
        only[unit] = True
        takes = ground.usage.freed(only)
        fits.append(not ((takes > room - load) & (takes > 0) & (load > 0)).any())
        room = room - takes if fits[-1] else room
    return np.array(fits, dtype=np.bool_)


@given(
    rooms=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    lows=st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 5), min_size=1, max_size=4)),
        min_size=1,
        max_size=12,
    ),
    share=st.floats(0.1, 1),
    reverse=st.booleans(),
)
def test_it_is_as_if_each_unit_were_asked_after_those_before_it(
    rooms: list[int], lows: LowGroups, share: float, reverse: bool
) -> None:
    on_nodes = np.zeros(len(rooms), dtype=np.int64)
    for cpus, on in lows:
        np.add.at(on_nodes, np.array(on) % len(rooms), cpus)
    wide = np.maximum(rooms, on_nodes)
    ground, placement = _placed_over(wide.tolist(), lows, max(1, int(share * wide.sum())))
    order = np.arange(len(lows))[:: -1 if reverse else 1]

    fits = fit_beside(ground, placement, ground.victims.everybody(), order)

    assert fits.tolist() == _one_after_the_other(ground, placement, order).tolist()


@pytest.mark.parametrize("length", [4, 30])
def test_a_chain_in_which_each_unit_hangs_on_the_one_before_spares_every_second(length: int) -> None:
    lows = [(1, [place, place + 1]) for place in range(length)]
    ground, placement = _placed_over([2] * (length + 1), lows, length + 1)

    fits = fit_beside(ground, placement, ground.victims.everybody(), np.arange(length))

    assert fits.tolist() == [place % 2 == 0 for place in range(length)]
