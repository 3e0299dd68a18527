"""Amounts in base units as quantities for people, exact: 1500m, 2, 64Gi."""

from __future__ import annotations

from muster.model.resources import CPU, MEMORY

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_MILLI = 1000


def quantity(resource: str, amount: int) -> str:
    """The amount as a quantity that reads back as the same number."""
    if resource == CPU:
        return str(amount // _MILLI) if amount % _MILLI == 0 else f"{amount}m"
    if amount and (resource == MEMORY or resource.endswith("storage") or resource.startswith("hugepages-")):
        for suffix, factor in _BINARY:
            if amount % factor == 0:
                return f"{amount // factor}{suffix}"
    return str(amount)
