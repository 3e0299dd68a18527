"""The pods of one PodGroup, counted by what each means for its group (semantics 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from muster.model.pod import FAILED, SUCCEEDED, Pod


class Standing(IntEnum):
    """What a pod means for its group. PENDING, GATED and BOUND are members; LEAVING uses room and counts for nothing.

    FOREIGN is an unbound pod of another scheduler (semantics 2): it counts only once it is bound.
    """

    PENDING = 0
    GATED = 1
    BOUND = 2
    LEAVING = 3
    GOING = 4
    SUCCEEDED = 5
    FAILED = 6
    FOREIGN = 7


def standing(pod: Pod, scheduler_names: frozenset[str]) -> Standing:
    """`scheduler_names` are ours. GOING is an unbound pod with a deletion mark: a finalizer holds it."""
    phase = pod.status.phase
    if phase == SUCCEEDED:
        return Standing.SUCCEEDED
    if phase == FAILED:
        return Standing.FAILED
    if pod.deletion_us is not None:
        return Standing.LEAVING if pod.node_name else Standing.GOING
    if pod.node_name:
        return Standing.BOUND
    if pod.spec.scheduler_name not in scheduler_names:
        return Standing.FOREIGN
    return Standing.GATED if pod.gates else Standing.PENDING


class Members:
    """Pods by ordinal with a count for each standing; kept up to date pod by pod, so a count costs nothing."""

    __slots__ = ("_names", "counts", "pods")

    def __init__(self, scheduler_names: frozenset[str]) -> None:
        self._names = scheduler_names
        self.pods: dict[int, Pod] = {}
        self.counts = [0] * len(Standing)

    def put(self, pod: Pod) -> None:
        """Add the pod, or replace its earlier state."""
        old = self.pods.get(pod.ordinal)
        if old is not None:
            self.counts[standing(old, self._names)] -= 1
        self.pods[pod.ordinal] = pod
        self.counts[standing(pod, self._names)] += 1

    def add(self, pods: Iterable[Pod]) -> None:
        """Pods that did not exist."""
        for pod in pods:
            self.pods[pod.ordinal] = pod
            self.counts[standing(pod, self._names)] += 1

    def bind(self, pods: Iterable[Pod]) -> None:
        """Members that were PENDING got a node."""
        bound = 0
        for pod in pods:
            self.pods[pod.ordinal] = pod
            bound += 1
        self.counts[Standing.PENDING] -= bound
        self.counts[Standing.BOUND] += bound

    def remove(self, pod: Pod) -> None:
        old = self.pods.pop(pod.ordinal)
        self.counts[standing(old, self._names)] -= 1

    def of(self, *standings: Standing) -> Iterator[Pod]:
        """Pods of these standings in creation order."""
        pods = map(self.pods.__getitem__, sorted(self.pods))
        if sum(self.counts[each] for each in set(standings)) == len(self.pods):
            return pods
        return (pod for pod in pods if standing(pod, self._names) in standings)

    @property
    def unbound(self) -> int:
        """Members that still want a node, gated ones included."""
        return self.counts[Standing.PENDING] + self.counts[Standing.GATED]

    @property
    def live(self) -> int:
        """Pods that keep a deleted group alive: all that are not terminal."""
        return len(self.pods) - self.counts[Standing.SUCCEEDED] - self.counts[Standing.FAILED]
