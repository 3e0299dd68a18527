"""schedule, preempt, queue and decisions against a real service."""

import json
from pathlib import Path

from tests.cli.conftest import GANG, Command

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"
LARGE = GANG.replace("cpu: 4", "cpu: 1")


def test_a_scheduled_gang_is_shown_with_its_places_and_exit_status_0(
    command: Command, manifests: Path
) -> None:
    command("apply", "-f", str(manifests))

    result = command("schedule", "podgroup/crew")

    assert result.exit_code == 0
    assert "podgroup/crew scheduled: 2 pods on machine (2)" in result.stdout


def test_a_gang_without_room_is_shown_with_its_reasons_and_exit_status_1(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)

    result = command("schedule", "podgroup/crew")

    assert result.exit_code == 1
    assert "Insufficient cpu" in result.stdout


def test_schedule_waits_as_long_as_it_is_told(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)

    result = command("schedule", "podgroup/crew", "--wait", "100ms", "-o", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["decision"]["code"].startswith("DECISION_CODE_UNSCHEDULABLE")


def test_a_dry_run_of_schedule_stores_no_decision(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)
    command("schedule", "podgroup/crew")
    before = command.json("decisions")["decisions"]

    result = command("schedule", "podgroup/crew", "--dry-run", "-o", "json")

    assert json.loads(result.stdout)["decision"]["id"] == ""
    assert command.json("decisions")["decisions"] == before


def test_preempt_of_a_gang_that_nobody_is_in_the_way_of_names_the_rule_and_exits_with_1(
    command: Command,
) -> None:
    command("apply", "-f", "-", text=LARGE)

    result = command("preempt", "podgroup/crew")

    assert result.exit_code == 1
    assert "no preemption: no unit of lower priority is in the way" in result.stdout


def test_preempt_shows_victims_and_where_pods_are_nominated(command: Command) -> None:
    command("apply", "-f", str(EXAMPLES / "preemption.yaml"))
    command("apply", "-f", str(EXAMPLES / "urgent.yaml"))

    result = command("preempt", "podgroup/urgent")
    again = command("preempt", "podgroup/urgent")
    (decided,) = (
        each
        for each in command.json("decisions", "--code", "waiting_for_preemption")["decisions"]
        if each.get("preemption", {}).get("victims")
    )
    shown, pods, queue = command("decision", decided["id"]), command("get", "pods"), command("queue")

    assert (result.exit_code, again.exit_code) == (0, 0)
    assert all(
        "pod/web-0  0         1     no           its room on m-0 is needed" in each.stdout
        for each in (result, again, shown)
    )
    assert "(m-0)" in pods.stdout
    assert "preempted by PodGroup default/urgent" in pods.stdout
    assert "1 waiting for preemption" in queue.stdout


def test_the_queue_shows_what_waits_and_why(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)
    command("schedule", "podgroup/crew")

    result = command("queue")

    assert "podgroup/crew" in result.stdout
    assert "1 unschedulable" in result.stdout


def test_the_queue_says_the_whole_reason_without_codes(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)
    command("schedule", "podgroup/crew")

    (row,) = (line for line in command("queue").stdout.splitlines() if line.startswith("podgroup/crew"))

    assert row.endswith("; no placement exists; 0/1 nodes are available: 1 Insufficient cpu.")
    assert "INSUFFICIENT_CPU" not in row


def test_a_gated_unit_is_shown_with_what_it_is_short_of_and_a_code_of_its_own(command: Command) -> None:
    command("apply", "-f", "-", text=GANG.replace("minCount: 2", "minCount: 3"))

    (unit,) = command.json("queue")["units"]
    (row,) = (line for line in command("queue").stdout.splitlines() if line.startswith("podgroup/crew"))

    assert [each["code"] for each in unit["reasons"]] == ["GATED"]
    assert row.endswith("  2 of 3 members")


def test_pods_that_wait_for_members_say_so(command: Command) -> None:
    command("apply", "-f", "-", text=GANG.replace("minCount: 2", "minCount: 3"))

    assert "PodGroup default/crew is not ready" in command("get", "pods").stdout


def test_a_pod_that_nobody_here_tries_says_for_whom_it_waits(command: Command) -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: other}}"
    command("apply", "-f", "-", text=text)

    assert "not tried yet by scheduler 'other'" in command("get", "pods").stdout


def test_what_is_not_found_is_named_once(command: Command) -> None:
    command("apply", "-f", "-", text=LARGE)

    result = command("schedule", "podgroup/nope")

    assert result.exit_code == 1
    assert result.stderr.count("PodGroup default/nope") == 1


def test_what_was_not_decided_has_no_duration(command: Command) -> None:
    command("apply", "-f", "-", text=GANG.replace("minCount: 2", "minCount: 3"))

    result = command("schedule", "podgroup/crew")

    assert "podgroup/crew gated: 2 of 3 members\nnot stored, revision 1\n" in result.stdout


def test_the_queue_shows_pods_whose_group_is_missing(command: Command) -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulingGroup: {podGroupName: late}}}"
    command("apply", "-f", "-", text=text)

    assert "pod/p waits for podgroup/late" in command("queue").stdout


def test_a_decision_is_found_by_its_id(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))
    command("schedule", "podgroup/crew")
    (listed,) = command.json("decisions", "--code", "scheduled")["decisions"]

    result = command("decision", listed["id"])

    assert result.exit_code == 0
    assert "pg/crew  success  2/2 pods" in result.stdout
    assert "crew-0" in result.stdout


def test_a_decision_that_does_not_exist_is_exit_status_1(command: Command, manifests: Path) -> None:
    command("apply", "-f", str(manifests))

    assert command("decision", "999").exit_code == 1
