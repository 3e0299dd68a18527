"""A service with its console, in a process of its own, and questions to it over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from muster.cli.main import muster
from muster.cli.server_process import READY

STOP_SECONDS = 30
ASK_SECONDS = 60


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """`rpc` and `http` are HOST:PORT."""

    rpc: str
    http: str

    @property
    def url(self) -> str:
        return f"http://{self.http}/console/"

    def get(
        self, path: str, headers: dict[str, str] | None = None, method: str = "GET", host: str = ""
    ) -> Reply:
        connection = HTTPConnection(self.http, timeout=ASK_SECONDS)
        sent = {**(headers or {}), **({"Host": host} if host else {})}
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return reply

    def view(self, path: str) -> Any:
        """The JSON of a view that must answer."""
        reply = self.get(f"/console/api/{path}")
        assert reply.status == 200, reply.body
        return reply.json()

    def command(self, *arguments: str) -> None:
        result = CliRunner().invoke(muster, ["--server", self.rpc, *arguments])
        assert result.exit_code == 0, result.output


@contextmanager
def service(folder: Path, *options: str) -> Iterator[Served]:
    """A service that runs while the context lasts."""
    log = folder / "log"
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            _command(folder, options), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        told = log.read_text(encoding="utf-8")
        assert line.startswith(READY), told
        address = told.partition("metrics_address=")[2].split()[0]
        yield Served(line.removeprefix(READY).strip(), address)
        process.terminate()
        process.wait(STOP_SECONDS)


def _command(folder: Path, options: Sequence[str]) -> list[str]:
    store = f"sqlite:///{folder / 'muster.db'}"
    serve = [sys.executable, "-m", "muster.cli.main", "serve", "--listen", "127.0.0.1:0"]
    return [*serve, "--metrics", "127.0.0.1:0", "--store", store, *options]
