"""Calls that wait to be told something about a unit: what it is decided, or that nothing is to come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from muster.engine.errors import Refusal
from muster.model.meta import ObjectKey

Told = TypeVar("Told")


class Askers(Generic[Told]):
    """By unit, whoever awaits `told`; all of a unit are told the same, once."""

    def __init__(self) -> None:
        self._waiting: dict[ObjectKey, list[asyncio.Future[Told | None]]] = {}

    def __contains__(self, unit: object) -> bool:
        return unit in self._waiting

    async def told(self, unit: ObjectKey) -> Told | None:
        """What the unit's askers are told next; None if they ask in vain. Raises the refusal that `fail` was called with."""
        asker: asyncio.Future[Told | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(unit, []).append(asker)
        try:
            return await asker
        finally:
            askers = self._waiting.get(unit, [])
            if asker in askers:
                askers.remove(asker)
                if not askers:
                    del self._waiting[unit]

    def tell(self, unit: ObjectKey, told: Told | None) -> None:
        """Tell all who ask about the unit."""
        for asker in self._waiting.pop(unit, ()):
            if not asker.done():
                asker.set_result(told)

    def tell_in_vain(self, is_over: Callable[[ObjectKey], bool]) -> None:
        """Tell None to whoever asks about a unit for which nothing is to come."""
        for unit in [unit for unit in self._waiting if is_over(unit)]:
            self.tell(unit, None)

    def fail(self, refusal: Refusal) -> None:
        """Refuse all of them."""
        waiting, self._waiting = self._waiting, {}
        for askers in waiting.values():
            for asker in askers:
                if not asker.done():
                    asker.set_exception(refusal)
