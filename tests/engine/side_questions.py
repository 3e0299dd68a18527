"""Questions for tests of the side worker: they run in a process of their own, which finds them by their names."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

from muster.engine.cluster import Cluster
from muster.engine.errors import NotFoundError
from muster.engine.mutation import Mutation
from muster.engine.side_process import OutOfTimeError
from muster.model.meta import POD, ObjectKey


@dataclass(frozen=True)
class Contents:
    """What a cluster holds, in values that two processes can compare."""

    revision: int
    objects: dict[str, frozenset[object]]
    queue: dict[ObjectKey, object]
    signatures: int
    free: dict[str, list[int]]


def contents(cluster: Cluster) -> Contents:
    snapshot = cluster.feed.flush()
    rows = snapshot.nodes.rows
    names = [name for _, name in cluster.state.objects["Node"]]
    slots = snapshot.nodes.slots_of(names)
    objects = {kind: frozenset(map(repr, held.values())) for kind, held in cluster.state.objects.items()}
    return Contents(
        cluster.state.revision,
        {kind: held for kind, held in objects.items() if held},
        dict(cluster.queue.rows),
        len(cluster.feed.signatures),
        {
            name: snapshot.nodes.free[:, slot].tolist()
            for name, slot in zip([*names], slots, strict=True)
            if rows
        },
    )


def empty_it(cluster: Cluster) -> int:
    """Removes all pods and says how many are left."""
    mutation = Mutation(cluster, 0)
    for namespace, name in list(cluster.state.objects[POD]):
        mutation.remove(ObjectKey(POD, namespace, name))
    mutation.finish()
    return len(cluster.state.objects[POD])


def niceness(_cluster: Cluster) -> int:
    return os.nice(0)


def heavy_imports(_cluster: Cluster) -> list[str]:
    return [
        name for name in ("grpc", "sqlalchemy", "google.protobuf", "opentelemetry") if name in sys.modules
    ]


def breaks(_cluster: Cluster) -> None:
    raise ValueError("no luck")


def refuses(_cluster: Cluster) -> None:
    raise NotFoundError("OBJECT_NOT_FOUND", "it is not there", [("Pod", "a/b")])


def dies(_cluster: Cluster) -> None:
    os._exit(3)


def spins(_cluster: Cluster) -> None:
    while True:
        pass


def says_how_far_it_came(_cluster: Cluster) -> str:
    try:
        spins(_cluster)
    except OutOfTimeError:
        return "half way"
    return "never"


def heeds_nothing(_cluster: Cluster) -> None:
    while True:
        try:
            spins(_cluster)
        except OutOfTimeError:
            continue


def sleeps(_cluster: Cluster) -> None:
    time.sleep(0.3)


def parent(_cluster: Cluster) -> int:
    """The process that answers questions in copies of itself."""
    return os.getppid()
