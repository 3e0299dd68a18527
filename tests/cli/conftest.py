"""A service in a process of its own, and the `muster` command against it, each test in a cluster of its own."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muster.cli.main import muster
from muster.cli.server_process import READY

STOP_SECONDS = 30


class Command:
    """The command line, with the server and the cluster given."""

    def __init__(self, address: str, cluster: str) -> None:
        self.address = address
        self.cluster = cluster

    def __call__(self, *arguments: str, text: str | None = None) -> Result:
        """What the command printed and its exit status; `text` is its standard input."""
        options = ["--server", self.address, "--cluster", self.cluster]
        return CliRunner().invoke(muster, [*options, *arguments], input=text)

    def json(self, *arguments: str) -> Any:
        """The parsed JSON of a command that must succeed."""
        result = self(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a fresh service answers."""
    folder = tmp_path_factory.mktemp("service")
    command = [sys.executable, "-m", "muster.cli.main", "serve", "--listen", "127.0.0.1:0"]
    with (
        (folder / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, "--store", f"sqlite:///{folder / 'muster.db'}"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), (folder / "log").read_text(encoding="utf-8")
        yield line.removeprefix(READY).strip()
        process.terminate()
        process.wait(STOP_SECONDS)


@pytest.fixture
def command(address: str) -> Command:
    return Command(address, f"c-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A file with a node, a gang of two and its pods."""
    path = tmp_path / "gang.yaml"
    path.write_text(GANG, encoding="utf-8")
    return path


GANG = """
apiVersion: v1
kind: Node
metadata: {name: machine, labels: {zone: a, note: "1e3"}}
status: {capacity: {cpu: 4, memory: 8Gi}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: PodGroup
metadata: {name: crew}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: crew-0, labels: {app: crew}}
  spec:
    schedulingGroup: {podGroupName: crew}
    containers: [{name: main, resources: {requests: {cpu: 1}}}]
- apiVersion: v1
  kind: Pod
  metadata: {name: crew-1}
  spec:
    schedulingGroup: {podGroupName: crew}
    containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""
