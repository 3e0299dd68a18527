"""Pods of one call that share all but their names and groups, as those of most gangs do: what holds for one holds for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import count, groupby
from operator import sub
from typing import NamedTuple, cast

from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.variations import alike

LEAST_PODS = 8
"""Fewer are as quick one by one."""

_are_alike = alike(Pod, *(field.name for field in fields(Pod) if field.name not in ("name", "group")))


class LikePods(NamedTuple):
    """Pods that share all but their names and groups, in the order of the call.

    runs: by the place of its first pod, those of one group that stand next to one another.
    """

    pods: Sequence[Pod]
    runs: Mapping[int, Sequence[Pod]]


def pod_runs(objects: Sequence[ClusterObject | PodBatch | None]) -> list[LikePods]:
    """New pods of a call that are alike, where there are some more of them.

    Only of pods that say neither their uid nor the revision that they expect, nor whom they belong to.
    """
    places = [place for place, each in enumerate(objects) if type(each) is Pod]
    if len(places) < LEAST_PODS:
        return []
    return [
        LikePods(pods, _runs(some, pods))
        for some, pods in _of_one_kind(places, cast("list[Pod]", [objects[place] for place in places]))
        if not (pods[0].uid or pods[0].resource_version or pods[0].owner_references)
    ]


def _of_one_kind(places: list[int], pods: list[Pod]) -> Iterator[tuple[list[int], list[Pod]]]:
    """Mostly all pods of a call are of one kind."""
    if _are_alike(pods):
        yield places, pods
        return
    kinds = defaultdict[tuple[object, ...], list[int]](list)
    for at, pod in enumerate(pods):
        kinds[id(pod.spec), id(pod.labels), pod.namespace, pod.gates, pod.node_name].append(at)
    for kind in kinds.values():
        some = [pods[at] for at in kind]
        if len(some) >= LEAST_PODS and _are_alike(some):
            yield [places[at] for at in kind], some


def _runs(places: Sequence[int], pods: Sequence[Pod]) -> dict[int, Sequence[Pod]]:
    found: dict[int, Sequence[Pod]] = {}
    start = 0
    for _, run in groupby(zip(map(sub, places, count()), [pod.group for pod in pods], strict=False)):
        end = start + len(list(run))
        found[places[start]] = pods[start:end]
        start = end
    return found
