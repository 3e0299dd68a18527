"""Runs of pods in one call that differ in their names alone, as those of most gangs do: what holds for one holds for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import cast

from muster.engine.cluster_state import NAME_OF_GROUP
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch, share

LEAST_PODS = 32
"""Fewer are as quick one by one."""

_SAME_FOR_ALL = tuple(
    map(
        attrgetter,
        (
            "spec",
            "labels",
            "annotations",
            "owner_references",
            "finalizers",
            "gates",
            "status",
            "node_name",
            "group",
            "namespace",
            "uid",
            "resource_version",
        ),
    )
)


def pod_runs(objects: Sequence[ClusterObject | PodBatch | None]) -> dict[int, Sequence[Pod]]:
    """By the place of its first pod, each run of new pods that stand next to one another and share all but the name.

    Only of pods that say neither their uid nor the revision that they expect, nor whom they belong to.
    """
    found: dict[int, Sequence[Pod]] = {}
    for start, pods in _of_one_group(objects):
        first = pods[0]
        is_plain = not (first.uid or first.resource_version or first.owner_references)
        if is_plain and share(pods, *_SAME_FOR_ALL):
            found[start] = pods
    return found


def _of_one_group(objects: Sequence[ClusterObject | PodBatch | None]) -> Iterator[tuple[int, Sequence[Pod]]]:
    start = 0
    kinds = map(type, objects) if len(objects) >= LEAST_PODS else ()
    for kind, run in groupby(kinds):
        end = start + len(list(run))
        if kind is Pod and end - start >= LEAST_PODS:
            pods = cast("Sequence[Pod]", objects[start:end])
            for _, same in groupby(pods, key=NAME_OF_GROUP):
                together = list(same)
                if len(together) >= LEAST_PODS:
                    yield start, together
                start += len(together)
        start = end
