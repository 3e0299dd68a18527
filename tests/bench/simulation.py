"""How long Simulate takes on a large live cluster, and what 20 simulations at once cost those who apply meanwhile.

`python -m tests.bench.simulation [NODES] [PODS]`: starts a service, fills it (5 000 nodes and 100 000 running pods unless
told otherwise), and prints figures in milliseconds. The first simulation is the one that makes the copy.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.service import Service, member, node

AT_ONCE = 20
RACK = 25
SECONDS = 600
APPLIES = 200


def nodes(count: int) -> Iterator[Object]:
    for i in range(count):
        made = node(f"n{i:05}", "64")
        made.node.metadata.labels.update({"rack": f"r{i // RACK}", "block": f"b{i // (8 * RACK)}"})
        yield made


def running(count: int, on: int) -> Iterator[Object]:
    for i in range(count):
        pod = member(f"p{i:06}", "")
        pod.pod.spec.ClearField("scheduling_group")
        pod.pod.spec.node_name = f"n{i % on:05}"
        yield pod


def tree(name: str) -> list[Object]:
    """Four gangs of 16 pods, each in a rack, all in a block."""
    root = Object()
    root.composite_pod_group.metadata.name = name
    spec = root.composite_pod_group.spec
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "root"
    spec.scheduling_policy.gang.min_group_count = 4
    spec.scheduling_constraints.topology.add(key="block")
    made = [root]
    for i in range(4):
        group = Object()
        group.pod_group.metadata.name = f"{name}-{i}"
        leaf = group.pod_group.spec
        leaf.parent_composite_pod_group_name = name
        leaf.workload_ref.workload_name, leaf.workload_ref.template_name = "w", "leaf"
        leaf.scheduling_policy.gang.min_count = 16
        leaf.scheduling_constraints.topology.add(key="rack")
        made += [group, *(member(f"{name}-{i}-{k}", f"{name}-{i}") for k in range(16))]
    return made


class Bench:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._applied = 0

    def fill(self, count: int, pods: int) -> None:
        objects = [*nodes(count), *running(pods, count)]
        for start in range(0, len(objects), 10_000):
            request = pb.ApplyRequest(objects=objects[start : start + 10_000])
            self._service.cluster.Apply(request, timeout=SECONDS)

    def simulate(self, name: str) -> float:
        """Seconds of one simulation of an added tree, which must be scheduled."""
        request = spb.SimulateRequest(
            units=[ObjectRef(kind="CompositePodGroup", name=name)], overlay=spb.Overlay(objects=tree(name))
        )
        start = time.perf_counter()
        answer = self._service.scheduler.Simulate(request, timeout=SECONDS)
        seconds = time.perf_counter() - start
        assert answer.totals.scheduled_units == 1, answer.decisions[0].message
        return seconds

    def apply(self) -> float:
        """Seconds of the Apply of one gated pod."""
        pod = member(f"small-{self._applied}", "")
        pod.pod.spec.ClearField("scheduling_group")
        pod.pod.spec.scheduling_gates.add(name="wait")
        self._applied += 1
        start = time.perf_counter()
        self._service.cluster.Apply(pb.ApplyRequest(objects=[pod]), timeout=SECONDS)
        return time.perf_counter() - start

    def apply_beside(self) -> tuple[float, int]:
        """The median of Apply while 20 simulations are always in work, and how many of them ended."""
        stop = threading.Event()

        def go_on(place: int) -> int:
            ended = 0
            while not stop.is_set():
                self.simulate(f"t{place}-{ended}")
                ended += 1
            return ended

        with ThreadPoolExecutor(AT_ONCE) as pool:
            asked = [pool.submit(go_on, place) for place in range(AT_ONCE)]
            time.sleep(1)
            found = median(self.apply() for _ in range(APPLIES))
            stop.set()
            return found, sum(each.result() for each in asked)


def main() -> None:
    count, pods = (*map(int, sys.argv[1:3]), *(5_000, 100_000)[len(sys.argv) - 1 :])
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(f"sqlite:///{Path(folder) / 'muster.db'}", Path(folder) / "log") as service,
    ):
        bench = Bench(service)
        bench.fill(count, pods)
        tell(f"{count} nodes, {pods} pods")
        tell(f"first simulation   {1e3 * bench.simulate('first'):8.1f} ms")
        later = [bench.simulate(f"later-{i}") for i in range(10)]
        tell(f"later, median      {1e3 * median(later):8.1f} ms, at most {1e3 * max(later):.1f}")
        alone = median(bench.apply() for _ in range(APPLIES))
        beside, ended = bench.apply_beside()
        tell(f"Apply alone        {1e3 * alone:8.2f} ms")
        times = f"{beside / alone:.2f} times; {ended} simulations ended"
        tell(f"Apply beside {AT_ONCE}    {1e3 * beside:8.2f} ms, {times}")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
