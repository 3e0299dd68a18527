"""A service as a process: it says when it is ready, drains when asked to, and says why it cannot start."""

import asyncio
import os
import signal
import sys
import urllib.request
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc import aio

from muster.app.lifecycle import serve
from muster.app.settings import load_settings
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import cluster_service_pb2_grpc
from tests.app.in_memory import FOREIGN_STORE, make_engine
from tests.rpc.calls import refused

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 30


@asynccontextmanager
async def running(*settings: str) -> AsyncIterator[Process]:
    path = os.pathsep.join(str(ROOT / each) for each in ("service", "store", "clients", "."))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.app.in_memory",
        *settings,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        return (await process.stdout.readline()).decode().strip()


async def end_of(process: Process) -> tuple[int | None, str]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        _, errors = await process.communicate()
    return process.returncode, errors.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_signal_drains_and_ends_with_success(number: signal.Signals) -> None:
    async with running("listen=127.0.0.1:0") as process:
        address = (await line_of(process)).removeprefix("serving on ")
        async with aio.insecure_channel(address) as channel:
            watch = cluster_service_pb2_grpc.ClusterServiceStub(channel).Watch(pb.WatchRequest())
            await watch.read()

            process.send_signal(number)
            answer = await refused(watch.read())

        status, _ = await end_of(process)

    assert (answer.code, answer.reason) == (grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")
    assert status == 0


async def test_every_address_gets_a_line_and_the_metrics_answer(tmp_path: Path) -> None:
    socket = tmp_path / "muster.sock"
    async with running(
        "listen=127.0.0.1:0", f"uds={socket}", "metrics=127.0.0.1:0", "log_level=info"
    ) as process:
        first, second = await line_of(process), await line_of(process)
        assert process.stderr is not None
        logged = (await asyncio.wait_for(process.stderr.readline(), PATIENCE_SECONDS)).decode()
        address = logged.partition("metrics_address=")[2].split()[0]
        text = await asyncio.to_thread(read, address)

    assert first.startswith("serving on 127.0.0.1:")
    assert second == f"serving on unix://{socket}"
    assert "muster_rpcs_in_work" in text


def read(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


async def test_a_port_in_use_is_one_line_and_status_1() -> None:
    async with running("listen=127.0.0.1:0") as first:
        address = (await line_of(first)).removeprefix("serving on ")
        async with running(f"listen={address}") as second:
            status, errors = await end_of(second)

    assert status == 1
    assert errors.splitlines() == [f"muster: cannot listen on {address}: Address already in use"]


async def test_a_metrics_port_in_use_is_one_line_and_status_1() -> None:
    async with running("listen=127.0.0.1:0") as first:
        address = (await line_of(first)).removeprefix("serving on ")
        async with running("listen=127.0.0.1:0", f"metrics={address}") as second:
            status, errors = await end_of(second)

    assert status == 1
    assert errors.splitlines() == [f"muster: cannot serve metrics on {address}: Address already in use"]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        pytest.param(
            {"store": FOREIGN_STORE}, "the database is of a newer Muster: version 9", id="foreign store"
        ),
        pytest.param({"token_file": "none"}, "the token file none cannot be read", id="token file"),
        pytest.param(
            {"tls_cert": "no.pem", "tls_key": "no.key"}, "cannot read the TLS files", id="TLS files"
        ),
        pytest.param(
            {"listen": "127.0.0.1:0", "uds": "no/such/folder/s"}, "cannot listen on no/such", id="socket"
        ),
    ],
)
def test_what_keeps_a_service_from_starting_is_one_line_and_status_1(
    capfd: pytest.CaptureFixture[str], settings: dict[str, str], line: str
) -> None:
    status = serve(load_settings({"listen": "127.0.0.1:0", **settings}), make_engine)

    written = capfd.readouterr()
    assert status == 1
    assert [each for each in written.err.splitlines() if each.startswith(f"muster: {line}")]
    assert "Traceback" not in written.err
    assert written.out == ""


async def test_settings_beyond_loopback_without_tls_are_refused() -> None:
    async with running("listen=0.0.0.0:0") as process:
        status, errors = await end_of(process)

    assert status == 2
    assert "beyond loopback" in errors
