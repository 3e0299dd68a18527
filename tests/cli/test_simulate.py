"""`muster simulate` and `muster replay-decision` against a real service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import GANG, Command

LARGE = GANG.replace("cpu: 4", "cpu: 1")


def test_units_of_the_manifests_are_decided_and_nothing_is_stored(command: Command, manifests: Path) -> None:
    command("apply", "-f", "-", text="{apiVersion: v1, kind: Node, metadata: {name: other}}")

    result = command("simulate", "-f", str(manifests))

    assert result.exit_code == 0, result.output
    assert "podgroup/crew scheduled: 2 pods on machine (2)" in result.stdout
    assert "1 unit: 1 scheduled, 0 after preemption, 0 not; 2 pods placed, 0 pending" in result.stdout
    assert "crew" not in command("get", "pods").stdout


def test_use_is_shown_by_resource(command: Command, manifests: Path) -> None:
    result = command("simulate", "-f", str(manifests), "--inline")

    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line}
    assert rows["cpu"][:4] == ["0", "2", "4", "50.0%"]
    assert rows["memory"][:3] == ["0.0Gi", "0.0Gi", "8.0Gi"]


def test_a_unit_that_would_wait_is_exit_status_1_with_its_reasons(command: Command) -> None:
    result = command("simulate", "-f", "-", "--inline", text=LARGE)

    assert result.exit_code == 1
    assert "Insufficient cpu" in result.stdout


def test_a_drained_node_is_emptied(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")

    result = command("simulate", "--drain", "machine", "--queue")

    assert result.exit_code == 1
    assert "podgroup/crew unschedulable" in result.stdout
    assert "machine" in command("get", "pods").stdout


def test_many_units_are_a_table_with_those_that_wait_first(command: Command) -> None:
    node, crew = GANG.replace("cpu: 4", "cpu: 7").split("---", 1)
    text = "---".join([node, *(crew.replace("crew", f"crew{i}") for i in range(4))])

    result = command("simulate", "-f", "-", "--inline", text=text)

    lines = result.stdout.splitlines()
    assert lines[0].split() == ["UNIT", "OUTCOME", "PODS", "WHERE", "OR", "WHY"]
    assert lines[1].startswith("podgroup/crew3  unschedulable")


def test_unit_and_queue_exclude_each_other(command: Command) -> None:
    assert command("simulate", "--queue", "--unit", "podgroup/a").exit_code == 2


def test_faults_are_told_by_file(command: Command) -> None:
    result = command("simulate", "-f", "-", "--inline", text=GANG.replace("minCount: 2", "minCount: -2"))

    assert result.exit_code == 1
    assert "schedulingPolicy.gang.minCount" in result.stderr


def test_a_decision_made_again_is_told_equal(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")
    decided = command.json("decisions")["decisions"][0]["id"]

    result = command("replay-decision", decided)

    assert result.exit_code == 0, result.output
    assert "equal: made again from the same input" in result.stdout


def test_the_newest_decisions_are_made_again_together(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")
    made = [each["id"] for each in command.json("decisions")["decisions"] if each["inputDigest"]]

    result = command("replay-decision", "--newest", "50")

    assert made
    assert result.exit_code == 0, result.output
    count = "1 decision" if len(made) == 1 else f"{len(made)} decisions"
    assert f"{count} made again: {len(made)} equal, 0 not" in result.stdout


def test_several_decisions_are_told_by_their_ids(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")
    decided = command.json("decisions")["decisions"][0]["id"]

    result = command("replay-decision", decided, decided, "-o", "json")

    assert result.exit_code == 0, result.output
    assert [(each["id"], each["rerun"]["equal"]) for each in json.loads(result.stdout)] == [
        (decided, True)
    ] * 2


def test_what_is_to_be_made_again_must_be_said(command: Command) -> None:
    result = command("replay-decision")

    assert result.exit_code == 2
    assert "--newest" in result.stderr


def test_an_unknown_decision_is_not_made_again(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    result = command("replay-decision", "999999")

    assert result.exit_code == 1
    assert "does not exist" in result.stderr
