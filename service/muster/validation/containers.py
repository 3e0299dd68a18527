"""Rules of what a pod asks for: containers, their resources and ports, overhead, amounts for the pod as a whole.

A container's name may be left out and a pod may have no containers, since nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from muster.model.names import dns_label_fault, port_name_fault
from muster.model.pod import Container, ContainerPort, PodSpec, Resources
from muster.model.resources import CPU, MEMORY, pod_requests, to_base_units
from muster.validation.fields import (
    Faults,
    choice_faults,
    count_faults,
    has_amounts,
    optional_choice_faults,
    optional_name_faults,
    quantity_faults,
    range_faults,
    resource_count_faults,
)
from muster.validation.violations import DUPLICATE, INVALID, NOT_SUPPORTED, Violation

PROTOCOLS = frozenset({"TCP", "UDP", "SCTP"})
RESTART_POLICIES = frozenset({"Always", "OnFailure", "Never"})
LAST_PORT = 65535
MOST_CONTAINERS = 256
MOST_PORTS = 1_024


class _Placed(NamedTuple):
    path: str
    container: Container


def container_faults(spec: PodSpec) -> Faults:
    """All faults of a pod's containers and amounts."""
    regular = [_Placed(f"spec.containers[{i}]", each) for i, each in enumerate(spec.containers)]
    initial = [_Placed(f"spec.initContainers[{i}]", each) for i, each in enumerate(spec.init_containers)]
    yield from _count_faults(spec, initial + regular)
    for placed in initial + regular:
        yield from _single_container_faults(placed)
    yield from _unique_name_faults(initial + regular)
    yield from _host_port_faults(regular, is_on_host_network=spec.host_network)
    yield from quantity_faults("spec.overhead", spec.overhead)
    if spec.resources is not None:
        yield from _resource_faults("spec.resources", spec.resources)
        yield from _pod_level_name_faults(spec.resources)
    if _can_be_summed(spec):
        yield from _sum_faults(spec)


def _count_faults(spec: PodSpec, containers: Sequence[_Placed]) -> Faults:
    ports = sum(len(container.ports) for _, container in containers)
    amounts = [spec.overhead]
    for resources in [*(container.resources for _, container in containers), spec.resources or Resources()]:
        amounts += [resources.requests, resources.limits]
    where = "spec.containers"
    yield from count_faults(where, len(containers), MOST_CONTAINERS, "containers and initContainers")
    yield from count_faults(where, ports, MOST_PORTS, "ports")
    yield from resource_count_faults(where, *amounts)


def _single_container_faults(placed: _Placed) -> Faults:
    path, container = placed
    yield from optional_name_faults(f"{path}.name", container.name, dns_label_fault)
    yield from _resource_faults(f"{path}.resources", container.resources)
    yield from optional_choice_faults(f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES)
    for index, port in enumerate(container.ports):
        yield from _port_faults(f"{path}.ports[{index}]", port)


def _resource_faults(path: str, resources: Resources) -> Faults:
    yield from quantity_faults(f"{path}.requests", resources.requests)
    yield from quantity_faults(f"{path}.limits", resources.limits)
    for resource in resources.requests.keys() & resources.limits.keys():
        request = {resource: resources.requests[resource]}
        limit = {resource: resources.limits[resource]}
        if not (has_amounts(request) and has_amounts(limit)):
            continue
        if to_base_units(resource, request[resource]) > to_base_units(resource, limit[resource]):
            yield Violation(
                f"{path}.requests[{resource}]", INVALID, f"must not exceed the limit of {limit[resource]}"
            )


def _port_faults(path: str, port: ContainerPort) -> Faults:
    yield from optional_name_faults(f"{path}.name", port.name, port_name_fault)
    yield from range_faults(f"{path}.containerPort", port.container_port, 1, LAST_PORT)
    yield from range_faults(f"{path}.hostPort", port.host_port, 0, LAST_PORT)
    yield from choice_faults(f"{path}.protocol", port.protocol, PROTOCOLS)


def _unique_name_faults(containers: Iterable[_Placed]) -> Faults:
    seen: set[str] = set()
    for path, container in containers:
        if container.name in seen:
            yield Violation(
                f"{path}.name", DUPLICATE, f"must be unique in the pod, {container.name!r} is not"
            )
        if container.name:
            seen.add(container.name)


def _host_port_faults(containers: Iterable[_Placed], *, is_on_host_network: bool) -> Faults:
    seen: set[tuple[str, str, int]] = set()
    for path, container in containers:
        for index, port in enumerate(container.ports):
            place = f"{path}.ports[{index}].hostPort"
            if port.host_port and is_on_host_network and port.host_port != port.container_port:
                yield Violation(place, INVALID, "must equal containerPort on the host network")
            key = (port.protocol, port.host_ip, port.host_port)
            if key in seen:
                yield Violation(place, DUPLICATE, f"must be unique in the pod, {port.host_port} is not")
            if port.host_port:
                seen.add(key)


def _pod_level_name_faults(resources: Resources) -> Faults:
    for field, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for resource in amounts:
            if resource not in (CPU, MEMORY) and not resource.startswith("hugepages-"):
                yield Violation(
                    f"spec.resources.{field}[{resource}]",
                    NOT_SUPPORTED,
                    "must be cpu, memory or huge pages: other resources are asked for by containers",
                )


def _can_be_summed(spec: PodSpec) -> bool:
    parts = [spec.overhead]
    holders = [container.resources for container in spec.containers + spec.init_containers]
    for resources in [*holders, spec.resources or Resources()]:
        parts += [resources.requests, resources.limits]
    return all(map(has_amounts, parts))


def _sum_faults(spec: PodSpec) -> Faults:
    """Amounts that are right one by one and wrong together."""
    try:
        of_containers = pod_requests(replace(spec, resources=None, overhead={})) if spec.resources else {}
        pod_requests(spec)
    except ValueError as error:
        yield Violation("spec.containers", INVALID, str(error))
        return
    for resource, text in spec.resources.requests.items() if spec.resources else ():
        if to_base_units(resource, text) < of_containers.get(resource, 0):
            yield Violation(
                f"spec.resources.requests[{resource}]",
                INVALID,
                "must not be below what the containers ask for",
            )
