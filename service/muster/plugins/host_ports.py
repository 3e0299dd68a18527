"""Filter: a node's port can be held by one pod at a time (Kubernetes' NodePorts).

Ports conflict if protocol and number are equal and the addresses are, or one of them is all addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from muster.core.arrays import BoolArray
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.model.pod import ContainerPort

Port = tuple[str, int, str]
"""Protocol, number, address."""
Addresses = Mapping[tuple[str, int], set[str]]

_NO_PORTS: frozenset[Port] = frozenset()
_ALL_ADDRESSES = frozenset({"", "0.0.0.0"})  # noqa: S104 - compared with, not listened on.


@dataclass(frozen=True)
class PortsConflicting:
    """Selects pods that hold one of these ports on their node."""

    ports: frozenset[Port]
    skips_leaving = False

    def selects(self, signature: Signature) -> bool:
        theirs = ports_of(signature)
        return bool(theirs) and _are_in_conflict(_by_number(self.ports), _by_number(theirs))


@dataclass(frozen=True)
class HostPortsFilter:
    code = "HOST_PORTS"
    message = "node(s) didn't have free ports for the requested pod ports"
    reads_one_node = True

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        return bool(ports_of(signature))

    def mask(self, signature: Signature, snapshot: Snapshot) -> BoolArray:
        free: BoolArray = snapshot.count(PortsConflicting(ports_of(signature))).per_slot == 0
        return free

    def excludes_itself(self, signature: Signature) -> bool:
        return bool(ports_of(signature))


def ports_of(signature: Signature) -> frozenset[Port]:
    """The ports of the node that a pod holds; all its ports if it uses the node's network."""
    spec = signature.spec
    if any(container.ports for container in (*spec.containers, *spec.init_containers)):
        return _ports_of(signature)
    return _NO_PORTS


@lru_cache(maxsize=16384)
def _ports_of(signature: Signature) -> frozenset[Port]:
    spec = signature.spec
    containers = (
        *spec.containers,
        *(item for item in spec.init_containers if item.restart_policy == "Always"),
    )
    numbered = [
        (_number(port, host_network=spec.host_network), port) for item in containers for port in item.ports
    ]
    return frozenset((port.protocol or "TCP", number, port.host_ip) for number, port in numbered if number)


def _number(port: ContainerPort, *, host_network: bool) -> int:
    return port.host_port or (port.container_port if host_network else 0)


@lru_cache(maxsize=16384)
def _by_number(ports: frozenset[Port]) -> Addresses:
    """The addresses of each protocol and number."""
    found: dict[tuple[str, int], set[str]] = {}
    for protocol, number, address in ports:
        found.setdefault((protocol, number), set()).add(address)
    return found


def _are_in_conflict(ours: Addresses, theirs: Addresses) -> bool:
    return any(_overlap(ours[number], theirs[number]) for number in ours.keys() & theirs.keys())


def _overlap(ours: set[str], theirs: set[str]) -> bool:
    return not (ours.isdisjoint(theirs) and _ALL_ADDRESSES.isdisjoint(ours | theirs))
