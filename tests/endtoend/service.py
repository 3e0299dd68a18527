"""A `muster serve` that can be killed and started again on the same store, and gangs to give it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub
from muster.v1.object_pb2 import Object
from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceStub

LOCAL = ("--listen", "127.0.0.1:0")
STOP_SECONDS = 40
READY = "serving on "


class Service:
    """One store, one process at a time. `kill` is SIGKILL; `environment` is added to the process's own."""

    def __init__(
        self,
        store: str,
        log: Path,
        arguments: Sequence[str] = LOCAL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", "muster.cli.main", "serve", "--store", store, *arguments]
        self._environment = os.environ | (environment or {})
        self._log = log
        self.start()

    def start(self) -> None:
        """Start the process and wait until it answers."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(READY), self._log.read_text(encoding="utf-8")
        self.address = line.removeprefix(READY).strip()
        self.channel = grpc.insecure_channel(self.address)
        self.cluster = ClusterServiceStub(self.channel)
        self.scheduler = SchedulerServiceStub(self.channel)

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self._reap()
        self.channel.close()

    def _reap(self) -> None:
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> int:
        """Ask the process to drain; its exit status. Calls that it still answers get their answers."""
        self.process.terminate()
        status = self.process.wait(timeout=STOP_SECONDS)
        self._reap()
        self.channel.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
        self.process.kill()
        self._reap()

    def objects(self, kind: str, cluster: str = "") -> list[Object]:
        """All objects of a kind, page by page."""
        found: list[Object] = []
        token = ""
        while True:
            page = self.cluster.List(
                pb.ListRequest(cluster=cluster, kind=kind, page_size=1000, page_token=token)
            )
            found.extend(page.objects)
            token = page.next_page_token
            if not token:
                return found


def node(name: str, cpu: str = "16") -> Object:
    made = Object()
    made.node.metadata.name = name
    made.node.status.allocatable.update({"cpu": cpu, "memory": "64Gi", "pods": "110"})
    return made


def gang(name: str, size: int) -> list[Object]:
    """A PodGroup that needs all of its pods, and the pods, of one cpu each."""
    group = Object()
    group.pod_group.metadata.name = name
    group.pod_group.spec.scheduling_policy.gang.min_count = size
    return [group, *(member(f"{name}-{i}", name) for i in range(size))]


def member(name: str, group: str) -> Object:
    made = Object()
    made.pod.metadata.name = name
    made.pod.spec.scheduling_group.pod_group_name = group
    container = made.pod.spec.containers.add(name="c")
    container.resources.requests.update({"cpu": "1", "memory": "1Gi"})
    return made
