"""A service whose receiver dies, and a receiver whose service dies: callers see a lost connection, and nothing else is lost."""

import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub
from tests.endtoend.cluster import CALL_SECONDS, Cluster
from tests.endtoend.service import Service, gang, node

RECEIVER = b"muster.rpc.receiver.process"
POLL_SECONDS = 0.02


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    socket = ("--uds", str(tmp_path / "socket"), "--uds-mode", "600")
    arguments = ("--listen", "127.0.0.1:0", *socket, "--receiver")
    with Service(f"sqlite:///{tmp_path / 'muster.db'}", tmp_path / "log", arguments) as service:
        yield service


def receiver_of(service: Service) -> int:
    """The process of the service's receiver."""
    children = Path(f"/proc/{service.process.pid}/task").glob("*/children")
    pids = [int(pid) for path in children for pid in path.read_text(encoding="utf-8").split()]
    return next(pid for pid in pids if RECEIVER in Path(f"/proc/{pid}/cmdline").read_bytes())


def is_gone(pid: int) -> bool:
    """Whether the process ends within some seconds; one that nobody has reaped has ended."""
    until = time.monotonic() + CALL_SECONDS
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(POLL_SECONDS)
    return False


def until_there_is_a_group(service: Service, cluster: str) -> None:
    until = time.monotonic() + CALL_SECONDS
    while not service.objects("PodGroup", cluster):
        assert time.monotonic() < until
        time.sleep(POLL_SECONDS)


def until_it_answers(service: Service) -> None:
    """Wait until there is somebody to call again; the first call may go to who is not there any more."""
    until = time.monotonic() + CALL_SECONDS
    while True:
        try:
            service.cluster.GetServerInfo(pb.GetServerInfoRequest(), timeout=CALL_SECONDS)
        except grpc.RpcError:
            assert time.monotonic() < until
            time.sleep(POLL_SECONDS)
        else:
            return


def test_another_receiver_takes_the_place_of_one_that_dies(service: Service) -> None:
    cluster = Cluster(service, "c")
    cluster.apply(node("node-1"), *gang("crew", 2))
    watching = service.cluster.Watch(pb.WatchRequest(cluster="c"), timeout=CALL_SECONDS)
    next(watching)
    first = receiver_of(service)

    os.kill(first, signal.SIGKILL)
    with pytest.raises(grpc.RpcError) as ended:
        list(watching)
    until_it_answers(service)
    cluster.until_scheduled("crew")

    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert set(cluster.nodes().values()) == {"node-1"}
    assert receiver_of(service) != first
    assert is_gone(first)
    assert service.stop() == 0


def test_the_next_receiver_listens_on_the_same_socket_with_the_same_permissions(
    service: Service, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    first = path.stat()

    os.kill(receiver_of(service), signal.SIGKILL)
    until_it_answers(service)
    with grpc.insecure_channel(f"unix://{path}") as channel:
        ClusterServiceStub(channel).GetServerInfo(pb.GetServerInfoRequest(), timeout=CALL_SECONDS)

    assert path.stat().st_ctime_ns != first.st_ctime_ns
    assert [stat.S_IMODE(each.st_mode) for each in (first, path.stat())] == [0o600, 0o600]


def test_calls_that_a_dead_receiver_had_hold_nothing_up(service: Service) -> None:
    cluster = Cluster(service, "c")
    cluster.apply(node("too-small", cpu="1"))
    request = pb.ApplyRequest(cluster="c", objects=gang("waits", 2))
    request.wait.FromSeconds(60)
    waiting = service.cluster.Apply.future(request, timeout=CALL_SECONDS)
    until_there_is_a_group(service, "c")

    os.kill(receiver_of(service), signal.SIGKILL)
    with pytest.raises(grpc.RpcError) as lost:
        waiting.result()
    until_it_answers(service)

    assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
    cluster.apply(node("node-1"))
    cluster.until_scheduled("waits")
    started = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - started < CALL_SECONDS / 2


def test_a_receiver_ends_with_its_service_and_leaves_the_address_to_the_next(
    service: Service, tmp_path: Path
) -> None:
    address, receiver = service.address, receiver_of(service)
    Cluster(service, "c").apply(node("node-1"))

    service.kill()
    assert is_gone(receiver)

    store, log = f"sqlite:///{tmp_path / 'muster.db'}", tmp_path / "next.log"
    with Service(store, log, ("--listen", address, "--receiver")) as after:
        assert [each.node.metadata.name for each in after.objects("Node", "c")] == ["node-1"]
        assert after.stop() == 0
