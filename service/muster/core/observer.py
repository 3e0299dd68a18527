"""How the core tells what it does, without knowing who listens: nested sections with counters.

The telemetry adapter makes spans of it; the null observer costs one call a level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Observer(Protocol):
    """Sections nest like the recursion. `enter` returns nothing to hold; `leave` closes the innermost open section.

    kinds: "cycle", "group", "fill", "pods", "search", "preemption"; what a search found is told as groups inside it. A
    "fill" goes on in a group that has been left, by name: what is added to it is inside, and its attributes are those
    of the group by then. A group's attributes are kind, key, policy, m, s, r, u, uu, status, domain, tried, pruned,
    pods; its level is that of the nesting. `candidate` is called for a tried domain, only while `is_recording`.
    name: what the section is about, whose text is its name: most of the time nobody reads it.
    """

    @property
    def is_recording(self) -> bool: ...

    def enter(self, section: str, name: object) -> None: ...

    def leave(self, attributes: dict[str, str | int]) -> None: ...

    def candidate(self, attributes: dict[str, str | int]) -> None: ...


class NullObserver:
    """Hears nothing."""

    is_recording = False

    def enter(self, section: str, name: object) -> None:
        """Ignore the section."""

    def leave(self, attributes: dict[str, str | int]) -> None:
        """Ignore the counters."""

    def candidate(self, attributes: dict[str, str | int]) -> None:
        """Ignore the candidate."""


class RecordingObserver:
    """Keeps what it hears as tuples (event, monotonic_ns, ...), so that a worker process can send them home.

    The clock is handed in: the core itself has none.
    """

    is_recording = True

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._now = clock_ns
        self.events: list[tuple[object, ...]] = []

    def enter(self, section: str, name: object) -> None:
        self.events.append(("enter", self._now(), section, str(name)))

    def leave(self, attributes: dict[str, str | int]) -> None:
        self.events.append(("leave", self._now(), attributes))

    def candidate(self, attributes: dict[str, str | int]) -> None:
        self.events.append(("candidate", self._now(), attributes))
