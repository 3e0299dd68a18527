"""Dashboard and alerts ask for what the service exports, and Prometheus understands them."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.repository import ROOT
from tests.console.served import Served, service
from tests.docker.container_files import document
from tests.docker.monitoring import (
    ALERTS,
    ALERTS_TEST,
    DASHBOARD,
    LABELS_OF_PROMETHEUS,
    alerts,
    dashboard,
    exported,
    expressions,
    names_in,
    panels,
    selectors_in,
)

OPERATIONS = ROOT / "docs" / "operations.md"
PATIENCE_SECONDS = 60
MANIFEST = """
{apiVersion: v1, kind: Node, metadata: {name: machine}, status: {capacity: {cpu: 4}}}
---
apiVersion: v1
kind: Pod
metadata: {name: single}
spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}
"""


def tool(name: str) -> str:
    """The path of a program of Prometheus; without it the test is skipped."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (Debian's package prometheus has it)")
    return path


def run(*words: str, text: str = "") -> str:
    result = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@contextmanager
def prometheus(program: str, served: Served, folder: Path) -> Iterator[Callable[..., Any]]:
    """A Prometheus that scrapes the service every second and judges the alerts; asks its API."""
    scrape = {"job_name": "muster", "static_configs": [{"targets": [served.http]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"

    def ask(path: str, **parameters: str) -> Any:
        url = f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)["data"]

    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield ask
        finally:
            process.terminate()


def wait_for(condition: Callable[[], object]) -> None:
    """Until it holds; what cannot be reached yet does not."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            if condition():
                return
        time.sleep(0.1)
    pytest.fail(f"not so after {PATIENCE_SECONDS} s")


@pytest.mark.parametrize(("where", "expression"), [*expressions()])
def test_every_metric_that_is_asked_for_is_exported(where: str, expression: str) -> None:
    assert names_in(expression) - set(exported()) == set()


@pytest.mark.parametrize(("where", "expression"), [*expressions()])
def test_every_label_that_is_asked_for_is_one_of_its_metric(where: str, expression: str) -> None:
    known = exported()
    for metric, labels in selectors_in(expression):
        assert labels <= known[metric] | LABELS_OF_PROMETHEUS, metric


def test_every_metric_is_on_the_dashboard() -> None:
    shown = set().union(*(names_in(expression) for _, expression in expressions()))
    families = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in shown}
    known = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in exported()}

    assert known - families == set()


def test_panels_have_a_name_and_say_what_they_show_and_none_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["title"]
        assert panel["description"]
        place = panel["gridPos"]
        covers = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not covers & taken, panel["title"]
        assert max(x for x, _ in covers) < 24
        taken |= covers


def test_every_alert_is_explained_where_it_says() -> None:
    headings = re.findall(r"^#+ (\w+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)

    for alert in alerts():
        assert alert["annotations"]["runbook_url"] == f"docs/operations.md#{alert['alert'].lower()}"
        assert alert["alert"] in headings
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}


def test_grafana_is_given_the_dashboard_and_the_prometheus_of_the_compose_file() -> None:
    mounted = dict(
        volume.split(":")[:2] for volume in document("compose.yaml")["services"]["grafana"]["volumes"]
    )
    folder = document("grafana/dashboards.yaml")["providers"][0]["options"]["path"]
    source = urllib.parse.urlsplit(document("grafana/datasource.yaml")["datasources"][0]["url"])

    assert mounted[f"./grafana/{DASHBOARD.name}"] == f"{folder}/{DASHBOARD.name}"
    assert source.hostname in document("compose.yaml")["services"]
    assert document("prometheus.yaml")["rule_files"] == [ALERTS.name]


def test_promtool_finds_no_fault_with_the_alerts() -> None:
    assert "SUCCESS" in run(tool("promtool"), "check", "rules", str(ALERTS))


def test_each_alert_fires_on_what_it_is_for_and_is_silent_where_all_is_well() -> None:
    cases = yaml.safe_load(ALERTS_TEST.read_text(encoding="utf-8"))["tests"]
    silent = {case["alertname"] for case in cases[0]["alert_rule_test"]}
    firing = {
        re.findall(r'alertname="(\w+)"', sample["labels"])[0]
        for sample in cases[1]["promql_expr_test"][0]["exp_samples"]
    }

    assert silent == firing == {alert["alert"] for alert in alerts()}
    assert "SUCCESS" in run(tool("promtool"), "test", "rules", str(ALERTS_TEST))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("monitored")
    (folder / "pod.yaml").write_text(MANIFEST, encoding="utf-8")
    with service(folder) as running:
        running.command("apply", "-f", str(folder / "pod.yaml"))
        running.command("schedule", "pod/single", "--wait", "30s")
        yield running


def test_promtool_finds_no_fault_with_what_the_service_exports(served: Served) -> None:
    exposed = served.get("/metrics").body.decode()

    assert run(tool("promtool"), "check", "metrics", text=exposed) == ""


def test_a_real_prometheus_answers_every_expression_on_the_real_endpoint(
    served: Served, tmp_path: Path
) -> None:
    with prometheus(tool("prometheus"), served, tmp_path) as ask:
        wait_for(lambda: ask("query", query='up{job="muster"} == 1')["result"])
        for where, expression in expressions():
            assert ask("query", query=expression)["resultType"] == "vector", where
        wait_for(lambda: all(rule["health"] == "ok" for rule in ask("rules")["groups"][0]["rules"]))
        rules = ask("rules")["groups"][0]["rules"]
        names = set(ask("label/__name__/values"))

    assert {rule["name"]: rule["health"] for rule in rules} == {alert["alert"]: "ok" for alert in alerts()}
    assert {"muster_commits_total", "scheduler_podgroup_schedule_attempts_total"} <= names
    assert dashboard()["templating"]["list"][1]["definition"].split("(")[1].split(",")[0] in names
