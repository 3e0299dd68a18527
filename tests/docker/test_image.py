"""The image is built from files that exist, runs commands that exist, and as nobody special."""

import fnmatch
import re
import shlex
import tomllib

import pytest

from tests.architecture.repository import ROOT
from tests.docker.container_files import (
    DOCKER,
    Invocation,
    dockerfile,
    help_text,
    instructions,
    invocations,
    port,
)


def _copied_from_the_repository() -> list[str]:
    copies = [shlex.split(copy.rest) for copy in instructions("COPY") if "--from=" not in copy.rest]
    return [source for words in copies for source in words[:-1]]


def _sent_to_the_builder() -> list[str]:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


def test_all_that_is_copied_exists_and_is_sent_to_the_builder() -> None:
    copied = _copied_from_the_repository()

    assert copied
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert set(copied) == set(_sent_to_the_builder())


def test_the_wheel_finds_all_that_it_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [
        project["project"]["readme"],
        *project["project"]["license-files"],
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    ]
    copied = _copied_from_the_repository()

    assert [part for part in needed if not any(part == c or part.startswith(f"{c}/") for c in copied)] == []


def test_the_last_stage_runs_as_a_user_without_rights() -> None:
    words = [instruction.word for instruction in dockerfile()]
    last_stage = len(words) - 1 - words[::-1].index("FROM")
    users = [instruction.rest for instruction in dockerfile()[last_stage:] if instruction.word == "USER"]

    assert users == ["10001:10001"]


def test_nothing_of_the_build_stage_but_the_environment_reaches_the_image() -> None:
    copies = [copy.rest for copy in instructions("COPY") if "--from=" in copy.rest]

    assert copies == ["--from=build /opt/muster /opt/muster"]


def test_every_base_image_is_pinned_to_a_version() -> None:
    bases = [base.rest.split()[0] for base in instructions("FROM")]

    assert [base for base in bases if not re.fullmatch(r"[\w./-]+:\d[\w.-]*", base)] == []


def test_the_ports_that_are_served_are_those_that_are_exposed() -> None:
    server = Invocation("CMD", tuple(instructions("CMD")[-1].exec_form))
    served = {port(server.value(option) or "") for option in ("--listen", "--metrics")}

    assert served == {int(number) for exposed in instructions("EXPOSE") for number in exposed.rest.split()}


def test_the_health_check_asks_the_port_that_is_served() -> None:
    check = Invocation("HEALTHCHECK", tuple(instructions("HEALTHCHECK")[-1].exec_form[1:]))
    server = Invocation("CMD", tuple(instructions("CMD")[-1].exec_form))

    assert port(check.value("--server") or "") == port(server.value("--listen") or "")


@pytest.mark.parametrize("invocation", invocations(), ids=lambda invocation: invocation.where)
def test_every_command_and_option_that_a_file_names_exists(invocation: Invocation) -> None:
    known = help_text(invocation.subcommand)

    assert [option for option in invocation.options if not re.search(rf"{option}\b", known)] == []


def test_no_cache_of_this_machine_is_sent_to_the_builder() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()

    assert any(fnmatch.fnmatch("**/__pycache__", line) for line in lines)
    assert lines.index("*") < min(place for place, line in enumerate(lines) if line.startswith("!"))
