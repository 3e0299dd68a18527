"""Answers about values that many objects share by reference, computed once a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")
Answer = TypeVar("Answer")


class Seen(Generic[Value, Answer]):
    """A function's answers by the identity of its argument, which is kept alive so that no id is used again.

    Holds at most `most` answers; when it is full it starts anew.
    """

    def __init__(self, function: Callable[[Value], Answer], most: int = 4096) -> None:
        self._function = function
        self._most = most
        self._known: dict[int, tuple[Value, Answer]] = {}

    def of(self, value: Value) -> Answer:
        """The function's answer for this very object."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        answer = self._function(value)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(value)] = (value, answer)
        return answer
