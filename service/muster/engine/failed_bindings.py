"""Nodes on which the binding of a pod has failed: they are left out for that pod until they change or a time has passed.

Kept by ordinal (semantics 5.7). Every change goes to the store, so that a restart leaves the same nodes out. Who acts on
it: `units` hands it to the core, `mutation` tells of nodes that changed and pods that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.engine.ports import FailedBinding


class FailedBindings(Mapping[int, Mapping[str, int]]):
    """By ordinal, node and time, in microseconds, until which it is left out.

    `record` is called with every change: pod, node, and the time, or None for one that is forgotten.
    """

    def __init__(self, record: Callable[[int, str, int | None], None]) -> None:
        self._record = record
        self._until: dict[int, dict[str, int]] = {}

    def __getitem__(self, pod: int) -> Mapping[str, int]:
        return self._until[pod]

    def __iter__(self) -> Iterator[int]:
        return iter(self._until)

    def __len__(self) -> int:
        return len(self._until)

    def load(self, rows: Iterable[FailedBinding]) -> None:
        """Take over what the store holds."""
        for row in rows:
            self._until.setdefault(row.pod, {})[row.node_name] = row.until_us

    def take_over(self, until_us: Mapping[int, dict[str, int]]) -> None:
        """In a copy of a cluster: know these, as the cluster does; nothing is recorded."""
        self._until = dict(until_us)

    def rows(self) -> list[FailedBinding]:
        """What a restart, or a replica, must know."""
        return [
            FailedBinding(pod, name, until_us)
            for pod, nodes in self._until.items()
            for name, until_us in nodes.items()
        ]

    def note(self, pod: int, node_name: str, until_us: int) -> None:
        """The pod's binding to the node failed."""
        self._until.setdefault(pod, {})[node_name] = until_us
        self._record(pod, node_name, until_us)

    def forget(self, pod: int, node_name: str) -> None:
        """The pod may be tried there again; nothing happens if it may already."""
        nodes = self._until.get(pod)
        if nodes is None or nodes.pop(node_name, None) is None:
            return
        if not nodes:
            del self._until[pod]
        self._record(pod, node_name, None)

    def pod_gone(self, pod: int) -> None:
        """Nothing is to be known of the pod."""
        for name in list(self._until.get(pod, ())):
            self.forget(pod, name)

    def node_changed(self, node_name: str) -> None:
        """It is another node now: every pod may be tried there again."""
        for pod in [pod for pod, nodes in self._until.items() if node_name in nodes]:
            self.forget(pod, node_name)

    def forgive(self, now_us: int) -> bool:
        """Forget those whose time is over; true if there were any."""
        over = [row for row in self.rows() if row.until_us <= now_us]
        for row in over:
            self.forget(row.pod, row.node_name)
        return bool(over)
