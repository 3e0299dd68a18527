"""apply, get, delete and watch against a real service."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import GANG, Command

# As Python shows a byte of the command line that is not UTF-8.
BYTE = "\udcff"


def test_apply_says_what_became_of_each_object(command: Command, manifests: Path) -> None:
    result = command("apply", "-f", str(manifests))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "node/machine created",
        "podgroup/crew created",
        "pod/crew-0 created",
        "pod/crew-1 created",
    ]


def test_what_get_prints_as_yaml_is_unchanged_when_applied(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")
    printed = command("get", "-o", "yaml").stdout

    result = command("apply", "-f", "-", text=printed)

    outcomes = {line.rpartition(" ")[2] for line in result.stdout.splitlines()}
    assert (result.exit_code, outcomes) == (0, {"unchanged"})
    assert result.stderr == ""


def test_a_folder_is_applied_as_one(command: Command, manifests: Path) -> None:
    assert command("apply", "-f", str(manifests.parent)).exit_code == 0
    assert len(command.json("get")["objects"]) == 4


def test_a_dry_run_stores_nothing(command: Command, manifests: Path) -> None:
    command("apply", "-f", "-", text="{apiVersion: v1, kind: Node, metadata: {name: other}}")

    result = command("apply", "-f", str(manifests), "--dry-run")

    assert "podgroup/crew created (dry run)" in result.stdout
    assert command.json("get", "podgroups")["objects"] == []


def test_apply_that_waits_says_what_was_decided(command: Command, manifests: Path) -> None:
    result = command("apply", "-f", str(manifests), "--wait", "30s")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "podgroup/crew scheduled: 2 pods on machine (2)"


def test_apply_that_waits_in_vain_is_exit_status_1(command: Command) -> None:
    result = command(
        "apply", "-f", "-", "--wait", "100ms", text=GANG.replace("requests: {cpu: 1}", "requests: {cpu: 3}")
    )

    assert result.exit_code == 1
    assert "podgroup/crew created" in result.stdout
    assert "podgroup/crew unschedulable" in result.stdout


def test_a_refused_apply_names_every_field_and_where_it_stands(command: Command) -> None:
    text = GANG.replace("minCount: 2", "minCount: 0").replace("cpu: 4", "cpu: -4")

    result = command("apply", "-f", "-", text=text)

    assert result.exit_code == 1
    assert "objects[0].node.status.capacity[cpu] (standard input, document 1)" in result.stderr
    assert (
        "objects[1].podGroup.spec.schedulingPolicy.gang.minCount (standard input, document 2)"
        in result.stderr
    )


def test_manifests_that_do_not_fit_are_refused_before_anything_is_sent(command: Command) -> None:
    result = command("apply", "-f", "-", text=GANG.replace("cpu: 4", "cpu: [4]"))

    assert result.exit_code == 1
    assert "nothing was sent" in result.stderr
    assert "objects[0].node.status.capacity[cpu]" in result.stderr


def test_dropped_fields_are_noted_and_refused_when_strict(command: Command) -> None:
    text = "{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {podCIDR: 10.0.0.0/8}}"

    noted = command("apply", "-f", "-", text=text)
    strict = command("apply", "-f", "-", "--strict", text=text)

    assert (noted.exit_code, noted.stderr) == (0, "note: Node spec.podCIDR: 1 left out\n")
    assert strict.exit_code == 1
    assert "objects[0].node.spec.podCIDR" in strict.stderr


def test_the_namespace_of_the_command_is_that_of_objects_without_one(
    command: Command, manifests: Path
) -> None:
    command("-n", "lab", "apply", "-f", str(manifests))

    namespaces = [each["pod"]["metadata"]["namespace"] for each in command.json("get", "pods")["objects"]]
    assert namespaces == ["lab", "lab"]


@pytest.mark.parametrize("kind", ["pod", "pods", "Pod", "PODS", "po"])
def test_a_kind_is_known_in_singular_plural_and_any_case(
    command: Command, manifests: Path, kind: str
) -> None:
    command("apply", "-f", str(manifests))

    result = command("get", kind, "crew-0")

    assert result.exit_code == 0
    assert "crew-0" in result.stdout


def test_json_has_fields_at_their_zero_value(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    node = command.json("get", "node", "machine")["object"]["node"]

    assert node["spec"] == {"unschedulable": False, "taints": []}


def test_lists_are_filtered_by_label_and_group(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    labelled = command.json("get", "pods", "-l", "app=crew")["objects"]
    grouped = command.json("get", "pods", "--group", "podgroup/crew")["objects"]

    assert [each["pod"]["metadata"]["name"] for each in labelled] == ["crew-0"]
    assert len(grouped) == 2


def test_an_object_that_does_not_exist_is_exit_status_1(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    result = command("get", "pod", "nobody")

    assert result.exit_code == 1
    assert "OBJECT_NOT_FOUND" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["get", "gadgets"], id="a kind that does not exist"),
        pytest.param(["delete", "crew"], id="a reference without a kind"),
        pytest.param(["apply"], id="no file"),
        pytest.param(["schedule", "pod/p", "--wait", "soon"], id="a time that is none"),
        pytest.param(["get", "-o", "xml"], id="an unknown output"),
        pytest.param(["frobnicate"], id="an unknown command"),
    ],
)
def test_a_wrong_command_line_is_exit_status_2(command: Command, arguments: list[str]) -> None:
    assert command(*arguments).exit_code == 2


def test_nothing_to_apply_is_exit_status_2(command: Command) -> None:
    assert command("apply", "-f", "-", text="---\n").exit_code == 2


def test_delete_says_what_became_of_each_object(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    result = command("delete", "pod/crew-0", "podgroup/crew")

    assert result.stdout.splitlines() == ["pod/crew-0 deleted", "podgroup/crew marked"]


def test_watch_prints_the_present_state_and_goes_on(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    arguments = ["--server", command.address, "--cluster", command.cluster, "watch", "pods"]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "muster.cli.main", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(2)]
        command("delete", "pod/crew-1")
        seen = iter(process.stdout.readline, "")
        removed = next(line for line in seen if line.startswith("DELETED"))
        process.terminate()

    assert all(line.startswith("ADDED    pod/crew-") for line in first)
    assert removed.startswith("DELETED  pod/crew-1")


@pytest.mark.parametrize(
    "line",
    [
        ["get", "pods", BYTE],
        ["get", "pods", "-l", f"app={BYTE}"],
        ["get", "pods", "--node", BYTE],
        ["get", "-n", BYTE],
        ["get", "--cluster", BYTE],
        ["delete", f"pod/{BYTE}"],
        ["explain", f"pod/{BYTE}"],
        ["simulate", "--drain", BYTE],
        ["decision", BYTE],
        ["replay-decision", BYTE, BYTE],
    ],
    ids=ascii,
)
def test_a_name_that_is_not_utf_8_is_wrong_usage(command: Command, line: list[str]) -> None:
    result = command(*line)

    assert result.exit_code == 2
    assert f"{BYTE!a} is not UTF-8 text" in result.stderr
