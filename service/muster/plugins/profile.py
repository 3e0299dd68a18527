"""Profiles from plain mappings, as a configuration file gives them; the default profile.

A mapping has `name`, and optionally `filters.disabled` (names), `scores` (list of name, weight, args; replaces the
default list), `search.nodeBudget`, `search.solver` (bounded or exact), `greedyOnly`, `preemption.moveBudget`,
`preemption.rootCandidates`, `preemption.evictionTimeoutSeconds` and `reservation.afterSeconds`. Names and args are
Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.core.framework import (
    MAX_SCORE,
    FitScore,
    NodeFilter,
    NodeScore,
    PodFilter,
    PodScore,
    PreemptionSettings,
    Profile,
    ReservationSettings,
    SearchSettings,
    Weighted,
)
from muster.core.search.solver import Solver
from muster.plugins.balanced_allocation import BalancedAllocation
from muster.plugins.exact_search import ExactSearch, exact_search_is_installed
from muster.plugins.host_ports import HostPortsFilter
from muster.plugins.node_affinity import NodeAffinityFilter, NodeAffinityScore
from muster.plugins.pod_affinity import PodAffinityFilter, PodAffinityScore, PodAntiAffinityFilter
from muster.plugins.resource_fit import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    Resources,
    Shape,
)
from muster.plugins.taint_toleration import TaintFilter, TaintScore
from muster.plugins.topology_placement import MostPodsThenFullest
from muster.plugins.topology_spread import SpreadFilter, SpreadKeyFilter, SpreadScore
from muster.plugins.unschedulable import UnschedulableFilter

DEFAULT_PROFILE_NAME = "default-scheduler"
DEFAULT_NODE_BUDGET = 20_000
DEFAULT_MOVE_BUDGET = 25_000
DEFAULT_EVICTION_TIMEOUT_SECONDS = 60
DEFAULT_ROOT_CANDIDATES = 3

_NODE_FILTERS: tuple[tuple[str, NodeFilter], ...] = (
    ("NodeUnschedulable", UnschedulableFilter()),
    ("TaintToleration", TaintFilter()),
    ("NodeAffinity", NodeAffinityFilter()),
    ("PodTopologySpread", SpreadKeyFilter()),
)
_POD_FILTERS: tuple[tuple[str, PodFilter], ...] = (
    ("NodePorts", HostPortsFilter()),
    ("PodTopologySpread", SpreadFilter()),
    ("InterPodAffinity", PodAffinityFilter()),
    ("InterPodAffinity", PodAntiAffinityFilter()),
)
_FILTER_NAMES = frozenset(name for name, _ in (*_NODE_FILTERS, *_POD_FILTERS))
_DEFAULT_SCORES: tuple[Mapping[str, Any], ...] = tuple(
    {"name": name}
    for name in (
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "NodeAffinity",
        "InterPodAffinity",
        "TaintToleration",
        "PodTopologySpread",
    )
)
_LONGEST_WAIT_SECONDS = 30 * 86_400
_MOST_WEIGHT = 1000
_MOST_RESOURCES = 16
_UPSTREAM_SCALE = 10
"""Points of a shape score 0 to 10 in Kubernetes' configuration."""
_CPU_AND_MEMORY: Resources = (("cpu", 1), ("memory", 1))


