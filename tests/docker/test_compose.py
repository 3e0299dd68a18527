"""Services find each other by names, ports and files that the same file gives them."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from tests.docker.container_files import DOCKER, Invocation, document, invocations, port

COMPOSE = document("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
COLLECTOR = document("collector.yaml")
SERVER = next(invocation for invocation in invocations() if invocation.where == "compose.yaml muster")


def _mounts(name: str) -> Iterator[tuple[str, str]]:
    for service, body in document(name)["services"].items():
        for volume in body.get("volumes", []):
            yield service, volume.split(":")[0]


@pytest.mark.parametrize("name", ["compose.yaml", "sidecar/compose.yaml"])
def test_every_mount_is_a_file_of_ours_or_a_named_volume(name: str) -> None:
    folder = (DOCKER / name).parent
    unknown = [
        (service, source)
        for service, source in _mounts(name)
        if not (folder / source).is_file() and source not in document(name)["volumes"]
    ]

    assert unknown == []


@pytest.mark.parametrize("name", ["compose.yaml", "sidecar/compose.yaml"])
def test_every_service_waited_for_exists_and_can_say_that_it_is_well(name: str) -> None:
    services = document(name)["services"]
    waits = [wait for body in services.values() for wait in _conditions(body)]
    silent = [
        needed for needed, how in waits if how == "service_healthy" and "healthcheck" not in services[needed]
    ]

    assert {needed for needed, _ in waits} <= set(services)
    assert silent == []


def _conditions(body: dict[str, Any]) -> list[tuple[str, str]]:
    needs = body.get("depends_on", {})
    if isinstance(needs, list):
        return [(name, "service_started") for name in needs]
    return [(name, how["condition"]) for name, how in needs.items()]


@pytest.mark.parametrize("name", ["compose.yaml", "sidecar/compose.yaml"])
def test_the_image_is_built_from_the_root_of_the_repository(name: str) -> None:
    build = document(name)["services"]["muster"]["build"]
    context = ((DOCKER / name).parent / build["context"]).resolve()

    assert context / build["dockerfile"] == DOCKER / "Dockerfile"


def test_the_store_is_the_database_that_compose_starts() -> None:
    url = make_url((SERVER.value("--store") or "").replace("${POSTGRES_PASSWORD:-muster}", "secret"))
    database = SERVICES["postgres"]["environment"]

    assert (url.drivername, url.host, url.port) == ("postgresql+psycopg", "postgres", 5432)
    assert (url.username, url.database) == (database["POSTGRES_USER"], database["POSTGRES_DB"])
    assert database["POSTGRES_PASSWORD"] in (SERVER.value("--store") or "")


def test_traces_go_to_the_port_on_which_the_collector_listens() -> None:
    target = SERVICES["muster"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    listening = COLLECTOR["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]

    assert target == f"http://collector:{port(listening)}"


def test_the_collector_hands_traces_on_to_a_service_that_exists() -> None:
    used = COLLECTOR["service"]["pipelines"]["traces"]
    endpoints = [COLLECTOR["exporters"][name]["endpoint"] for name in used["exporters"]]

    assert [endpoint.partition(":")[0] in SERVICES for endpoint in endpoints] == [True]
    assert set(used["receivers"]) <= set(COLLECTOR["receivers"])
    assert set(used["processors"]) <= set(COLLECTOR["processors"])


def test_prometheus_asks_the_ports_that_serve_metrics() -> None:
    served = {
        "muster": port(SERVER.value("--metrics") or ""),
        "collector": port(COLLECTOR["service"]["telemetry"]["metrics"]["address"]),
    }
    scraped = {
        target
        for scrape in document("prometheus.yaml")["scrape_configs"]
        for group in scrape["static_configs"]
        for target in group["targets"]
    }

    assert scraped == {f"{name}:{number}" for name, number in served.items()}


def test_every_published_port_is_bound_to_this_machine_alone() -> None:
    published = [entry for body in SERVICES.values() for entry in body.get("ports", [])]

    assert published
    assert [entry for entry in published if not entry.startswith("127.0.0.1:")] == []


def test_the_server_publishes_the_ports_on_which_it_listens() -> None:
    inside = [int(entry.rpartition(":")[2]) for entry in SERVICES["muster"]["ports"]]

    assert inside == [port(SERVER.value(option) or "") for option in ("--listen", "--metrics")]


def _sidecar_invocations() -> list[Invocation]:
    return [
        invocation
        for invocation in invocations()
        if "sidecar" in invocation.where or "pod" in invocation.where
    ]


def test_both_sides_of_the_sidecar_name_one_socket() -> None:
    served = {value for invocation in _sidecar_invocations() if (value := invocation.value("--uds"))}
    asked = {value for invocation in _sidecar_invocations() if (value := invocation.value("--server"))}
    backend = document("sidecar/compose.yaml")["services"]["backend"]["environment"]["MUSTER_SERVER"]
    container = document("sidecar/pod.yaml")["spec"]["containers"][1]["env"][0]["value"]

    assert len(served) == 1
    assert asked | {backend, container} == {f"unix://{path}" for path in served}


def test_the_pod_mounts_volumes_that_it_has() -> None:
    spec = document("sidecar/pod.yaml")["spec"]
    mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}

    assert mounted == {volume["name"] for volume in spec["volumes"]}
