"""How a hierarchy is drawn: live by get, as decided by schedule; a line a group, within 80 columns."""

from pathlib import Path

import pytest
from rich.console import Console

from muster.cli.decision_views import decision_view
from muster.v1.decision_pb2 import Decision, DecisionCode, GroupStatus, SearchEnd
from muster.v1.meta_pb2 import ObjectRef
from tests.cli.conftest import Command

TREE = (Path(__file__).resolve().parents[2] / "docs/examples/tree.yaml").read_text(encoding="utf-8")
NO_ROOM = TREE.replace("cpu: 10", "cpu: 4")
DRAWN = """\
cpg/run               Scheduled  2/2 groups  8 pods  block=b
├── cpg/replica-0     Scheduled  2/2 groups  4 pods
│   ├── pg/driver-0   Scheduled  1/1 pod
│   └── pg/workers-0  Scheduled  3/3 pods            rack=b1
└── cpg/replica-1     Scheduled  2/2 groups  4 pods
    ├── pg/driver-1   Scheduled  1/1 pod
    └── pg/workers-1  Scheduled  3/3 pods            rack=b2
"""


def without_remarks(text: str) -> str:
    """The lines of a tree without what was tried, and why the best domain was."""
    lines = [line for line in text.splitlines() if "BEST_DOMAIN" not in line]
    return "".join(f"{line.partition('tried')[0].rstrip()}\n" for line in lines)


def test_get_draws_the_tree_of_a_group_with_its_pods_and_domains(command: Command) -> None:
    command("apply", "-f", "-", text=TREE)
    command("schedule", "cpg/run", "--wait", "10s")

    result = command("get", "compositepodgroup", "run")

    assert result.exit_code == 0, result.stderr
    assert DRAWN in without_remarks(result.stdout)
    assert "compositepodgroup/run: template run of training, priority 0" in result.stdout
    assert "compositepodgroup/run scheduled: 8 pods on b2-0 (5), b1-0 (3)" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_get_draws_a_part_of_a_tree_with_the_decision_about_the_whole(command: Command) -> None:
    command("apply", "-f", "-", text=TREE)
    command("schedule", "cpg/run", "--wait", "10s")

    result = command("get", "pg/workers-1")

    assert "pg/workers-1  Scheduled  3/3 pods  rack=b2" in result.stdout
    assert "below cpg/replica-1" in result.stdout
    assert "compositepodgroup/run scheduled" in result.stdout


def test_get_says_why_a_tree_waits_and_draws_it_all_the_same(command: Command) -> None:
    command("apply", "-f", "-", text=NO_ROOM)
    command("schedule", "cpg/run")

    result = command("get", "cpg", "run")

    assert "cpg/run               Unschedulable  0/2 groups  0 pods" in result.stdout
    assert "0 of 2 required groups fit" in result.stdout
    assert "example.com/block=a lacks 2 cpu" in result.stdout
    assert "0/3 pods" in result.stdout
    assert "3 pending" in result.stdout


def test_what_a_group_above_says_is_not_said_again(command: Command) -> None:
    command("apply", "-f", "-", text=NO_ROOM)
    command("schedule", "cpg/run")

    drawn = command("get", "cpg", "run").stdout
    part = command("get", "cpg", "replica-0").stdout

    assert drawn.count("0 of 2 required groups fit") == 1
    assert "CompositePodGroup default/run: " not in drawn
    assert "CompositePodGroup default/run: " in part


def test_get_names_what_is_wrong_with_the_layout_of_a_tree_once(command: Command) -> None:
    command("apply", "-f", "-", text=TREE.replace("templateName: replica}", "templateName: run}"))
    command("schedule", "cpg/run")

    result = command("get", "cpg", "run")

    assert "cpg/run               Invalid  0/2 groups  0 pods" in result.stdout
    assert result.stdout.count("template run of Workload training") == 2  # once for each replica, at the root
    assert result.stdout.count(" Invalid ") == 7


def test_get_counts_the_pods_that_are_left_over(command: Command) -> None:
    extra = """---
apiVersion: v1
kind: Pod
metadata: {name: worker-0-9}
spec:
  schedulingGroup: {podGroupName: workers-0}
  containers: [{name: main, resources: {requests: {cpu: 64}}}]
"""
    command("apply", "-f", "-", text=TREE + extra)
    command("schedule", "cpg/run", "--wait", "10s")

    assert "1 pending" in command("get", "pg", "workers-0").stdout


def test_get_of_a_group_that_does_not_exist_is_exit_status_1(command: Command) -> None:
    command("apply", "-f", "-", text=TREE)

    assert command("get", "cpg", "other").exit_code == 1


