"""Pods whose placement depends on other pods: affinity, anti-affinity and spread, drawn at random."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from muster.model.meta import LabelSelector
from muster.model.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from tests.dsl.nodes import HOSTNAME
from tests.properties.strategies import pods

APPS = ("red", "blue")
KEYS = ("zone", HOSTNAME)
SELECTORS = (*(LabelSelector({"app": app}) for app in APPS * 2), LabelSelector(), None)


@st.composite
def terms(draw: st.DrawFn) -> PodAffinityTerm:
    return PodAffinityTerm(
        label_selector=draw(st.sampled_from(SELECTORS)), topology_key=draw(st.sampled_from(KEYS))
    )


def pod_affinities() -> st.SearchStrategy[PodAffinity]:
    weighted = st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 100), term=terms())
    return st.builds(
        PodAffinity,
        required=st.lists(terms(), max_size=2).map(tuple),
        preferred=st.lists(weighted, max_size=1).map(tuple),
    )


def constraints() -> st.SearchStrategy[TopologySpreadConstraint]:
    return st.builds(
        TopologySpreadConstraint,
        max_skew=st.integers(1, 2),
        topology_key=st.sampled_from(KEYS),
        when_unsatisfiable=st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        label_selector=st.sampled_from([LabelSelector({"app": app}) for app in APPS]),
        min_domains=st.sampled_from([None, 3]),
        node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
        node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
    )


KINDS = ("plain", "together", "apart", "spread", "all")


@st.composite
def pods_with_terms(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Pod:
    """A pod of one of two apps, with terms and constraints of one kind, of all, or without."""
    pod = replace(draw(pods()), labels={"app": draw(st.sampled_from(APPS))})
    kind = draw(st.sampled_from(kinds))
    affinity = Affinity(
        node_affinity=pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None,
        pod_affinity=draw(pod_affinities()) if kind in {"together", "all"} else None,
        pod_anti_affinity=draw(pod_affinities()) if kind in {"apart", "all"} else None,
    )
    spread = tuple(draw(st.lists(constraints(), min_size=1, max_size=2))) if kind in {"spread", "all"} else ()
    return replace(pod, spec=replace(pod.spec, affinity=affinity, topology_spread_constraints=spread))
