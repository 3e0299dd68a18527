from dataclasses import replace

import pytest

from muster.model.pod import Container, ContainerPort, Pod, Resources
from tests.validation.examples import faults, with_spec

PORT = ContainerPort("http", 8080, 80, "TCP")
HALF = str(2**62)


def _containers(*containers: Container) -> Pod:
    return with_spec(containers=containers)


def _asking(requests: dict[str, str], limits: dict[str, str] | None = None) -> Container:
    return Container("", Resources(requests, limits or {}))


def _ports(*ports: ContainerPort, host_network: bool = False) -> Pod:
    return with_spec(containers=(Container("main", ports=ports),), host_network=host_network)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(
            _containers(Container("A")), ("spec.containers[0].name", "INVALID"), id="container's name"
        ),
        pytest.param(
            with_spec(init_containers=(Container("A"),)),
            ("spec.initContainers[0].name", "INVALID"),
            id="init container's name",
        ),
        pytest.param(
            _containers(Container("a"), Container("a")),
            ("spec.containers[1].name", "DUPLICATE"),
            id="name twice",
        ),
        pytest.param(
            with_spec(init_containers=(Container("main"),)),
            ("spec.containers[0].name", "DUPLICATE"),
            id="name of an init container",
        ),
        pytest.param(
            _containers(_asking({"cpu": "x"})),
            ("spec.containers[0].resources.requests[cpu]", "INVALID"),
            id="malformed request",
        ),
        pytest.param(
            _containers(_asking({"cpu": "-1"})),
            ("spec.containers[0].resources.requests[cpu]", "INVALID"),
            id="negative request",
        ),
        pytest.param(
            _containers(_asking({}, {"memory": "x"})),
            ("spec.containers[0].resources.limits[memory]", "INVALID"),
            id="malformed limit",
        ),
        pytest.param(
            _containers(_asking({"a b": "1"})),
            ("spec.containers[0].resources.requests[a b]", "INVALID"),
            id="resource's name",
        ),
        pytest.param(
            _containers(_asking({"cpu": "2"}, {"cpu": "1999m"})),
            ("spec.containers[0].resources.requests[cpu]", "INVALID"),
            id="request over limit",
        ),
        pytest.param(
            _containers(_asking({"memory": HALF}), _asking({"memory": HALF})),
            ("spec.containers", "INVALID"),
            id="sum over 2^63-1",
        ),
        pytest.param(
            with_spec(overhead={"cpu": "x"}), ("spec.overhead[cpu]", "INVALID"), id="malformed overhead"
        ),
        pytest.param(
            with_spec(resources=Resources({"cpu": "x"})),
            ("spec.resources.requests[cpu]", "INVALID"),
            id="malformed amount of the pod",
        ),
        pytest.param(
            with_spec(resources=Resources({"example.com/gpu": "1"})),
            ("spec.resources.requests[example.com/gpu]", "NOT_SUPPORTED"),
            id="extended resource of the pod",
        ),
        pytest.param(
            with_spec(resources=Resources({"cpu": "999m"})),
            ("spec.resources.requests[cpu]", "INVALID"),
            id="less for the pod than for its containers",
        ),
        pytest.param(
            _containers(Container("a", restart_policy="Sometimes")),
            ("spec.containers[0].restartPolicy", "NOT_SUPPORTED"),
            id="restart policy",
        ),
        pytest.param(
            _ports(replace(PORT, name="HTTP")),
            ("spec.containers[0].ports[0].name", "INVALID"),
            id="port name",
        ),
        pytest.param(
            _ports(replace(PORT, container_port=0)),
            ("spec.containers[0].ports[0].containerPort", "INVALID"),
            id="no container port",
        ),
        pytest.param(
            _ports(replace(PORT, host_port=65536)),
            ("spec.containers[0].ports[0].hostPort", "INVALID"),
            id="host port",
        ),
        pytest.param(
            _ports(replace(PORT, protocol="ICMP")),
            ("spec.containers[0].ports[0].protocol", "NOT_SUPPORTED"),
            id="protocol",
        ),
        pytest.param(
            _ports(PORT, replace(PORT, container_port=81)),
            ("spec.containers[0].ports[1].hostPort", "DUPLICATE"),
            id="host port twice",
        ),
        pytest.param(
            _ports(PORT, host_network=True),
            ("spec.containers[0].ports[0].hostPort", "INVALID"),
            id="another port on the host network",
        ),
    ],
)
def test_a_wrong_container_is_refused_at_its_field(wrong: Pod, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(_containers(), id="no containers"),
        pytest.param(_containers(Container(), Container()), id="containers without names"),
        pytest.param(_containers(_asking({"cpu": "1"}, {"cpu": "1000m"})), id="request equals limit"),
        pytest.param(_containers(_asking({"cpu": "0"})), id="nothing asked for"),
        pytest.param(with_spec(init_containers=(Container("i", restart_policy="Always"),)), id="sidecar"),
        pytest.param(_ports(PORT, replace(PORT, protocol="UDP")), id="one port, two protocols"),
        pytest.param(_ports(PORT, replace(PORT, host_ip="10.0.0.1")), id="one port, two addresses"),
        pytest.param(_ports(replace(PORT, host_port=0), replace(PORT, host_port=0)), id="no host ports"),
        pytest.param(
            _ports(replace(PORT, host_port=80), host_network=True), id="same port on the host network"
        ),
        pytest.param(
            with_spec(resources=Resources({"cpu": "1"}, {"memory": "2Gi"})), id="amounts of the pod"
        ),
    ],
)
def test_other_containers_are_right(right: Pod) -> None:
    assert faults(right) == []


def test_a_malformed_amount_is_not_summed() -> None:
    wrong = _containers(_asking({"memory": HALF}), _asking({"memory": HALF, "cpu": "x"}))

    assert faults(wrong) == [("spec.containers[1].resources.requests[cpu]", "INVALID")]
