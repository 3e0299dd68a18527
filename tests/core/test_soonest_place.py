"""The soonest place of a unit: the first wave after which it fits, and a snapshot that is left as it was."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decide import decide
from muster.core.decision import DecisionCode
from muster.core.observer import NullObserver
from muster.core.preemption_units import PromisedRoom
from muster.core.soonest_place import Departures, SoonestPlace, soonest_place
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine.array_feed import ArrayFeed
from muster.model.meta import POD_GROUP, ObjectKey
from muster.plugins.profile import default_profile
from tests.dsl import node, pod

PROFILE = default_profile()


@dataclass
class Arrays:
    """Nodes of four CPUs, each in a rack of its own, and pods that take one each."""

    feed: ArrayFeed = field(default_factory=ArrayFeed)
    running: list[int] = field(default_factory=list)

    def nodes(self, number: int) -> Arrays:
        for place in range(number):
            self.feed.node_changed(None, node(f"n{place}", "4", labels={"rack": f"r{place}"}))
        return self

    def run(self, *places: int, leaving: bool = False) -> Arrays:
        for place in places:
            ordinal = len(self.running) + 1
            runs = replace(pod(), ordinal=ordinal, node_name=f"n{place}")
            self.feed.pod_changed(None, replace(runs, deletion_us=1) if leaving else runs)
            self.running.append(ordinal)
        return self

    def gang(self, size: int, *, same: str | None = None, satisfied: int = 0) -> Unit:
        pods = PendingPods(tuple(range(1_000, 1_000 + size)), (self.feed.signature_of(pod()),) * size)
        key = ObjectKey(POD_GROUP, "default", "g")
        return Unit(GroupTree(key, True, size, same, satisfied=satisfied, pods=pods))

    def place(self, unit: Unit, *waves: int) -> SoonestPlace | None:
        """waves: how many of the running pods, in their order, are gone after each."""
        departures = Departures(np.array(self.running, dtype=np.int64), np.array(waves, dtype=np.int64))
        return soonest_place(self.feed.flush(), unit, PROFILE, departures)


def test_a_unit_that_fits_waits_for_no_wave() -> None:
    arrays = Arrays().nodes(1).run(0)

    place = arrays.place(arrays.gang(3), 1)

    assert place is not None
    assert place.waves == 0
    assert place.assignments.nodes == ("n0",)


def test_it_waits_for_no_more_waves_than_it_must() -> None:
    arrays = Arrays().nodes(2).run(0, 1, 0, 1)

    place = arrays.place(arrays.gang(6), 1, 2, 4)

    assert place is not None
    assert place.waves == 2
    assert len(place.assignments.pods) == 6


def test_a_constrained_unit_gets_the_domain_that_is_free_first() -> None:
    arrays = Arrays().nodes(2).run(1, 0)

    place = arrays.place(arrays.gang(4, same="rack"), 1, 2)

    assert place is not None
    assert (place.waves, place.domain_key, place.domain_value) == (1, "rack", "r1")


def test_leaving_pods_go_in_their_wave() -> None:
    arrays = Arrays().nodes(1).run(0, leaving=True)

    place = arrays.place(arrays.gang(4), 1)

    assert place is not None
    assert place.waves == 1


def test_what_is_promised_to_others_is_not_to_be_had() -> None:
    arrays = Arrays().nodes(1).run(0)
    unit = arrays.gang(4)
    promised = PromisedRoom((arrays.feed.signature_of(pod()),), ("n0",))

    assert arrays.place(replace(unit, promised=promised), 1) is None


def test_a_unit_that_never_fits_has_no_place() -> None:
    arrays = Arrays().nodes(1).run(0)

    assert arrays.place(arrays.gang(5), 1) is None


def test_a_unit_whose_minimum_holds_needs_no_place() -> None:
    arrays = Arrays().nodes(1)

    assert arrays.place(arrays.gang(2, satisfied=2)) is None


@settings(deadline=None, max_examples=60)
@given(
    places=st.lists(st.integers(0, 3), max_size=16),
    size=st.integers(1, 16),
    same=st.sampled_from([None, "rack"]),
)
def test_it_is_the_first_wave_that_trying_them_all_finds(
    places: list[int], size: int, same: str | None
) -> None:
    arrays = Arrays().nodes(4)
    fitting = [place for at, place in enumerate(places) if places[:at].count(place) < 4]
    arrays.run(*fitting)
    unit = arrays.gang(size, same=same)
    before = pickle.dumps(arrays.feed.flush().nodes.free)

    found = arrays.place(unit, *range(1, len(fitting) + 1))

    assert pickle.dumps(arrays.feed.flush().nodes.free) == before
    assert (None if found is None else found.waves) == first_that_fits(fitting, size, same)


def first_that_fits(places: list[int], size: int, same: str | None) -> int | None:
    for gone in range(len(places) + 1):
        left = Arrays().nodes(4).run(*places[gone:])
        unit = left.gang(size, same=same)
        decision = decide(left.feed.flush(), unit, PROFILE, NullObserver())
        if decision.code is DecisionCode.SCHEDULED:
            return gone
    return None
