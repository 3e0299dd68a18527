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
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.tuples(AMOUNTS, AMOUNTS), st.tuples(AMOUNTS, AMOUNTS)), max_size=12
)
Rows = list[tuple[int, tuple[int, int], tuple[int, int]]]


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
@given(rows=ROWS)
def test_ranks_order_candidates_as_their_scores_do(rows: Rows) -> None:
    views, scorer = views_at_two_scales(rows), MostPodsThenFullest()

    ranks = scorer.ranks(views).tolist()

    scores = scores_of(views)
    dense = {score: rank for rank, score in enumerate(sorted(set(scores)))}
    assert ranks == [dense[score] for score in scores]


@settings(max_examples=300, deadline=None)
@given(rows=ROWS)
def test_sort_keys_order_candidates_as_their_scores_do_the_best_first(rows: Rows) -> None:
    views, scorer = views_at_two_scales(rows), MostPodsThenFullest()

    keys = [(*scorer.sort_key(views[place]), place) for place in range(len(views.placed))]

    scores = scores_of(views)
    by_score = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    assert [key[-1] for key in sorted(keys)] == by_score


def views_at_two_scales(rows: Rows) -> PlacementViews:
    """Every candidate twice: equal shares that floating point may not see as equal."""
    twice = [*rows, *((placed, (a * 3, b * 3), (c * 3, d * 3)) for placed, (a, b), (c, d) in rows)]
    table = [(placed, *used, *all_) for placed, used, all_ in twice]
    columns = np.array(table, dtype=np.int64).reshape(-1, 5).T
    return PlacementViews(columns[0], tuple(columns[1:3]), tuple(columns[3:5]))


def scores_of(views: PlacementViews) -> list[tuple[Fraction | int, ...]]:
    scorer = MostPodsThenFullest()
    return [scorer.score(views[place]) for place in range(len(views.placed))]


def _all(group: GroupTree) -> list[GroupTree]:
    return [group, *(each for child in group.children for each in _all(child))]
