"""What is worked out for all domains in one pass equals what each gives by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muster.core.capacity import rooms_of
from muster.core.cuts import levels_of
from muster.core.domains import CLUSTER
from muster.core.framework import PlacementViews
from muster.core.pod_placement import placer_of
from muster.core.tree import GroupTree
from muster.plugins.profile import make_profile
from muster.plugins.topology_placement import MostPodsThenFullest
from tests.dsl import Cluster
from tests.properties.test_lockstep import KEYS, Built, clusters, trees

EXHAUSTIVE = make_profile({"name": "exhaustive", "search": {"nodeBudget": 10**6}})
AMOUNTS = st.integers(0, 12) | st.integers(0, 2**55)


def built(drawn: Built) -> Cluster:
    made, running = drawn
    cluster = Cluster(*made, profile=EXHAUSTIVE)
    for item, name in running:
        cluster.runs(item, name)
    return cluster


@settings(max_examples=150, deadline=None)
@given(drawn=clusters(), keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(tuple))
def test_a_cut_has_a_domain_for_each_path_of_values(drawn: Built, keys: tuple[str, ...]) -> None:
    snapshot = built(drawn).snapshot

    levels = levels_of(snapshot, CLUSTER, keys)

    paths_above: list[tuple[str, ...]] = [()]
    for depth, level in enumerate(levels, 1):
        domains: dict[tuple[str, ...], list[int]] = {}
        for slot in np.flatnonzero(snapshot.nodes.present).tolist():
            labels = snapshot.nodes.labels[slot]
            if all(key in labels for key in keys[:depth]):
                domains.setdefault(tuple(labels[key] for key in keys[:depth]), []).append(slot)
        paths = sorted(domains)
        assert [domain.value for domain in level.domains] == [path[-1] for path in paths]
        assert [np.array(domain.slots).tolist() for domain in level.domains] == [
            domains[path] for path in paths
        ]
        assert [paths_above[place] for place in level.parents] == [path[:-1] for path in paths]
        paths_above = paths


@settings(max_examples=100, deadline=None)
@given(choices=st.data(), drawn=clusters())
def test_rooms_follow_what_is_assumed_and_reverted(choices: st.DataObject, drawn: Built) -> None:
    cluster = built(drawn)
    snapshot = cluster.snapshot
    unit, _ = cluster.unit(choices.draw(trees(tuple(item.name for item in drawn[0]))))
    indexes = sorted({index for group in _all(unit.root) for index in group.pods.signatures})
    assume(indexes)
    placer = placer_of(snapshot, cluster.profile)
    rooms = rooms_of(snapshot, placer)
    before = [rooms.per_slot(snapshot.signatures[index]).tolist() for index in indexes]
    mark = snapshot.mark()

    placer.place(indexes[0], 3, None)
    assumed = [rooms.per_slot(snapshot.signatures[index]).tolist() for index in indexes]
    fresh = type(rooms)(snapshot, placer)
    assert assumed == [fresh.per_slot(snapshot.signatures[index]).tolist() for index in indexes]
    snapshot.rollback(mark)

    assert [rooms.per_slot(snapshot.signatures[index]).tolist() for index in indexes] == before


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.tuples(AMOUNTS, AMOUNTS), st.tuples(AMOUNTS, AMOUNTS)), max_size=12
    )
)
def test_ranks_order_candidates_as_their_scores_do(
    rows: list[tuple[int, tuple[int, int], tuple[int, int]]],
) -> None:
    # Every candidate once more at another scale: equal shares that floating point may not see as equal.
    rows += [(placed, (used[0] * 3, used[1] * 3), (all_[0] * 3, all_[1] * 3)) for placed, used, all_ in rows]
    columns = (
        np.array([(placed, *used, *all_) for placed, used, all_ in rows], dtype=np.int64).reshape(-1, 5).T
    )
    views = PlacementViews(columns[0], tuple(columns[1:3]), tuple(columns[3:5]))
    scorer = MostPodsThenFullest()

    ranks = scorer.ranks(views).tolist()

    scores: list[tuple[Fraction | int, ...]] = [scorer.score(views[place]) for place in range(len(rows))]
    dense = {score: rank for rank, score in enumerate(sorted(set(scores)))}
    assert ranks == [dense[score] for score in scores]


def _all(group: GroupTree) -> list[GroupTree]:
    return [group, *(each for child in group.children for each in _all(child))]
