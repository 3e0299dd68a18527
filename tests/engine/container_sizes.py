"""How much every container holds that can be reached from an object, by the way of names that leads to it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

CONTAINERS = (dict, list, set, frozenset, tuple, deque)
RECORDS = ("muster.model", "muster.engine.ports", "muster.core.decision", "muster.telemetry.facts")
"""Modules of values, which hold what they are about and do not grow."""


def sizes(start: object) -> Counter[str]:
    """Lengths of the containers below, those at the same place added up: `queue.rows`, `services[].cluster.waits._waits`."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    unread: list[tuple[str, object]] = [("", start)]
    while unread:
        path, item = unread.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            found[path] += item.size
        elif isinstance(item, CONTAINERS):
            found[path] += len(item)
            values = item.values() if isinstance(item, Mapping) else item
            unread += ((f"{path}[]", each) for each in values if _is_walked(each))
        else:
            unread += (
                (f"{path}.{name}".lstrip("."), each) for name, each in _fields(item) if _is_walked(each)
            )
    return found


def _is_walked(item: object) -> bool:
    module = type(item).__module__
    if isinstance(item, (*CONTAINERS, np.ndarray)):
        return True
    return module.startswith("muster.") and not module.startswith(RECORDS)


def _fields(item: object) -> Iterable[tuple[str, Any]]:
    names = dict.fromkeys(getattr(item, "__dict__", ()))
    for kind in type(item).__mro__:
        slots = getattr(kind, "__slots__", ())
        names |= dict.fromkeys([slots] if isinstance(slots, str) else slots)
    return [(name, getattr(item, name)) for name in names if hasattr(item, name)]
