"""The cheapest victims by trying every set of units and every placement: what preemption must not be dearer than.

For tiny clusters of one resource; shares no code with the core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

Cost = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Low:
    """A unit of lower priority: its pods' nodes, each taking so many cpus."""

    name: str
    priority: int
    cpu: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Tiny:
    """room: cpus of each node without any low unit. racks: of each node. wanted: cpus of each pod of the preemptor."""

    room: Mapping[str, int]
    racks: Mapping[str, str]
    lows: tuple[Low, ...]
    wanted: tuple[int, ...]
    in_one_rack: bool = False
    allowed: Mapping[str, int] = field(default_factory=dict)
    """Per unit with a budget of its own, how many of its pods may go."""

    def free(self, evicted: Sequence[Low]) -> dict[str, int]:
        """What is left on each node with these units gone."""
        free = dict(self.room)
        for low in self.lows:
            if low not in evicted:
                for node in low.nodes:
                    free[node] -= low.cpu
        return free

    def fits(self, evicted: Sequence[Low]) -> bool:
        """Whether all wanted pods have a node then."""
        free = self.free(evicted)
        if not self.in_one_rack:
            return _fit(free, sorted(self.wanted, reverse=True))
        return any(
            _fit({node: free[node] for node in free if self.racks[node] == rack}, list(self.wanted))
            for rack in set(self.racks.values())
        )

    def cost(self, evicted: Sequence[Low]) -> Cost:
        """Pods over budget, highest priority, sum of priorities, units, pods."""
        lowest = min([0, *(low.priority for low in self.lows)])
        over = sum(
            max(0, len(low.nodes) - self.allowed[low.name]) for low in evicted if low.name in self.allowed
        )
        return (
            over,
            max((low.priority for low in evicted), default=-(2**63)),
            sum(low.priority - lowest for low in evicted),
            len(evicted),
            sum(len(low.nodes) for low in evicted),
        )

    def cheapest(self) -> Cost | None:
        """The cost of the best set, None if the pods do not fit whoever goes."""
        return min((self.cost(chosen) for chosen in self._sets() if self.fits(chosen)), default=None)

    def _sets(self) -> Iterator[tuple[Low, ...]]:
        for number in range(len(self.lows) + 1):
            yield from combinations(self.lows, number)


def _fit(free: dict[str, int], pods: list[int]) -> bool:
    if not pods:
        return True
    for node, room in free.items():
        if room >= pods[0]:
            rest = {**free, node: room - pods[0]}
            if _fit(rest, pods[1:]):
                return True
    return False
