"""The dashboard and the alerts as tests read them: their expressions, and what those name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from muster.telemetry.metrics import Metrics
from muster.telemetry.tallies import Distribution, Tally
from tests.docker.container_files import DOCKER, document

DASHBOARD = DOCKER / "grafana" / "muster.json"
ALERTS = DOCKER / "alerts.yaml"
ALERTS_TEST = DOCKER / "alerts-test.yaml"
# What Prometheus itself knows of a target.
OF_PROMETHEUS = {"up"}
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
LABELS_OF_PROMETHEUS = {"instance", "job", "le"}
_METRIC = re.compile(r"\b(?:muster|scheduler)_[a-z_]+\b|\bup\b")
_SELECTOR = re.compile(r"\b((?:muster|scheduler)_[a-z_]+|up)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def alerts() -> Iterator[dict[str, Any]]:
    for group in document("alerts.yaml")["groups"]:
        yield from group["rules"]


@cache
def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return loaded


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in dashboard()["panels"] if panel["type"] != "row")


def expressions() -> Iterator[tuple[str, str]]:
    """Where each stands, and the expression with the dashboard's variables filled in."""
    for alert in alerts():
        yield alert["alert"], alert["expr"]
    for panel in panels():
        for target in panel["targets"]:
            filled = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")
            yield panel["title"], filled


def names_in(expression: str) -> set[str]:
    """Metrics that an expression asks for; the names of labels by which it sums are none."""
    return set(_METRIC.findall(re.sub(r"\b(?:by|on)\s*\([^)]*\)", "", expression)))


def selectors_in(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Metrics with the labels that are asked of them."""
    for name, inside in _SELECTOR.findall(expression):
        yield name, set(_LABEL.findall(inside))


def exported() -> dict[str, set[str]]:
    """Names of all samples that the service can export, with their labels."""
    found: dict[str, set[str]] = {name: set() for name in OF_PROMETHEUS}
    for metric in vars(Metrics()).values():
        if isinstance(metric, MetricWrapperBase):
            described = [(metric._name, metric._type, metric._labelnames)]
        elif isinstance(metric, Tally | Distribution):
            described = [(family.name, family.type, metric._labels) for family in metric.collect()]
        else:
            continue
        for name, kind, labels in described:
            found |= {name + suffix: set(labels) for suffix in SUFFIXES[str(kind)]}
    return found
