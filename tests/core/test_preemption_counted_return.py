"""Units that go back many at a time, held to what putting them back one after the other comes to."""

from __future__ import annotations

import numpy as np
import pytest

from muster.core.arrays import BoolArray, IntArray
from muster.core.preemption import counted_return
from muster.core.preemption.counted_return import Entries, Holding, Returning

SEEDS = range(30)


class Case:
    """Nodes with units of pods on them, whose sizes and numbers are drawn by a seed."""

    def __init__(self, seed: int, *, most_nodes: int) -> None:
        chance = np.random.default_rng(seed)
        nodes, units, kinds = int(chance.integers(1, 12)), int(chance.integers(1, 120)), 2
        largest = int(chance.integers(1, 9))
        spread = [
            chance.choice(nodes, size=int(chance.integers(1, min(most_nodes, nodes) + 1)), replace=False)
            for _ in range(units)
        ]
        self.units = np.repeat(np.arange(units), list(map(len, spread)))
        self.slots = np.concatenate(spread).astype(np.int64)
        self.amounts = chance.integers(0, largest + 1, (kinds, len(self.units)))
        self.room = chance.integers(-5, 60, (kinds, nodes))
        self.hosts = chance.random(nodes) < 0.8
        self.holding = Holding(tuple(chance.integers(1, 8, kinds).tolist()), int(chance.integers(1, 9)))
        places = int(self.holding.counts(self.room)[self.hosts].sum())
        self.spare = places - int(chance.integers(0, places + 2))
        self.count = units

    def run(self) -> BoolArray:
        entries = Entries(self.units, self.slots, self.amounts)
        return Returning(entries, self.count, self.room.copy(), self.holding, self.hosts, self.spare).run()

    def one_by_one(self) -> list[bool]:
        room, spare, back = self.room.copy(), self.spare, []
        for unit in range(self.count):
            mine = self.units == unit
            after = room.copy()
            after[:, self.slots[mine]] -= self.amounts[:, mine]
            cost = self._places(room) - self._places(after)
            back.append(cost <= spare)
            if back[-1]:
                room, spare = after, spare - cost
        return back

    def _places(self, room: IntArray) -> int:
        return int(self.holding.counts(room)[self.hosts].sum())


@pytest.mark.parametrize("most_nodes", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most_turns", [0, 1, 64])
def test_many_at_a_time_are_those_that_go_back_one_after_the_other(
    most_turns: int, seed: int, most_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_return, "FEW", 0)
    monkeypatch.setattr(counted_return, "MOST_TURNS", most_turns)
    case = Case(seed, most_nodes=most_nodes)

    assert case.run().tolist() == case.one_by_one()


def test_units_on_one_node_each_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, pods = 50, 20
    slots = np.tile(np.arange(nodes), pods)
    entries = Entries(np.arange(nodes * pods), slots, np.ones((1, nodes * pods), dtype=np.int64))
    room, hosts = np.full((1, nodes), pods), np.ones(nodes, dtype=np.bool_)
    alone: list[int] = []
    monkeypatch.setattr(Returning, "_one_by_one", lambda _, first: alone.append(nodes * pods - first))

    back = Returning(entries, nodes * pods, room, Holding((19,), 8), hosts, spare=nodes - 8).run()

    # Eight nodes keep room for a pod of 19, beside one that takes 1; the others have all of their own back.
    assert int(back.sum()) == (nodes - 8) * pods + 8
    assert alone == [0]
