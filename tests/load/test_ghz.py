"""Configurations name calls that exist, and ghz's report is read as it is meant."""

import json
from pathlib import Path

import pytest

from muster.v1 import cluster_service_pb2, scheduler_service_pb2
from tests.load.ghz import CONFIGURATIONS, LoadRun, report_of
from tests.load.run import all_cases, main

METHODS = {
    f"{service.full_name}/{method.name}"
    for module in (cluster_service_pb2, scheduler_service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


@pytest.mark.parametrize("path", sorted(CONFIGURATIONS.glob("*.json")), ids=lambda path: path.stem)
def test_a_configuration_calls_a_method_that_exists_with_files_that_are_there(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))

    assert found["call"] in METHODS
    assert found["total"] > 0
    assert (CONFIGURATIONS / found["proto"]).is_file()
    assert "data" in found or (CONFIGURATIONS / found["data-file"]).is_file()


def test_every_case_is_run_over_both_transports_from_1_16_and_64_connections() -> None:
    names = [case.name for case in all_cases()]

    assert {name.partition("/")[2] for name in names} == {
        f"{transport}/{connections}" for transport in ("tcp", "unix") for connections in (1, 16, 64)
    }
    assert len(set(names)) == len(names) == 6 * (len(list(CONFIGURATIONS.glob("*.json"))) + 4)


def test_a_run_is_bounded_in_time_and_waits_for_calls_in_work() -> None:
    arguments = LoadRun(CONFIGURATIONS / "get.json", "127.0.0.1:1", 16, 5).arguments()

    assert " ".join(arguments).count("--max-duration 5s --duration-stop wait") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--seconds", "0"], id="no end"),
        pytest.param(["--seconds", "-1"], id="ended before"),
        pytest.param(["--seconds", "1.5"], id="no whole number"),
        pytest.param(["--out", "no/such/folder/file.json"], id="nowhere to write"),
        pytest.param(["--only", "nothing-like-this"], id="no case"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(arguments: list[str]) -> None:
    try:
        status: object = main(["--ghz", "ghz", "--gangs", "gangs", *arguments])
    except SystemExit as ended:
        status = ended.code

    assert status == 2


def test_a_report_counts_every_status_but_ok_as_an_error() -> None:
    report = report_of(
        {
            "count": 10,
            "rps": 5.0,
            "latencyDistribution": [{"percentage": 50, "latency": 2_000_000}],
            "statusCodeDistribution": {"OK": 8, "Unavailable": 2},
        }
    )

    assert (report.p50_ms, report.errors) == (2.0, {"Unavailable": 2})
