"""The objects of one call so far, by key. Runs of pods are sorted in only once somebody asks for a pod."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from muster.model.meta import POD, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, keys_of


class CallObjects:
    """Holds what each object of the call has become."""

    def __init__(self) -> None:
        self._by_key: dict[ObjectKey, ClusterObject] = {}
        self._runs: list[Sequence[Pod]] = []
        self._has_pods = self._has_pods_apart = False

    def add(self, key: ObjectKey, item: ClusterObject) -> ClusterObject | None:
        """Take in the newest object; returns what stood for its key before."""
        if type(item) is Pod:
            self._has_pods = self._has_pods_apart = True
            self._sort_in()
        before = self._by_key.get(key)
        self._by_key[key] = item
        return before

    def add_run(self, pods: Sequence[Pod]) -> None:
        """Pods of which none stands in the call yet, nor in another run of it."""
        self._runs.append(pods)
        self._has_pods = True

    def add_batch(self, pods: Sequence[Pod]) -> None:
        """Pods of which none stands in the call yet."""
        self.add_run(pods)
        self._has_pods_apart = True

    def get(self, key: ObjectKey) -> ClusterObject | None:
        if key.kind == POD:
            self._sort_in()
        return self._by_key.get(key)

    def has_any_pod(self, namespace: str, names: Sequence[str]) -> bool:
        """Whether one of the pods stands in the call."""
        if not self._has_pods:
            return False
        self._sort_in()
        return not self._by_key.keys().isdisjoint(zip(repeat(POD), repeat(namespace), names, strict=False))

    def has_apart(self, namespace: str, pods: Sequence[Pod]) -> bool:
        """Whether one of these names is that of a pod that came by itself or in a batch."""
        return self._has_pods_apart and self.has_any_pod(namespace, [pod.name for pod in pods])

    def _sort_in(self) -> None:
        for pods in self._runs:
            self._by_key.update(zip(keys_of(pods), pods, strict=True))
        self._runs.clear()
