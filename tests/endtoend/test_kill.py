"""What was acknowledged survives kill -9, whenever it strikes; and what was not is whole or absent.

MUSTER_KILLS sets how often the service is killed (3 unless set).
"""

import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import grpc

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from tests.endtoend.service import Service, gang, node

KILLS = int(os.environ.get("MUSTER_KILLS", "3"))
NODES = 60
CLIENTS = 3
ENOUGH_SECONDS = 60.0
DOWN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}


class Client(threading.Thread):
    """Gives gangs one after the other until it is told to stop; repeats a call that got no answer under its request id."""

    def __init__(self, service: Service, name: str, seed: int) -> None:
        super().__init__(name=name)
        self._service = service
        self._random = random.Random(seed)
        self.stopping = threading.Event()
        self.acknowledged: dict[str, int] = {}
        self.deleted: set[str] = set()

    def run(self) -> None:
        count = 0
        while not self.stopping.is_set():
            count += 1
            name, size = f"{self.name}-{count}", self._random.randint(2, 6)
            self._call("Apply", pb.ApplyRequest(objects=gang(name, size), request_id=f"apply-{name}"))
            self.acknowledged[name] = size
            if count > 4:
                self._finish(f"{self.name}-{count - 4}")

    def _finish(self, name: str) -> None:
        """The gang's work is done: its pods go, and make room."""
        request = pb.DeleteRequest(request_id=f"delete-{name}", allow_missing=True)
        for i in range(self.acknowledged[name]):
            request.refs.add(ref=ObjectRef(kind="Pod", name=f"{name}-{i}"))
        self._call("Delete", request)
        self.deleted.add(name)

    def _call(self, method: str, request: pb.ApplyRequest | pb.DeleteRequest) -> None:
        while True:
            try:
                getattr(self._service.cluster, method)(request, timeout=20)
            except grpc.RpcError as error:
                if getattr(error, "code", lambda: None)() not in DOWN:
                    raise
            except ValueError:
                pass  # the kill closed the channel
            else:
                return
            time.sleep(0.02)  # the service is down, and cannot be awaited


def test_nothing_acknowledged_is_lost_and_no_gang_is_halved_by_kill_9(store_url: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with Service(store_url, tmp_path / "log") as service:
        service.cluster.Apply(pb.ApplyRequest(objects=[node(f"node-{i}") for i in range(NODES)]))
        clients = [Client(service, f"client-{i}", i) for i in range(CLIENTS)]
        for client in clients:
            client.start()

        for _ in range(KILLS):
            clients[0].stopping.wait(chance.uniform(0.3, 1.5))
            service.kill()
            service.start()
            assert_sound(service)
        for client in clients:
            client.stopping.set()
            client.join()

        acknowledged = {name: size for client in clients for name, size in client.acknowledged.items()}
        deleted = {name for client in clients for name in client.deleted}
        until_all_are_bound(service)
        assert_sound(service)
        pods = {item.pod.metadata.name: item.pod for item in service.objects("Pod")}
        expected = {
            f"{name}-{i}" for name, size in acknowledged.items() if name not in deleted for i in range(size)
        }
        assert set(pods) == expected
        assert {item.pod_group.metadata.name for item in service.objects("PodGroup")} == set(acknowledged)
        assert service.stop() == 0


def assert_sound(service: Service) -> None:
    """No node is over-committed, no pod stands twice, every gang is bound whole or not at all."""
    pods = [item.pod for item in service.objects("Pod")]
    used = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    assert max(used.values(), default=0) <= 16
    assert len({pod.metadata.uid for pod in pods}) == len(pods)
    bound: Counter[str] = Counter()
    members: Counter[str] = Counter()
    for pod in pods:
        group = pod.spec.scheduling_group.pod_group_name
        members[group] += 1
        bound[group] += bool(pod.spec.node_name)
    assert {group for group in members if 0 < bound[group] < members[group]} == set()


def until_all_are_bound(service: Service) -> None:
    """The queue goes on by itself: every gang that is left fits, so every one of its pods gets a node."""
    deadline = time.monotonic() + ENOUGH_SECONDS
    while any(not item.pod.spec.node_name for item in service.objects("Pod")):
        assert time.monotonic() < deadline, "the queue stands still"
        time.sleep(0.05)