class ProfileError(ValueError):
    """The configuration is wrong at `path`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def default_profile() -> Profile:
    """The profile that manifests mean by default: all filters, all scores with weight 1."""
    return make_profile({"name": DEFAULT_PROFILE_NAME})


def make_profile(config: Mapping[str, Any], path: str = "profile") -> Profile:
    """A profile as configured. Raises ProfileError with the path of the first fault."""
    _check_keys(
        config, {"name", "filters", "scores", "search", "greedyOnly", "preemption", "reservation"}, path
    )
    disabled = _disabled(config.get("filters", {}), f"{path}.filters")
    scores = _scores(config.get("scores", _DEFAULT_SCORES), f"{path}.scores")
    return Profile(
        name=_text(config.get("name"), f"{path}.name"),
        placement_scorer=MostPodsThenFullest(),
        node_filters=tuple(item for name, item in _NODE_FILTERS if name not in disabled),
        pod_filters=tuple(item for name, item in _POD_FILTERS if name not in disabled),
        node_scores=tuple(
            Weighted(_NODE_SCORES[item.name], item.weight) for item in scores if item.name in _NODE_SCORES
        ),
        fit_scores=tuple(
            Weighted(_FIT_SCORES[item.name](item.args, item.path), item.weight)
            for item in scores
            if item.name in _FIT_SCORES
        ),
        pod_scores=tuple(
            Weighted(_POD_SCORES[item.name], item.weight) for item in scores if item.name in _POD_SCORES
        ),
        search=_search(config, path),
        preemption=_preemption(config.get("preemption", {}), f"{path}.preemption"),
        reservation=_reservation(config.get("reservation", {}), f"{path}.reservation"),
    )


def _disabled(config: object, path: str) -> frozenset[str]:
    settings = _mapping(config, path)
    _check_keys(settings, {"disabled"}, path)
    names = _sequence(settings.get("disabled", ()), f"{path}.disabled")
    for place, name in enumerate(names):
        if name not in _FILTER_NAMES:
            raise ProfileError(
                f"{path}.disabled[{place}]", f"must be one of {', '.join(sorted(_FILTER_NAMES))}"
            )
    return frozenset(names)


def _search(config: Mapping[str, Any], path: str) -> SearchSettings:
    settings = _mapping(config.get("search", {}), f"{path}.search")
    _check_keys(settings, {"nodeBudget", "solver"}, f"{path}.search")
    greedy_only = config.get("greedyOnly", False)
    if not isinstance(greedy_only, bool):
        raise ProfileError(f"{path}.greedyOnly", "must be true or false")
    budget = _number(settings.get("nodeBudget", DEFAULT_NODE_BUDGET), f"{path}.search.nodeBudget", (0, 10**9))
    return SearchSettings(
        node_budget=0 if greedy_only else budget,
        solver=_solver(settings.get("solver", "bounded"), f"{path}.search.solver"),
    )


def _preemption(config: object, path: str) -> PreemptionSettings:
    settings = _mapping(config, path)
    _check_keys(settings, {"moveBudget", "rootCandidates", "evictionTimeoutSeconds"}, path)
    return PreemptionSettings(
        move_budget=_number(
            settings.get("moveBudget", DEFAULT_MOVE_BUDGET), f"{path}.moveBudget", (0, 10**9)
        ),
        root_candidates=_number(
            settings.get("rootCandidates", DEFAULT_ROOT_CANDIDATES), f"{path}.rootCandidates", (1, 1000)
        ),
        eviction_timeout_seconds=_number(
            settings.get("evictionTimeoutSeconds", DEFAULT_EVICTION_TIMEOUT_SECONDS),
            f"{path}.evictionTimeoutSeconds",
            (0, 86_400),
        ),
    )


def _reservation(config: object, path: str) -> ReservationSettings:
    settings = _mapping(config, path)
    _check_keys(settings, {"afterSeconds"}, path)
    if "afterSeconds" not in settings:
        return ReservationSettings()
    return ReservationSettings(
        _number(settings["afterSeconds"], f"{path}.afterSeconds", (0, _LONGEST_WAIT_SECONDS))
    )


def _solver(name: object, path: str) -> Solver | None:
    match name:
        case "bounded":
            return None
        case "exact" if exact_search_is_installed():
            return ExactSearch()
        case "exact":
            raise ProfileError(path, "needs the extra muster[exact], which is not installed")
        case _:
            raise ProfileError(path, "must be bounded or exact")


@dataclass(frozen=True)
class _ScoreSetting:
    name: str
    weight: int
    args: Mapping[str, Any]
    path: str


def _scores(config: object, path: str) -> list[_ScoreSetting]:
    settings = [_score(item, f"{path}[{place}]") for place, item in enumerate(_sequence(config, path))]
    seen: set[str] = set()
    for item in settings:
        if item.name in seen:
            raise ProfileError(f"{item.path}.name", "is configured twice")
        seen.add(item.name)
    return settings


def _score(config: object, path: str) -> _ScoreSetting:
    settings = _mapping(config, path)
    _check_keys(settings, {"name", "weight", "args"}, path)
    name = _text(settings.get("name"), f"{path}.name")
    if name not in _SCORE_NAMES:
        raise ProfileError(f"{path}.name", f"must be one of {', '.join(sorted(_SCORE_NAMES))}")
    args = _mapping(settings.get("args", {}), f"{path}.args")
    if args and name not in _FIT_SCORES:
        raise ProfileError(f"{path}.args", "has no arguments")
    weight = _number(settings.get("weight", 1), f"{path}.weight", (1, _MOST_WEIGHT))
    return _ScoreSetting(name, weight, args, path)


def _resource_fit(args: Mapping[str, Any], path: str) -> FitScore:
    path = f"{path}.args"
    _check_keys(args, {"strategy", "resources", "shape"}, path)
    resources = _resources(args.get("resources"), f"{path}.resources")
    strategy = args.get("strategy", "LeastAllocated")
    if strategy != "RequestedToCapacityRatio" and "shape" in args:
        raise ProfileError(f"{path}.shape", "belongs to the strategy RequestedToCapacityRatio")
    match strategy:
        case "LeastAllocated":
            return LeastAllocated(resources)
        case "MostAllocated":
            return MostAllocated(resources)
        case "RequestedToCapacityRatio":
            return RequestedToCapacityRatio(resources, _shape(args.get("shape"), f"{path}.shape"))
        case _:
            raise ProfileError(
                f"{path}.strategy", "must be LeastAllocated, MostAllocated or RequestedToCapacityRatio"
            )


def _balanced(args: Mapping[str, Any], path: str) -> FitScore:
    path = f"{path}.args"
    _check_keys(args, {"resources"}, path)
    resources = _resources(args.get("resources"), f"{path}.resources")
    return BalancedAllocation(tuple(name for name, _ in resources))


def _resources(config: object, path: str) -> Resources:
    if config is None:
        return _CPU_AND_MEMORY
    items = _sequence(config, path)
    if not 1 <= len(items) <= _MOST_RESOURCES:
        raise ProfileError(path, f"must have 1 to {_MOST_RESOURCES} resources")
    return tuple(_resource(item, f"{path}[{place}]") for place, item in enumerate(items))


def _resource(config: object, path: str) -> tuple[str, int]:
    settings = _mapping(config, path)
    _check_keys(settings, {"name", "weight"}, path)
    return _text(settings.get("name"), f"{path}.name"), _number(
        settings.get("weight", 1), f"{path}.weight", (1, _MOST_WEIGHT)
    )


def _shape(config: object, path: str) -> Shape:
    points: list[tuple[int, int]] = []
    for place, item in enumerate(_sequence(config, path)):
        at = f"{path}[{place}]"
        settings = _mapping(item, at)
        _check_keys(settings, {"utilization", "score"}, at)
        utilization = _number(settings.get("utilization"), f"{at}.utilization", (0, 100))
        score = _number(settings.get("score"), f"{at}.score", (0, MAX_SCORE // _UPSTREAM_SCALE))
        if points and utilization <= points[-1][0]:
            raise ProfileError(f"{at}.utilization", "must be above the point before")
        points.append((utilization, score * _UPSTREAM_SCALE))
    if not points:
        raise ProfileError(path, "must have at least one point")
    return tuple(points)


def _check_keys(config: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in config:
        if key not in known:
            raise ProfileError(f"{path}.{key}", f"is unknown; known are {', '.join(sorted(known))}")


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProfileError(path, "must be a mapping")
    return value


def _sequence(value: object, path: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ProfileError(path, "must be a list")
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ProfileError(path, "must be a text that is not empty")
    return value


def _number(value: object, path: str, bounds: tuple[int, int]) -> int:
    low, high = bounds
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ProfileError(path, f"must be a whole number from {low} to {high}")
    return value


_NODE_SCORES: dict[str, NodeScore] = {"NodeAffinity": NodeAffinityScore(), "TaintToleration": TaintScore()}
_POD_SCORES: dict[str, PodScore] = {
    "InterPodAffinity": PodAffinityScore(),
    "PodTopologySpread": SpreadScore(),
}
_FIT_SCORES: dict[str, Callable[[Mapping[str, Any], str], FitScore]] = {
    "NodeResourcesFit": _resource_fit,
    "NodeResourcesBalancedAllocation": _balanced,
}
_SCORE_NAMES = frozenset({*_NODE_SCORES, *_POD_SCORES, *_FIT_SCORES})
