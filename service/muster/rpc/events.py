"""Events of objects as they go over the wire, encoded once for all watchers; what a watcher sees is the engine's to say."""

from __future__ import annotations

from muster.engine.log_entries import EventType
from muster.model.objects import ClusterObject
from muster.rpc.codec import write_object
from muster.v1 import cluster_service_pb2 as pb

EVENT_TYPES = {
    EventType.ADDED: pb.EVENT_TYPE_ADDED,
    EventType.MODIFIED: pb.EVENT_TYPE_MODIFIED,
    EventType.DELETED: pb.EVENT_TYPE_DELETED,
}
MOST_KEPT = 16_384
MOST_KEPT_BYTES = 16 * 1024 * 1024


class EncodedEvents:
    """Remembers what it encoded, in bounded memory. Objects never change, so that an object stands for its bytes."""

    def __init__(self) -> None:
        # By type, then by the id of the object, which is kept so that its id is not used again.
        self._kept: list[dict[int, tuple[ClusterObject, bytes]]] = []
        self._count = self._bytes = 0
        self._forget()

    def encoded(self, kind: EventType, item: ClusterObject) -> bytes:
        """A WatchResponse of the event and nothing else. Several, one behind the other, are one of all their events."""
        known = self._kept[kind].get(id(item))
        return known[1] if known is not None else self._learn(kind, item)

    def _learn(self, kind: EventType, item: ClusterObject) -> bytes:
        response = pb.WatchResponse()
        event = response.events.add(type=EVENT_TYPES[kind])
        write_object(item, event.object)
        made = response.SerializeToString()
        if self._count == MOST_KEPT or self._bytes + len(made) > MOST_KEPT_BYTES:
            self._forget()
        self._count += 1
        self._bytes += len(made)
        self._kept[kind][id(item)] = (item, made)
        return made

    def _forget(self) -> None:
        self._kept = [{} for _ in range(max(EventType) + 1)]
        self._count = self._bytes = 0
