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
from tests.properties.strategies import pods

APPS = ("red", "blue")
KEYS = ("zone", "kubernetes.io/hostname")


@st.composite
def terms(draw: st.DrawFn) -> PodAffinityTerm:
    return PodAffinityTerm(
        label_selector=draw(
            st.sampled_from([None, LabelSelector(), *(LabelSelector({"app": app}) for app in APPS)])
        ),
        topology_key=draw(st.sampled_from(KEYS)),
    )


def pod_affinities() -> st.SearchStrategy[PodAffinity | None]:
    weighted = st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 100), term=terms())
    return st.one_of(
        st.none(),
        st.builds(
            PodAffinity,
            required=st.lists(terms(), max_size=2).map(tuple),
            preferred=st.lists(weighted, max_size=1).map(tuple),
        ),
    )


def constraints() -> st.SearchStrategy[TopologySpreadConstraint]:
    return st.builds(
        TopologySpreadConstraint,
        max_skew=st.integers(1, 2),
        topology_key=st.sampled_from(KEYS),
        when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        label_selector=st.sampled_from([LabelSelector({"app": app}) for app in APPS]),
        min_domains=st.sampled_from([None, 3]),
        node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
        node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
    )


@st.composite
def pods_with_terms(draw: st.DrawFn) -> Pod:
    """A pod of one of two apps; every other one has terms or constraints."""
    pod = replace(draw(pods()), labels={"app": draw(st.sampled_from(APPS))})
    if draw(st.booleans()):
        return pod
    affinity = Affinity(pod_affinity=draw(pod_affinities()), pod_anti_affinity=draw(pod_affinities()))
    spread = tuple(draw(st.lists(constraints(), max_size=1)))
    return replace(pod, spec=replace(pod.spec, affinity=affinity, topology_spread_constraints=spread))
