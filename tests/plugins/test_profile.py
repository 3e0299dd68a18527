import pickle
from typing import Any

import pytest

from muster.plugins.profile import ProfileError, default_profile, make_profile
from muster.plugins.resource_fit import MostAllocated, RequestedToCapacityRatio


def test_the_default_profile_has_every_filter_and_score_with_weight_one() -> None:
    profile = default_profile()

    weights = [
        [item.weight for item in profile.node_scores],
        [item.weight for item in profile.fit_scores],
        [item.weight for item in profile.pod_scores],
    ]
    assert profile.name == "default-scheduler"
    assert weights == [[1, 1]] * 3
    codes = [item.code for item in profile.node_filters] + [item.code for item in profile.pod_filters]
    assert codes == [
        "NODE_UNSCHEDULABLE",
        "NODE_TAINTED",
        "NODE_AFFINITY",
        "TOPOLOGY_SPREAD_KEY",
        "HOST_PORTS",
        "TOPOLOGY_SPREAD",
        "POD_AFFINITY",
        "POD_ANTI_AFFINITY",
    ]


def test_reservations_are_made_after_the_wait_that_a_profile_sets_and_never_by_default() -> None:
    profile = make_profile({"name": "patient", "reservation": {"afterSeconds": 300}})

    assert profile.reservation.after_seconds == 300
    assert default_profile().reservation.after_seconds is None


def test_a_profile_is_equal_after_the_way_to_another_process() -> None:
    profile = default_profile()

    assert pickle.loads(pickle.dumps(profile)) == profile  # noqa: S301 - our own.


def test_a_strategy_and_its_arguments_are_read() -> None:
    profile = make_profile(
        {
            "name": "packing",
            "filters": {"disabled": ["NodePorts"]},
            "scores": [
                {
                    "name": "NodeResourcesFit",
                    "weight": 5,
                    "args": {
                        "strategy": "MostAllocated",
                        "resources": [{"name": "example.com/gpu", "weight": 3}],
                    },
                }
            ],
            "greedyOnly": True,
        }
    )

    assert profile.fit_scores[0].plugin == MostAllocated((("example.com/gpu", 3),))
    assert profile.fit_scores[0].weight == 5
    assert profile.search.node_budget == 0
    assert "HOST_PORTS" not in [item.code for item in profile.pod_filters]


def test_shape_points_are_scaled_to_a_hundred() -> None:
    points = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]

    profile = make_profile({"name": "x", "scores": [fit(strategy="RequestedToCapacityRatio", shape=points)]})

    plugin = profile.fit_scores[0].plugin
    assert isinstance(plugin, RequestedToCapacityRatio)
    assert plugin.shape == ((0, 0), (100, 100))


def fit(**args: Any) -> dict[str, Any]:
    return {"name": "NodeResourcesFit", "args": args}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({}, "profile.name"),
        ({"name": "x", "color": 1}, "profile.color"),
        ({"name": "x", "scores": {}}, "profile.scores"),
        ({"name": "x", "scores": [{"name": "Luck"}]}, "profile.scores[0].name"),
        ({"name": "x", "scores": [fit(), fit()]}, "profile.scores[1].name"),
        ({"name": "x", "scores": [fit() | {"weight": 0}]}, "profile.scores[0].weight"),
        ({"name": "x", "scores": [fit() | {"weight": True}]}, "profile.scores[0].weight"),
        ({"name": "x", "scores": [{"name": "NodeAffinity", "args": {"a": 1}}]}, "profile.scores[0].args"),
        ({"name": "x", "scores": [fit(strategy="Best")]}, "profile.scores[0].args.strategy"),
        ({"name": "x", "scores": [fit(shape=[])]}, "profile.scores[0].args.shape"),
        (
            {"name": "x", "scores": [fit(strategy="RequestedToCapacityRatio")]},
            "profile.scores[0].args.shape",
        ),
        (
            {
                "name": "x",
                "scores": [
                    fit(
                        strategy="RequestedToCapacityRatio",
                        shape=[{"utilization": 9, "score": 1}, {"utilization": 9, "score": 2}],
                    )
                ],
            },
            "profile.scores[0].args.shape[1].utilization",
        ),
        ({"name": "x", "scores": [fit(resources=[])]}, "profile.scores[0].args.resources"),
        (
            {"name": "x", "scores": [fit(resources=[{"name": ""}])]},
            "profile.scores[0].args.resources[0].name",
        ),
        ({"name": "x", "filters": {"disabled": ["Nothing"]}}, "profile.filters.disabled[0]"),
        ({"name": "x", "search": {"nodeBudget": -1}}, "profile.search.nodeBudget"),
        ({"name": "x", "greedyOnly": "yes"}, "profile.greedyOnly"),
        ({"name": "x", "preemption": {"moveBudget": -1}}, "profile.preemption.moveBudget"),
        ({"name": "x", "preemption": {"rootCandidates": 0}}, "profile.preemption.rootCandidates"),
        ({"name": "x", "preemption": {"moves": 1}}, "profile.preemption.moves"),
        ({"name": "x", "reservation": {"afterSeconds": -1}}, "profile.reservation.afterSeconds"),
        ({"name": "x", "reservation": {"after": 1}}, "profile.reservation.after"),
    ],
)
def test_a_fault_is_named_by_its_path(config: dict[str, Any], path: str) -> None:
    with pytest.raises(ProfileError) as raised:
        make_profile(config)

    assert raised.value.path == path


def test_preemption_is_as_thorough_as_the_profile_says() -> None:
    profile = make_profile({"name": "x", "preemption": {"moveBudget": 7, "rootCandidates": 2}})

    assert (profile.preemption.move_budget, profile.preemption.root_candidates) == (7, 2)
    assert default_profile().preemption.move_budget > 0
