"""Questions about a cluster that are answered aside, on a copy, and what each of them is given (api.md: Simulate)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeAlias, TypeVar

from muster.core.framework import Profile
from muster.engine.cluster import Cluster

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Setting:
    """What decides beside the cluster: profiles by scheduler name, the first the default one, the time, who evicts."""

    profiles: Mapping[str, Profile]
    now_us: int
    clients_evict: bool = False


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How long a question may be worked on, and in how long from now it must end, time in line included."""

    seconds: float
    within_seconds: float = inf


Question: TypeAlias = Callable[[Cluster, Setting], Answer]


@dataclass(frozen=True, slots=True)
class AskedAside(Generic[Answer]):
    """A question with its setting, as the side worker takes it."""

    question: Question[Answer]
    setting: Setting

    def __call__(self, cluster: Cluster) -> Answer:
        return self.question(cluster, self.setting)
