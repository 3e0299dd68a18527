"""Fast paths stay fast beside their plain forms, and times grow no faster than clusters.

Only CPU times of one run are compared, and bounds are far from what is measured, so that a busy machine changes nothing.
"""

from functools import partial

import pytest

from muster.core.preemption import counted_return
from tests.bench import core_placement, growth, preemption, store_commit, topology
from tests.bench.place import SQLITE, opened_place
from tests.bench.stopwatch import best_of, exponent

SIZES = (1_000, 3_000, 9_000)
MOST_EXPONENT = 1.3


def test_equal_pods_together_cost_a_tenth_of_each_by_itself() -> None:
    snapshot = core_placement.cluster(2_000)

    together = best_of(partial(core_placement.placed, snapshot, (core_placement.gang(0, 5_000),)), 3)

    assert core_placement.one_pod_at_a_time(snapshot, 5_000).cpu > 10 * together.cpu


def test_a_gang_like_the_one_before_costs_half_of_one_that_is_decided_afresh() -> None:
    snapshot, units = core_placement.cluster(5_000), core_placement.gangs(20, 8)

    alike = best_of(partial(core_placement.placed, snapshot, units), 3)

    assert best_of(partial(core_placement.placed_afresh, snapshot, units), 2).cpu > 2 * alike.cpu


def test_all_domains_at_once_cost_a_quarter_of_one_after_the_other() -> None:
    snapshot, unit = topology.cluster(3_000), topology.tree(topology.WANTED)

    at_once = best_of(partial(topology.placed, snapshot, unit), 3)

    assert best_of(partial(topology.tried_one_by_one, snapshot, unit), 1).cpu > 4 * at_once.cpu


def test_finding_victims_costs_a_quarter_of_placing_anew_for_each_group() -> None:
    cluster = preemption.full(1, 2_000)
    unit = cluster.gang(200)
    groups = cluster.count // preemption.GROUP

    found = best_of(partial(preemption.preempted, cluster, preemption.MOVING, unit), 3)

    assert (
        groups * preemption.placing_anew(unit, preemption.MOVING, preemption.Full(1, 2_000)).cpu
        > 4 * found.cpu
    )


def test_a_gang_among_single_pods_looks_at_many_of_them_at_once() -> None:
    cluster = preemption.FullOfSinglePods(500)
    unit = cluster.gang(8, preemption.MOST_OF_A_NODE)
    finding = partial(preemption.preempted, cluster, preemption.MOVING, unit)

    at_once = best_of(finding, 3).cpu
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(counted_return, "MOST_TURNS", 0)
        one_by_one = best_of(finding, 1).cpu

    assert one_by_one > 3 * at_once


def test_writers_that_share_a_commit_cost_less_than_commits_of_their_own() -> None:
    with opened_place() as place, store_commit.opened(place, SQLITE) as store:
        clusters = [store_commit.Cluster(store, f"writer-{number}") for number in range(32)]
        apart = [cluster.added(8) for cluster in clusters]
        alone = store_commit.one_by_one(store, apart)

        together = store_commit.committed(store, [cluster.added(8) for cluster in clusters])

    assert alone.cpu > 1.5 * together.cpu


@pytest.mark.parametrize("subject", growth.SUBJECTS)
def test_times_grow_no_faster_than_the_number_of_nodes(subject: str) -> None:
    found = growth.curve(growth.SUBJECTS[subject], SIZES, 3)

    assert exponent(found.milliseconds) < MOST_EXPONENT, found
