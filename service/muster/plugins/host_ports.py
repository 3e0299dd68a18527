"""Filter: a node's port can be held by one pod at a time (Kubernetes' NodePorts).

Ports conflict if protocol and number are equal and the addresses are, or one of them is all addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from muster.core.arrays import BoolArray
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.model.pod import ContainerPort

Port = tuple[str, int, str]
"""Protocol, number, address."""

_NO_PORTS: frozenset[Port] = frozenset()
_ALL_ADDRESSES = frozenset({"", "0.0.0.0"})  # noqa: S104 - compared with, not listened on.


@dataclass(frozen=True)
class PortsConflicting:
    """Selects pods that hold one of these ports on their node."""

    ports: frozenset[Port]
    skips_leaving = False

    def selects(self, signature: Signature) -> bool:
        return any(_conflict(ours, theirs) for ours in self.ports for theirs in ports_of(signature))


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


def _conflict(ours: Port, theirs: Port) -> bool:
    if ours[:2] != theirs[:2]:
        return False
    return ours[2] == theirs[2] or ours[2] in _ALL_ADDRESSES or theirs[2] in _ALL_ADDRESSES
