"""The runner against a real server: a family is placed, judged, told in a line and written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.instances.asking import Answer
from tests.instances.instance import FEASIBLE, INFEASIBLE, Case, instance_of
from tests.instances.run import Result, faults_of, line, main, records

FAMILIES = Path(__file__).parent / "families"


def node(name: str, cpu: int, **labels: str) -> dict[str, Any]:
    taints = [{"key": "owner", "value": "x", "effect": "NoSchedule"}]
    return {"name": name, "allocatable": {"cpu": cpu, "memory": 1_024}, "labels": labels, "taints": taints}


def pod(name: str, cpu: int, group: str | None, bound_to: str | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "requests": {"cpu": cpu, "memory": 64},
        "group": group,
        "bound_to": bound_to,
        "priority": 5,
        "labels": {},
        "node_selector": {"disk": "ssd"},
        "tolerations": [{"key": "owner", "operator": "Exists", "value": "", "effect": ""}],
    }


def group(name: str, kind: str, minimum: int, parent: str | None = None, **more: Any) -> dict[str, Any]:
    usual = {"policy": "gang", "topology": None, "disruption": "Single", "priority": 5}
    return usual | {"name": name, "kind": kind, "parent": parent, "min_count": minimum} | more


def tree(room: int) -> dict[str, Any]:
    """A root in one block over two leaves in racks, three pods of one cpu; nodes with so much room."""
    return {
        "target": "root",
        "groups": [
            group("root", "composite", 2, topology="block"),
            group("left", "leaf", 2, "root", topology="rack"),
            group("right", "leaf", 1, "root", policy="basic"),
        ],
        "nodes": [
            node("a1", room, disk="ssd", block="a", rack="1"),
            node("a2", room, disk="ssd", block="a", rack="2"),
        ],
        "pods": [
            pod("left-0", 1_000, "left"),
            pod("left-1", 1_000, "left"),
            pod("right-0", 1_000, "right"),
            pod("runs", 500, None, "a1"),
        ],
        "pdbs": [],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small = [
        {"seed": 1, "verdict": FEASIBLE, "instance": tree(room=2_500)},
        {"seed": 2, "verdict": INFEASIBLE, "instance": tree(room=900)},
    ]
    (tmp_path / "small_trees.json").write_text(json.dumps(small), encoding="utf-8")
    return tmp_path


def test_a_family_is_placed_through_the_api_and_written_down(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out"

    status = main([str(folder), "--out", str(out)])

    assert status == 0
    assert (
        "small_trees  2          0           1         1       1       1           1"
        in capsys.readouterr().out
    )
    placed, hopeless = json.loads(out.read_text(encoding="utf-8"))
    assert placed["status"] == "SCHEDULED"
    assert placed["placements"].keys() == {"left-0", "left-1", "right-0"}
    assert not placed["exhaustive"]
    assert (hopeless["family"], hopeless["seed"], hopeless["placements"]) == ("small_trees", 2, {})
    assert hopeless["exhaustive"]


def test_the_family_beside_the_runner_has_a_tree_that_only_the_search_places(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(FAMILIES)]) == 0

    *_, figures = capsys.readouterr().out.splitlines()
    assert figures.split()[:8] == ["two_racks", "3", "0", "2", "2", "1", "1", "1"]


def test_a_verdict_that_the_server_contradicts_is_exit_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [{"seed": 3, "verdict": INFEASIBLE, "instance": tree(room=2_500)}]
    (folder / "small_trees.json").write_text(json.dumps(wrong), encoding="utf-8")

    assert main([str(folder)]) == 1
    assert "small_trees 3: placed what is proved to be infeasible" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[1]", '[{"seed": 1}]', "[]"])
def test_a_file_that_is_no_family_is_exit_status_2(tmp_path: Path, text: str) -> None:
    (tmp_path / "wrong.json").write_text(text, encoding="utf-8")

    assert main([str(tmp_path)]) == 2


def answer(**values: Any) -> Answer:
    usual: dict[str, Any] = {
        "status": "UNSCHEDULABLE",
        "placements": {},
        "evicted": (),
        "ms": 1.0,
        "exhaustive": False,
    }
    return Answer(**(usual | values))


CASE = Case("f", 1, FEASIBLE, instance_of(tree(room=2_500)))


def test_a_proof_that_nothing_exists_where_something_does_is_a_fault() -> None:
    assert faults_of(CASE, answer(exhaustive=True, message="no room")) == [
        "declared impossible what is proved to be feasible: no room"
    ]


def test_a_broken_rule_is_a_fault_whatever_the_verdict() -> None:
    assert faults_of(CASE, answer(status="SCHEDULED", placements={"right-0": "a1"})) == [
        "root needs 2 and has 1"
    ]


def test_an_error_of_the_server_is_a_fault() -> None:
    assert faults_of(CASE, answer(status="REFUSED", message="broken")) == ["the server refused it: broken"]


def test_scheduled_without_a_placement_is_a_fault() -> None:
    assert faults_of(CASE, answer(status="SCHEDULED")) == [
        "says that it is scheduled, and nothing was placed"
    ]


def test_a_line_counts_what_is_feasible_and_what_is_not_apart() -> None:
    placed = answer(placements={"p": "n"}, ms=4.0)
    hopeless = Case("f", 2, INFEASIBLE, CASE.instance)
    results = [
        Result(CASE, placed, answer(), ()),
        Result(CASE, answer(ms=9.0), answer(), ("wrong",)),
        Result(hopeless, answer(exhaustive=True), answer(), ()),
    ]

    assert line("f", results) == ("f", "3", "1", "2", "1", "0", "1", "1", "4.0", "9.0")


def test_a_record_has_what_was_decided() -> None:
    (record,) = records([Result(CASE, answer(placements={"p": "n"}, evicted=("v",)), answer(), ())])

    assert record == {
        "family": "f",
        "seed": 1,
        "status": "UNSCHEDULABLE",
        "placements": {"p": "n"},
        "evicted": ["v"],
        "ms": 1.0,
        "exhaustive": False,
    }
