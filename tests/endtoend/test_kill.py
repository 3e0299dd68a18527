"""What was acknowledged survives kill -9, whenever it strikes; and what was not is whole or absent.

MUSTER_KILLS sets how often the service is killed (3 unless set).
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import Cluster
from tests.endtoend.load import LoadClient, Request, Response
from tests.endtoend.service import Service, gang, node
from tests.endtoend.soundness import bound_twice, half_gangs, moved, overcommitted, places

KILLS = int(os.environ.get("MUSTER_KILLS", "3"))
SECONDS_PER_KILL = 30
LONGEST_BACKOFF_SECONDS = 60
CLIENTS = 4
# Room for all that the clients leave behind, and for less than what they ask for while they are at work.
NODES = 11
REPEATED = 5
POLL_SECONDS = 0.05
PROBE = "example.com/probe"


@pytest.mark.timeout(2 * LONGEST_BACKOFF_SECONDS + SECONDS_PER_KILL * KILLS)
def test_nothing_acknowledged_is_lost_and_no_gang_is_halved_by_kill_9(store_url: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "")
        cluster.apply(probe_node(), *(node(f"node-{number}", cpu="12") for number in range(NODES)))
        with working(service) as clients:
            seen: dict[str, str] = {}
            for turn in range(KILLS):
                time.sleep(chance.uniform(0.3, 1.5))
                seen |= places(service.objects("Pod"))

                service.kill()
                service.start()

                assert_kept(service, clients, chance)
                assert_sound(service, seen)
                schedule_probe(cluster, f"probe-{turn}")

        assert all(client.account().answered for client in clients)
        until_all_are_bound(service)
        assert_kept(service, clients, chance)
        assert_sound(service, seen)
        assert bound_twice(cluster.list_decisions()) == set()
        assert service.stop() == 0


@contextmanager
def working(service: Service) -> Iterator[list[LoadClient]]:
    """Clients at work for as long as the block lasts."""
    clients = [LoadClient(service, f"client-{number}", number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.stop()


def probe_node() -> Object:
    """A node on which nothing but probes may run, so that there is always room for one."""
    made = node("for-probes")
    made.node.metadata.labels[PROBE] = "yes"
    made.node.spec.taints.add(key=PROBE, effect="NoSchedule")
    return made


def schedule_probe(cluster: Cluster, name: str) -> None:
    """A gang that is feasible whatever the load is scheduled, and goes."""
    group, *pods = gang(name, 4)
    for item in pods:
        item.pod.spec.node_selector[PROBE] = "yes"
        item.pod.spec.tolerations.add(key=PROBE, operator="Exists")
    cluster.apply(group, *pods)
    cluster.until_scheduled(name)
    cluster.delete("Pod", *(item.pod.metadata.name for item in pods))


def assert_kept(service: Service, clients: list[LoadClient], chance: random.Random) -> None:
    """All that was acknowledged before is so now, and is answered as it was then."""
    before = [client.account() for client in clients]
    pods = {item.pod.metadata.name for item in service.objects("Pod")}
    groups = {item.pod_group.metadata.name for item in service.objects("PodGroup")}
    # What a client began to delete since the account was taken may be gone.
    leaving = {name for client in clients for name in client.leaving()}
    for account in before:
        assert account.present - leaving - pods == set()
        assert account.absent & pods == set()
        assert account.groups - groups == set()
        for request, answer in chance.sample(account.answered, min(REPEATED, len(account.answered))):
            assert repeated(service, request) == answer


def repeated(service: Service, request: Request) -> Response:
    if isinstance(request, pb.ApplyRequest):
        return service.cluster.Apply(request)
    return service.cluster.Delete(request)


def assert_sound(service: Service, seen: dict[str, str]) -> None:
    """No node is over-committed, no gang half bound, no pod stands twice or elsewhere than before."""
    pods = service.objects("Pod")
    assert overcommitted(service.objects("Node"), pods) == {}
    assert half_gangs(service.objects("PodGroup"), pods) == {}
    assert len({item.pod.metadata.uid for item in pods}) == len(pods)
    assert moved(seen, pods) == {}


def until_all_are_bound(service: Service) -> None:
    """The queue goes on by itself: all that is left fits, so every pod gets a node."""
    deadline = time.monotonic() + LONGEST_BACKOFF_SECONDS + SECONDS_PER_KILL
    while any(not item.pod.spec.node_name for item in service.objects("Pod")):
        assert time.monotonic() < deadline, "the queue stands still"
        time.sleep(POLL_SECONDS)
