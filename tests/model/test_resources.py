from fractions import Fraction

import pytest

from muster.model.node import Node
from muster.model.pod import Container, PodSpec, Resources
from muster.model.resources import node_allocatable, parse_quantity, pod_requests, to_base_units


def asking(restart_policy: str = "", **requests: str) -> Container:
    return Container(resources=Resources(requests=requests), restart_policy=restart_policy)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("100m", Fraction(1, 10)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1e3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("12E", 12 * 10**18),
        ("16Gi", 16 * 2**30),
        ("1.5Ki", 1536),
        ("1k", 1000),
        ("+7", 7),
        ("-3", -3),
        ("250n", Fraction(1, 4 * 10**6)),
    ],
)
def test_a_quantity_has_its_exact_value(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1 ", "1K", "1ki", "1e", "1e99", "--1", "1.2.3", ".", "0x1", "1mi", "9" * 200, "\u0661"]
)
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|exponent"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "1u", 1),
        ("cpu", "0.1001", 101),
        ("memory", "100m", 1),
        ("memory", "1.5", 2),
        ("memory", "8Ei", None),
        ("memory", "9223372036854775807", 2**63 - 1),
        ("cpu", "9223372036854775807", None),
        ("nvidia.com/gpu", "2", 2),
        ("nvidia.com/gpu", "2e0", 2),
        ("nvidia.com/gpu", "0.5", None),
        ("pods", "1500m", None),
        ("memory", "-1", None),
        ("hugepages-2Mi", "0.5", 1),
    ],
)
def test_base_units_round_up_and_refuse_what_cannot_be(resource: str, text: str, amount: int | None) -> None:
    if amount is None:
        with pytest.raises(ValueError, match="must"):
            to_base_units(resource, text)
    else:
        assert to_base_units(resource, text) == amount


def test_a_pod_asks_for_the_sum_of_its_containers_and_one_slot() -> None:
    spec = PodSpec(containers=(asking(cpu="1", memory="1Gi"), asking(cpu="500m")))

    assert pod_requests(spec) == {"cpu": 1500, "memory": 2**30, "pods": 1}


def test_a_limit_without_a_request_asks_for_the_limit() -> None:
    resources = Resources(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "5"})

    assert pod_requests(PodSpec(containers=(Container(resources=resources),))) == {
        "cpu": 1000,
        "memory": 5,
        "pods": 1,
    }


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ((asking(cpu="5"),), 5000),
        ((asking(cpu="1"),), 2000),
        ((asking("Always", cpu="1"),), 3000),
        ((asking("Always", cpu="1"), asking(cpu="4")), 5000),
        ((asking(cpu="4"), asking("Always", cpu="1")), 4000),
    ],
    ids=["larger-init", "smaller-init", "sidecar", "init-beside-sidecar", "init-before-sidecar"],
)
def test_init_containers_and_sidecars_count_as_in_kubernetes(init: tuple[Container, ...], cpu: int) -> None:
    spec = PodSpec(containers=(asking(cpu="2"),), init_containers=init)

    assert pod_requests(spec)["cpu"] == cpu


def test_overhead_is_added_to_requests_for_the_pod_as_a_whole() -> None:
    whole = Resources(requests={"cpu": "3"}, limits={"cpu": "4", "memory": "9"})
    spec = PodSpec(containers=(asking(cpu="1"),), resources=whole, overhead={"cpu": "250m"})

    assert pod_requests(spec) == {"cpu": 3250, "memory": 9, "pods": 1}


def test_a_sum_above_the_limit_is_refused() -> None:
    spec = PodSpec(containers=(asking(memory="9223372036854775807"), asking(memory="1")))

    with pytest.raises(ValueError, match="memory"):
        pod_requests(spec)


def test_a_node_offers_its_capacity_when_no_allocatable_amounts_are_given() -> None:
    assert node_allocatable(Node(name="n", capacity={"cpu": "4"})) == {"cpu": 4000}
    assert node_allocatable(Node(name="n", capacity={"cpu": "4"}, allocatable={"cpu": "3"})) == {"cpu": 3000}