@pytest.mark.parametrize("kind", ["compositepodgroup", "podgroup"])
def test_json_of_a_group_is_the_answer_of_the_api(command: Command, kind: str) -> None:
    command("apply", "-f", "-", text=TREE)
    name = {"compositepodgroup": "run", "podgroup": "workers-0"}[kind]

    answer = command.json("get", kind, name)

    field = {"compositepodgroup": "compositePodGroup", "podgroup": "podGroup"}[kind]
    assert answer["object"][field]["metadata"]["name"] == name


def test_groups_whose_parents_form_a_cycle_are_drawn_once(command: Command) -> None:
    round_and_round = "\n---\n".join(
        f"{{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {{name: {name}}},"
        f" spec: {{parentCompositePodGroupName: {parent}, workloadRef: {{workloadName: w, templateName: t}},"
        " schedulingPolicy: {basic: {}}}}"
        for name, parent in (("egg", "hen"), ("hen", "egg"))
    )
    command("apply", "-f", "-", text=round_and_round)

    result = command("get", "cpg", "egg")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("cpg/egg") == 1
    assert "└── cpg/hen" in result.stdout


def test_schedule_draws_the_tree_as_it_was_decided(command: Command) -> None:
    command("apply", "-f", "-", text=TREE)

    result = command("schedule", "cpg/run", "--wait", "10s")

    assert DRAWN.replace("Scheduled", "success") in without_remarks(result.stdout)


def result_of_three_levels() -> Decision:
    """A decision with every remark that a line can have."""
    decision = Decision(unit=ObjectRef(kind="CompositePodGroup", name="pretraining"))
    root = decision.result
    root.ref.CopyFrom(decision.unit)
    root.status = GroupStatus.GROUP_STATUS_UNSCHEDULABLE
    root.required_count, root.satisfied_count, root.unschedulable_count = 2, 1, 1
    root.candidates_tried, root.candidates_pruned = 2, 1
    for number, status in enumerate(
        (GroupStatus.GROUP_STATUS_SUCCESS, GroupStatus.GROUP_STATUS_UNSCHEDULABLE_AND_UNRESOLVABLE)
    ):
        replica = root.children.add(status=status, required_count=1, satisfied_count=1 - number)
        replica.ref.MergeFrom(ObjectRef(kind="CompositePodGroup", name=f"replica-{number}"))
        workers = replica.children.add(status=status, required_count=3, satisfied_count=3 - number)
        workers.ref.MergeFrom(ObjectRef(kind="PodGroup", name=f"workers-{number}"))
        workers.domain_key, workers.domain_value = "example.com/rack", "a1" if status == 1 else ""
        workers.unresolvable_count = number
    decision.search.end = SearchEnd.SEARCH_END_EXHAUSTED
    decision.search.nodes_spent, decision.search.nodes_budget = 1_234, 20_000
    return decision


def shown(decision: Decision) -> list[str]:
    """The lines on a terminal of 80 columns."""
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(decision_view(decision))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_decision_shows_status_counts_and_domains_of_each_level() -> None:
    lines = shown(result_of_three_levels())

    assert lines[
        lines.index("search: proved that no placement exists after 1,234 of 20,000 steps") + 1 :
    ] == [
        "cpg/pretraining       unschedulable  1/2 groups  0 pods           U=1 tried 2/3",
        "├── cpg/replica-0     success        1/1 group   3 pods",
        "│   └── pg/workers-0  success        3/3 pods            rack=a1",
        "└── cpg/replica-1     unresolvable   0/1 group   0 pods",
        "    └── pg/workers-1  unresolvable   2/3 pods                     UU=1",
    ]


def test_a_search_that_cost_more_than_its_budget_is_not_said_to_be_a_part_of_it() -> None:
    decision = result_of_three_levels()
    decision.search.end = SearchEnd.SEARCH_END_BUDGET_SPENT
    decision.search.nodes_spent, decision.search.nodes_budget = 224, 1

    assert "search: ended without a placement or a proof after 224 steps, 1 allowed" in shown(decision)


def test_what_an_outcome_and_its_message_have_in_common_is_said_once() -> None:
    decision = Decision(unit=ObjectRef(kind="PodGroup", name="training"))
    decision.code = DecisionCode.DECISION_CODE_WAITING_FOR_PREEMPTION
    decision.message = "waiting for preemption of 2 pods"

    assert shown(decision)[0] == "podgroup/training waiting for preemption of 2 pods"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (SearchEnd.SEARCH_END_FOUND, ["search: found a placement that greedy placement misses"]),
        (SearchEnd.SEARCH_END_BUDGET_SPENT, ["search: ended without a placement or a proof"]),
        (SearchEnd.SEARCH_END_NOT_NEEDED, []),
    ],
)
def test_a_decision_says_how_the_search_ended(end: SearchEnd.ValueType, words: list[str]) -> None:
    decision = result_of_three_levels()
    decision.search.Clear()
    decision.search.end = end

    assert [line for line in shown(decision) if line.startswith("search")] == words
