"""What a case sees of the cluster: the present objects, and every pod that was ever chosen as a victim.

Fed by one watch from before the first step, so that nothing that happens in between is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from muster.client.client import Client
from muster.client.manifest_kinds import KINDS
from muster.client.watches import Changes, watch_objects
from muster.v1.cluster_service_pb2 import EventType, WatchRequest
from muster.v1.meta_pb2 import Condition, ObjectMeta
from muster.v1.object_pb2 import Object
from muster.v1.pod_pb2 import Pod

DISRUPTION_TARGET = "DisruptionTarget"


class Observed:
    """The state of one cluster as its watch tells it."""

    def __init__(self) -> None:
        self.revision = -1
        self._objects: dict[tuple[str, str], Object] = {}
        self._pods_ever: set[str] = set()
        self._victims: set[str] = set()
        self._waiting: dict[asyncio.Event, Callable[[], bool]] = {}

    async def follow(self, client: Client) -> None:
        """Takes in changes until cancelled. Raises MusterError if the watch ends for good."""
        async for changes in watch_objects(client, WatchRequest()):
            self.take(changes)
            for event in [event for event, condition in self._waiting.items() if condition()]:
                event.set()

    async def becomes(self, condition: Callable[[], bool], within_seconds: float) -> bool:
        """Whether the condition holds, now or after any message of the watch in time; looked at after each of them."""
        if condition():
            return True
        event = asyncio.Event()
        self._waiting[event] = condition
        try:
            await asyncio.wait_for(event.wait(), within_seconds)
        except TimeoutError:
            return False
        finally:
            del self._waiting[event]
        return True

    async def reach(self, revision: int, within_seconds: float) -> bool:
        """Whether the watch has told everything up to a revision in time."""
        return await self.becomes(lambda: self.revision >= revision, within_seconds)

    def take(self, changes: Changes) -> None:
        """Applies the events of one message."""
        if changes.restarted:
            self._objects.clear()
        for event in changes.events:
            kind = KINDS[event.object.WhichOneof("kind") or ""]
            key = (kind, metadata(event.object).name)
            if event.type == EventType.EVENT_TYPE_DELETED:
                self._objects.pop(key, None)
            else:
                self._objects[key] = event.object
            if kind == "Pod":
                self._note_pod(event.object.pod)
        if changes.in_sync:
            self.revision = max(self.revision, changes.revision)

    def find(self, kind: str, name: str) -> Object | None:
        """The object, if it exists at present."""
        return self._objects.get((kind, name))

    def pods(self, glob: str) -> list[Pod]:
        """Present pods whose name matches, by name."""
        return [
            stored.pod for (kind, name), stored in sorted(self._of_kind("Pod")) if fnmatchcase(name, glob)
        ]

    def node_label(self, node: str, key: str) -> str | None:
        """The label of a node; None if either is missing."""
        stored = self.find("Node", node)
        return None if stored is None else dict(stored.node.metadata.labels).get(key)

    def pods_ever(self, glob: str) -> list[str]:
        """Names of all pods that ever existed and match."""
        return sorted(name for name in self._pods_ever if fnmatchcase(name, glob))

    def victims(self, glob: str) -> list[str]:
        """Names of all pods that were ever chosen as victims and match."""
        return sorted(name for name in self._victims if fnmatchcase(name, glob))

    def _of_kind(self, kind: str) -> Iterator[tuple[tuple[str, str], Object]]:
        return (item for item in self._objects.items() if item[0][0] == kind)

    def _note_pod(self, pod: Pod) -> None:
        self._pods_ever.add(pod.metadata.name)
        if any(each.type == DISRUPTION_TARGET and each.status == "True" for each in pod.status.conditions):
            self._victims.add(pod.metadata.name)


def metadata(stored: Object) -> ObjectMeta:
    """The metadata of an object of any kind."""
    found = getattr(stored, stored.WhichOneof("kind") or "").metadata
    if not isinstance(found, ObjectMeta):
        raise TypeError("an object without metadata")
    return found


def conditions(stored: Object) -> list[Condition]:
    """The conditions of an object; empty for kinds that have none."""
    status = getattr(getattr(stored, stored.WhichOneof("kind") or ""), "status", None)
    return list(getattr(status, "conditions", ()))
