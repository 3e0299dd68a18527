"""Which slots changed since a reader last looked, so that what was derived from them is renewed there only."""

from __future__ import annotations

_KEPT = 32768


class ChangeLog:
    """An endless list of slots of which the newest are kept. Assuming and reverting write to it like any change.

    position: where the next change will stand.
    """

    def __init__(self) -> None:
        self.position = 0
        self._slots: list[int] = []
        self._start = 0

    def add(self, slot: int) -> None:
        self._slots.append(slot)
        self.position += 1
        if len(self._slots) > 2 * _KEPT:
            self._forget()

    def extend(self, slots: list[int]) -> None:
        self._slots.extend(slots)
        self.position += len(slots)
        if len(self._slots) > 2 * _KEPT:
            self._forget()

    def add_all(self) -> None:
        """Most slots changed, so that looking at all of them costs no more than telling which."""
        self.position += 1
        self._start = self.position
        self._slots.clear()

    def since(self, position: int) -> list[int] | None:
        """The slots that changed from `position` on, each once, ascending; None if it is not known, or most of all."""
        if position < self._start:
            return None
        return sorted(set(self._slots[position - self._start :]))

    def _forget(self) -> None:
        surplus = len(self._slots) - _KEPT
        del self._slots[:surplus]
        self._start += surplus
