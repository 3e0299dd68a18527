"""Generates the stubs of `muster.v1` and says whether the committed ones are current.

Decides which tools run and where their output lands; what the API looks like is up to the protos beside it. The tools
live in an environment of their own (`.tools/protos`, made when missing or when `tools.lock` changed), because stubs
must come from the oldest supported grpcio-tools while the project itself runs on the newest grpcio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
LOCK = PROTOS / "tools.lock"
TOOLS = ROOT / ".tools"
ENVIRONMENT = TOOLS / "protos"
GO_BIN = TOOLS / "go" / "bin"
GO_PLUGINS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
)
GO_MODULE = "muster.dev/client"

STUBS = {
    "python": ROOT / "clients",
    "go": ROOT / "clients" / "go",
    "typescript": ROOT / "clients" / "typescript",
}
SUFFIXES = {
    "python": ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi"),
    "go": (".pb.go",),
    "typescript": ("_pb.ts",),
}


def main() -> int:
    """Runs the command line; the exit status is 1 if stubs are not current or the protos have lint."""
    arguments = parse(sys.argv[1:])
    provide_environment()
    if arguments.lint:
        return subprocess.run([tool("buf"), "lint"], cwd=PROTOS, check=False).returncode
    with tempfile.TemporaryDirectory() as directory:
        fresh = Path(directory)
        GENERATORS[arguments.language](fresh)
        if arguments.check:
            return report(outdated(arguments.language, fresh))
        replace(arguments.language, fresh)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(description="Generates the stubs of muster.v1.")
    parser.add_argument("--language", choices=sorted(STUBS), default="python")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="change nothing, fail if stubs are not current")
    action.add_argument("--lint", action="store_true", help="change nothing, fail if the protos have lint")
    return parser.parse_args(arguments)


def provide_environment() -> None:
    """Makes the tool environment unless it was made from the present lock."""
    stamp = ENVIRONMENT / LOCK.name
    if stamp.exists() and stamp.read_bytes() == LOCK.read_bytes():
        return
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    (TOOLS / ".gitignore").write_text("*\n")
    run([tool("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(LOCK)])
    shutil.copyfile(LOCK, stamp)


def generate_python(target: Path) -> None:
    """Messages and their types for every proto, service stubs and their types for those with a service."""
    protoc(
        proto_files(),
        f"--python_out={target}",
        f"--mypy_out=quiet:{target}",
        plugins=[ENVIRONMENT / "bin"],
    )
    protoc(
        service_files(),
        f"--grpc_python_out={target}",
        f"--mypy_grpc_out=quiet:{target}",
        plugins=[ENVIRONMENT / "bin"],
    )


def generate_go(target: Path) -> None:
    """Go messages and service stubs; installs the plugins with the go tool."""
    for plugin in GO_PLUGINS:
        run(["go", "install", plugin], environment={"GOBIN": str(GO_BIN)})
    protoc(
        proto_files(),
        f"--go_out={target}",
        f"--go_opt=module={GO_MODULE}",
        f"--go-grpc_out={target}",
        f"--go-grpc_opt=module={GO_MODULE}",
        plugins=[GO_BIN],
    )


def generate_typescript(target: Path) -> None:
    """TypeScript messages and service descriptors; installs the plugin with npm as the client's lock file says."""
    run(["npm", "ci", "--no-audit", "--no-fund", "--silent", "--prefix", str(STUBS["typescript"])])
    protoc(
        proto_files(),
        f"--es_out={target}",
        "--es_opt=target=ts,import_extension=js",
        plugins=[STUBS["typescript"] / "node_modules" / ".bin"],
    )


GENERATORS = {"python": generate_python, "go": generate_go, "typescript": generate_typescript}


def protoc(files: Iterable[str], *options: str, plugins: list[Path]) -> None:
    """Runs the protoc of the tool environment with plugins found in the given folders."""
    path = os.pathsep.join([*map(str, plugins), os.environ["PATH"]])
    run(
        [tool("python"), "-m", "grpc_tools.protoc", f"-I{PROTOS}", *options, *files],
        environment={"PATH": path},
    )


def proto_files() -> list[str]:
    """Every proto, relative to the proto root, sorted."""
    return sorted(str(path.relative_to(PROTOS)) for path in PROTOS.glob("muster/v1/*.proto"))


def service_files() -> list[str]:
    """The protos that define a service; others would give empty service stubs."""
    return [name for name in proto_files() if name.endswith("_service.proto")]


def outdated(language: str, fresh: Path) -> Iterator[str]:
    """A line for each committed stub that is missing, left over or different."""
    wanted, present = stubs(language, fresh), stubs(language, STUBS[language])
    for name in sorted(wanted | present):
        if name not in present:
            yield f"missing: {name}"
        elif name not in wanted:
            yield f"left over: {name}"
        elif (fresh / name).read_bytes() != (STUBS[language] / name).read_bytes():
            yield f"differs: {name}"


def report(lines: Iterable[str]) -> int:
    """Prints what is not current; 1 if anything is."""
    found = list(lines)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print("stubs are not current: run python protos/generate.py", file=sys.stderr)
    return 1 if found else 0


def replace(language: str, fresh: Path) -> None:
    """Puts the fresh stubs in place of the committed ones."""
    target = STUBS[language]
    for name in stubs(language, target):
        (target / name).unlink()
    for name in stubs(language, fresh):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fresh / name, target / name)


def stubs(language: str, folder: Path) -> set[str]:
    """Generated files below `muster/v1` of a folder, relative to it."""
    return {
        str(path.relative_to(folder))
        for path in folder.glob("muster/v1/*")
        if path.name.endswith(SUFFIXES[language])
    }


def tool(name: str) -> str:
    """Path of a program of the tool environment."""
    return str(ENVIRONMENT / "bin" / name)


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Runs a command from the proto root; raises CalledProcessError if it fails."""
    subprocess.run(command, cwd=PROTOS, check=True, env={**os.environ, **(environment or {})})


if __name__ == "__main__":
    sys.exit(main())
