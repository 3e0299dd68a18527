"""The pods of one PodGroup, counted by what each means for its group (semantics 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from muster.model.meta import ORDINAL_OF
from muster.model.pod import FAILED, SUCCEEDED, Pod
from muster.model.variations import alike

_stand_alike = alike(Pod, "status", "spec", "gates", "deletion_us", "node_name")


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


_STANDINGS = len(Standing)


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
        self.counts = [0] * _STANDINGS

    def put(self, pod: Pod) -> None:
        """Add the pod, or replace its earlier state."""
        old = self.pods.get(pod.ordinal)
        if old is not None:
            self.counts[standing(old, self._names)] -= 1
        self.pods[pod.ordinal] = pod
        self.counts[standing(pod, self._names)] += 1

    def add(self, pods: Sequence[Pod]) -> None:
        """Pods that did not exist."""
        self.pods.update(zip(map(ORDINAL_OF, pods), pods, strict=True))
        if _stand_alike(pods):
            self.counts[standing(pods[0], self._names)] += len(pods)
            return
        for pod in pods:
            self.counts[standing(pod, self._names)] += 1

    def bind(self, pods: Sequence[Pod]) -> None:
        """Members that were PENDING got a node."""
        self.pods.update(zip(map(ORDINAL_OF, pods), pods, strict=True))
        self.counts[Standing.PENDING] -= len(pods)
        self.counts[Standing.BOUND] += len(pods)

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
