"""Kubernetes quantities as exact integers, what a pod asks for and what a node offers.

Text becomes a fraction, then base units: milli for cpu, 1 for all else, rounded up. Whether amounts may be
refused is for validation to say; it calls the same functions and turns their ValueError into a violation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from muster.model.node import Node
from muster.model.pod import PodSpec, Resources

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
MAX_AMOUNT = 2**63 - 1

_DIVISIBLE = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, "storage"})
_HUGE_PAGES = "hugepages-"
_LONGEST_TEXT = 128
_LARGEST_EXPONENT = 64
_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_SCALES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)} | {
    prefix: Fraction(10 ** (3 * power)) for power, prefix in enumerate("kMGTPE", 1)
}
_SCALES |= {f"{prefix}i": Fraction(1024**power) for power, prefix in enumerate("KMGTPE", 1)}

Amounts = dict[str, int]


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as "100m", "0.5", "1e3", "-1" or "16Gi". Raises ValueError."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise ValueError("must be a quantity such as 500m, 1.5 or 16Gi")
    sign, digits, _, exponent, suffix = match.groups()
    value = Fraction(f"0{digits}" if digits.startswith(".") else digits.rstrip("."))
    value *= _power_of_ten(exponent) if exponent is not None else _SCALES[suffix or ""]
    return -value if sign == "-" else value


def _power_of_ten(exponent: str) -> Fraction:
    power = int(exponent)
    if abs(power) > _LARGEST_EXPONENT:
        raise ValueError(f"exponent must be between -{_LARGEST_EXPONENT} and {_LARGEST_EXPONENT}")
    return Fraction(10) ** power


@lru_cache(maxsize=16384)
def to_base_units(resource: str, text: str) -> int:
    """The quantity in the resource's base unit, rounded up.

    Raises ValueError with the reason if it is malformed, negative, above 2^63-1, or a fraction of what
    cannot be divided.
    """
    value = parse_quantity(text)
    if value < 0:
        raise ValueError("must not be negative")
    if value.denominator != 1 and not is_divisible(resource):
        raise ValueError("must be a whole number")
    if resource == CPU:
        value *= 1000
    amount = -(-value.numerator // value.denominator)
    if amount > MAX_AMOUNT:
        raise ValueError("must not exceed 2^63-1 in the resource's base unit")
    return amount


def quantity_text(resource: str, amount: int) -> str:
    """An amount in base units as a quantity: 1500 of cpu is "1500m", 2000 is "2"."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    return str(amount)


def is_divisible(resource: str) -> bool:
    """Whether a fraction of one unit may be asked for; extended resources and pod slots come whole."""
    return resource in _DIVISIBLE or resource.startswith(_HUGE_PAGES)


def amounts_of(quantities: dict[str, str]) -> Amounts:
    """Each quantity in base units. Raises ValueError."""
    return {resource: to_base_units(resource, text) for resource, text in quantities.items()}


def node_allocatable(node: Node) -> Amounts:
    """What the node offers, in base units; `capacity` where no allocatable amounts are given. Raises ValueError."""
    return amounts_of(node.allocatable or node.capacity)


class _RequestsBySpec:
    """Requests of specs seen lately, by the identity of the spec, which it keeps alive so that no id is reused."""

    _MOST = 4096

    def __init__(self) -> None:
        self._known: dict[int, tuple[PodSpec, Amounts]] = {}

    def of(self, spec: PodSpec) -> Amounts:
        known = self._known.get(id(spec))
        if known is not None:
            return known[1]
        requests = _compute_requests(spec)
        if len(self._known) >= self._MOST:
            self._known.clear()
        self._known[id(spec)] = (spec, requests)
        return requests


_requests_by_spec = _RequestsBySpec()


def pod_requests(spec: PodSpec) -> Amounts:
    """What one pod takes of a node in base units, `pods: 1` included; not to be mutated.

    The containers' sum, at least what the init containers need while sidecars run beside them, replaced by
    amounts given for the pod as a whole, plus overhead: as Kubernetes counts. Raises ValueError if a quantity is wrong or the
    sum exceeds 2^63-1.
    """
    return _requests_by_spec.of(spec)


def _compute_requests(spec: PodSpec) -> Amounts:
    total = _container_requests(spec)
    total |= _pod_level_requests(spec.resources, total)
    _add(total, amounts_of(spec.overhead))
    total[PODS] = 1
    for resource, amount in total.items():
        if amount > MAX_AMOUNT:
            raise ValueError(f"the pod's {resource} must not exceed 2^63-1 in the resource's base unit")
    return total


def _container_requests(spec: PodSpec) -> Amounts:
    """Sidecars run from their place among the init containers to the end, beside all that start later."""
    total = _sum(asked_by(container.resources) for container in spec.containers)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        asked = asked_by(container.resources)
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            asked = _sum((asked, sidecars))
        _raise_to(peak, asked)
    _raise_to(total, peak)
    return total


def _pod_level_requests(resources: Resources | None, of_containers: Amounts) -> Amounts:
    """Requests for the pod as a whole win; a limit alone is the request of what no container asks for."""
    if resources is None:
        return {}
    limits = amounts_of(resources.limits)
    unasked = {resource: amount for resource, amount in limits.items() if resource not in of_containers}
    return unasked | amounts_of(resources.requests)


def asked_by(resources: Resources) -> Amounts:
    """A container's requests; a limit without a request asks for the limit. Raises ValueError."""
    return amounts_of(resources.limits) | amounts_of(resources.requests)


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: Amounts, part: Amounts) -> None:
    for resource, amount in part.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for resource, amount in least.items():
        total[resource] = max(total.get(resource, 0), amount)
