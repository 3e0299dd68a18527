"""A client that opens a watch and stops reading costs itself, and nobody else."""

import threading
import time

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import CALL_SECONDS, Cluster, Replica
from tests.endtoend.service import gang, node

ROUNDS = 20
NODES = 200
# What lies unread is far more than the buffers of gRPC and the kernel hold.
FILLER = "x" * 4_000


def heavy_nodes(turn: int) -> list[Object]:
    nodes = [node(f"node-{number}") for number in range(NODES)]
    for each in nodes:
        each.node.metadata.annotations.update({"turn": str(turn), "filler": FILLER})
    return nodes


def test_a_client_that_stops_reading_a_watch_slows_neither_writes_nor_other_watches(cluster: Cluster) -> None:
    cluster.apply(*heavy_nodes(-1))
    stalled = cluster.service.cluster.Watch(pb.WatchRequest(cluster=cluster.name), timeout=CALL_SECONDS)
    next(stalled)
    alone = seconds_to_write(cluster, 0)

    together = seconds_to_write(cluster, ROUNDS)
    replica = Replica(cluster)
    following = threading.Thread(target=replica.follow_to, args=(cluster.revision() + 1,))
    following.start()
    cluster.apply(*gang("crew", 2))
    cluster.until_scheduled("crew")
    following.join(timeout=CALL_SECONDS / 4)

    assert not following.is_alive()
    assert together < 5 * alone + 1
    stalled.cancel()


def seconds_to_write(cluster: Cluster, first: int) -> float:
    """How long some rounds of changes to all nodes take."""
    start = time.monotonic()
    for turn in range(first, first + ROUNDS):
        cluster.apply(*heavy_nodes(turn))
    return time.monotonic() - start
