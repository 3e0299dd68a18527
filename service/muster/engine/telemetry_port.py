"""What the engine tells about its work, without knowing who listens.

All methods are called on the event loop, must be quick and never raise. Values: `telemetry.facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muster.core.observer import NullObserver, Observer
from muster.model.meta import ObjectKey
from muster.telemetry.facts import CommitFacts, CycleFacts, QueueDepth


class StartedCycle(Protocol):
    """A cycle that telemetry knows of: `trace_id` goes into the decision record ("": not traced).

    `observer` is for a core that runs in this process. One in a worker process uses a `RecordingObserver` of its own
    if `is_recording` (else a `NullObserver`) and sends its events home.
    """

    @property
    def trace_id(self) -> str: ...

    @property
    def is_recording(self) -> bool: ...

    @property
    def observer(self) -> Observer: ...


class EngineTelemetry(Protocol):
    def caller(self) -> str:
        """The trace context (W3C traceparent) of the RPC that is being served, "" without one.

        To be kept with a unit that the RPC made active, and handed to the unit's next cycle.
        """
        ...

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> StartedCycle: ...

    def cycle_ended(
        self,
        cycle: Any,  # noqa: ANN401
        facts: CycleFacts,
        events: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """`cycle` is what `cycle_started` gave. `events` are a worker's; None: those of the cycle's own observer."""
        ...

    def cycle_dropped(
        self,
        cycle: Any,  # noqa: ANN401
        facts: CycleFacts,
        events: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """As `cycle_ended`, of a cycle whose decision nobody commits: a dry run, or one to be made anew."""
        ...

    def preempted(self, victims: int, budget_violations: int) -> None: ...

    def committed(self, commit: CommitFacts) -> None: ...

    def queue_moved(self, state: str, event: str, units: int) -> None:
        """Units came into a state of the queue because of an event (`PodAdd`, `NodeAdd`, `BackoffComplete`, ...)."""
        ...

    def queue_depth(self, cluster: str, depths: Iterable[QueueDepth]) -> None:
        """The whole queue of one cluster; none for a cluster that is gone. At most a few times a second."""
        ...

    def cache_size(self, cluster: str, revision: int, objects: dict[str, int]) -> None:
        """Objects by kind. At most a few times a second."""
        ...

    def worker_restarted(self) -> None: ...


@dataclass(frozen=True, slots=True)
class UntracedCycle:
    """A cycle that nobody records."""

    trace_id: str = ""
    is_recording: bool = False
    observer: Observer = NullObserver()  # noqa: RUF009


_UNTRACED = UntracedCycle()


class NullTelemetry:
    """Hears nothing."""

    def caller(self) -> str:
        """No trace context."""
        return ""

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> StartedCycle:
        """A cycle that is not traced."""
        return _UNTRACED

    def cycle_ended(
        self,
        cycle: Any,  # noqa: ANN401
        facts: CycleFacts,
        events: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """Ignore the cycle."""

    def cycle_dropped(
        self,
        cycle: Any,  # noqa: ANN401
        facts: CycleFacts,
        events: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """Ignore the cycle that was dropped."""

    def preempted(self, victims: int, budget_violations: int) -> None:
        """Ignore the preemption."""

    def committed(self, commit: CommitFacts) -> None:
        """Ignore the commit."""

    def queue_moved(self, state: str, event: str, units: int) -> None:
        """Ignore the move."""

    def queue_depth(self, cluster: str, depths: Iterable[QueueDepth]) -> None:
        """Ignore the depth."""

    def cache_size(self, cluster: str, revision: int, objects: dict[str, int]) -> None:
        """Ignore the size."""

    def worker_restarted(self) -> None:
        """Ignore the restart."""
