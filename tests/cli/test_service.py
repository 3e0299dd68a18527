"""serve, health, version and demo."""

import subprocess
import sys
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner

from muster.app.settings import Settings
from muster.cli.main import muster
from muster.cli.serve import serve
from muster.cli.server_process import READY
from tests.cli.conftest import Command

NOBODY = "127.0.0.1:1"
FULL = Path("/dev/full")
LAST_LINE_OF_THE_DEMO = "Ctrl-C stops the service; what it stored stays.\n"


def test_every_setting_is_an_option_of_serve() -> None:
    options = {parameter.name for parameter in serve.params}

    assert options == set(Settings.model_fields) - {"profile_definitions"} | {"config"}


def test_a_wrong_setting_is_exit_status_2_with_its_name() -> None:
    result = CliRunner().invoke(muster, ["serve", "--listen", "0.0.0.0:0"])

    assert result.exit_code == 2
    assert "insecure" in result.stderr


def test_a_service_that_serves_is_healthy(command: Command) -> None:
    result = command("health")

    assert (result.exit_code, result.stdout) == (0, f"{command.address}: SERVING\n")


def test_a_service_that_does_not_answer_is_not_healthy() -> None:
    result = CliRunner().invoke(muster, ["health", "--server", NOBODY])

    assert result.exit_code == 1
    assert NOBODY in result.stderr


def test_version_names_the_command_and_the_server(command: Command) -> None:
    lines = command("version").stdout.splitlines()

    assert lines[0] == f"muster {version('muster')}"
    assert lines[1].startswith(f"server {version('muster')} at {command.address}")


def test_version_needs_no_server() -> None:
    result = CliRunner().invoke(muster, ["version", "--server", NOBODY])

    assert result.exit_code == 0
    assert f"no server at {NOBODY}" in result.stdout


@pytest.mark.parametrize("name", ["version", "health", "get"])
def test_a_file_of_roots_that_is_not_there_is_one_line(name: str) -> None:
    result = CliRunner().invoke(muster, [name, "--ca", "no.pem"])

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "no.pem" in result.stderr


@pytest.mark.parametrize("name", ["version", "health", "get"])
def test_a_file_of_roots_that_is_no_pem_is_one_line_that_names_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "roots.pem").write_bytes(bytes(range(256)))

    result = CliRunner().invoke(muster, [name, "--ca", str(tmp_path / "roots.pem")])

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "not a PEM file" in result.stderr
    assert "roots.pem" in result.stderr


@pytest.mark.parametrize("option", ["--cert", "--key"])
def test_half_of_a_client_certificate_is_wrong_usage(option: str) -> None:
    result = CliRunner().invoke(muster, ["get", option, "half.pem"])

    assert result.exit_code == 2
    assert "--cert and --key go together" in result.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    line = ["--server", command.address, "--cluster", command.cluster, "get", "nodes"]
    with FULL.open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "muster.cli.main", *line],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert ended.returncode != 0
    assert "Error: [Errno 28] No space left on device" in ended.stderr.splitlines()
    assert "muster/cli" not in ended.stderr


def test_a_server_that_cannot_be_reached_is_one_readable_block() -> None:
    result = CliRunner().invoke(muster, ["get", "--server", NOBODY])

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: UNAVAILABLE")
    assert "MUSTER_SERVER" in result.stderr


def _demo(folder: Path) -> str:
    command = [sys.executable, "-m", "muster.cli.main", "demo", "--once", "--listen", "127.0.0.1:0"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_demo_schedules_the_examples_and_runs_again_on_the_same_store(tmp_path: Path) -> None:
    first, second = _demo(tmp_path), _demo(tmp_path)

    assert "podgroup/pretraining-workers scheduled: 4 pods" in first
    assert "podgroup/sweep unschedulable" in first
    assert "as they are stored already" in second
    assert (tmp_path / "muster.db").exists()


def test_the_demo_leaves_alone_what_was_deleted_since(tmp_path: Path) -> None:
    _demo(tmp_path)
    _with_a_service(tmp_path, "delete", "pod/trainer-0", "pod/trainer-1")
    _with_a_service(tmp_path, "schedule", "podgroup/sweep")

    again = _demo(tmp_path)

    assert "as they are stored already, 2 deleted since" in again
    assert "unschedulable" not in again
    assert "trainer-0" not in _with_a_service(tmp_path, "get", "pods")


def test_the_hints_of_the_demo_can_be_typed_anywhere_as_they_are_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "muster.cli.main", "demo", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        printed = list(takewhile(lambda line: line != LAST_LINE_OF_THE_DEMO, demo.stdout))
        hints = [line for line in printed[printed.index("\n") :] if line.startswith("  ")]
        typed = "".join(line for line in hints if "watch" not in line)
        ended = subprocess.run(
            ["bash", "-e"],
            input=typed,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        demo.terminate()

    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(hints) >= 6
    assert "pod/trainer-1 deleted" in ended.stdout
    assert "worker-3 -> machine" in ended.stdout


def _with_a_service(folder: Path, *line: str) -> str:
    """What a command prints on the store of the demo."""
    program = [sys.executable, "-m", "muster.cli.main"]
    with subprocess.Popen(
        [*program, "serve", "--listen", "127.0.0.1:0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as service:
        assert service.stdout is not None
        address = service.stdout.readline().removeprefix(READY).strip()
        ended = subprocess.run(
            [*program, *line, "--server", address], capture_output=True, text=True, check=True
        )
        service.terminate()
    return ended.stdout
