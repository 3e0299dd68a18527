"""The Dockerfile, the compose files and the pod manifest, as the tests read them."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.repository import ROOT

DOCKER = ROOT / "docker"
MUSTER = Path(sys.executable).with_name("muster")


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its lines joined."""

    word: str
    rest: str

    @property
    def exec_form(self) -> list[str]:
        """The words of the JSON array with which the instruction ends."""
        return [str(word) for word in json.loads(self.rest[self.rest.index("[") :])]


@dataclass(frozen=True)
class Invocation:
    """A `muster` command line that some file holds."""

    where: str
    words: tuple[str, ...]
    subcommand: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subcommand", self.words[0])

    @property
    def options(self) -> list[str]:
        return [word.partition("=")[0] for word in self.words if word.startswith("--")]

    def value(self, option: str) -> str | None:
        """The option's value, written `--option=value` or as two words."""
        for place, word in enumerate(self.words):
            if word.startswith(f"{option}="):
                return word.partition("=")[2]
            if word == option:
                return self.words[place + 1]
        return None


@cache
def dockerfile() -> tuple[Instruction, ...]:
    """All instructions, in order."""
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    return tuple(Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip())


def instructions(word: str) -> list[Instruction]:
    """The instructions that begin with `word`, in order."""
    return [instruction for instruction in dockerfile() if instruction.word == word]


@cache
def document(name: str) -> dict[str, Any]:
    """The parsed YAML file at this path below docker/."""
    parsed: dict[str, Any] = yaml.safe_load((DOCKER / name).read_text(encoding="utf-8"))
    return parsed


def invocations() -> list[Invocation]:
    """Every `muster` command line of the image, the compose files and the pod."""
    found = [Invocation("Dockerfile CMD", tuple(instructions("CMD")[-1].exec_form))]
    found.append(Invocation("Dockerfile HEALTHCHECK", tuple(instructions("HEALTHCHECK")[-1].exec_form[1:])))
    for name in ("compose.yaml", "sidecar/compose.yaml"):
        for service, body in document(name)["services"].items():
            found += _of_service(f"{name} {service}", body)
    for container in document("sidecar/pod.yaml")["spec"]["containers"]:
        found += _of_container(f"pod.yaml {container['name']}", container)
    return found


def _of_service(where: str, body: dict[str, Any]) -> list[Invocation]:
    if body.get("image", "muster") != "muster":
        return []
    found = [Invocation(where, tuple(body["command"]))]
    if "test" in body.get("healthcheck", {}):
        found.append(Invocation(f"{where} healthcheck", tuple(body["healthcheck"]["test"][2:])))
    return found


def _of_container(where: str, body: dict[str, Any]) -> list[Invocation]:
    found = [Invocation(where, tuple(body["args"]))]
    if "readinessProbe" in body:
        found.append(Invocation(f"{where} probe", tuple(body["readinessProbe"]["exec"]["command"][1:])))
    return found


@cache
def help_text(subcommand: str) -> str:
    """What `muster SUBCOMMAND --help` prints. Raises CalledProcessError if there is no such command."""
    command: list[str | Path] = [MUSTER, subcommand, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def port(address: str) -> int:
    """The port of HOST:PORT."""
    return int(address.rpartition(":")[2])
