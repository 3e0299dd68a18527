"""Runs of pods in one call that differ in their names alone, as those of most gangs do: what holds for one holds for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import cast

from muster.engine.cluster_state import NAME_OF_GROUP
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.variations import alike

LEAST_PODS = 32
"""Fewer are as quick one by one."""

_differ_in_name = alike(Pod, *(field.name for field in fields(Pod) if field.name != "name"))


def pod_runs(objects: Sequence[ClusterObject | PodBatch | None]) -> dict[int, Sequence[Pod]]:
    """By the place of its first pod, each run of new pods that stand next to one another and share all but the name.

    Only of pods that say neither their uid nor the revision that they expect, nor whom they belong to.
    """
    found: dict[int, Sequence[Pod]] = {}
    for start, pods in _of_one_group(objects):
        first = pods[0]
        is_plain = not (first.uid or first.resource_version or first.owner_references)
        if is_plain and _differ_in_name(pods):
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
