"""The two listeners of a service, for the engine and for the RPC layer, over one set of metrics and one tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from muster.model.meta import ObjectKey
from muster.telemetry.cycle_spans import CycleTrace
from muster.telemetry.facts import CommitFacts, CycleFacts, QueueDepth
from muster.telemetry.metrics import Metrics
from muster.telemetry.tracing import Tracing


class EngineListener:
    """Implements `engine.telemetry_port.EngineTelemetry`."""

    def __init__(self, metrics: Metrics, tracing: Tracing) -> None:
        self._metrics = metrics
        self._tracing = tracing

    def caller(self) -> str:
        return self._tracing.caller()

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> CycleTrace:
        return self._tracing.cycle_started(cluster, unit, caller)

    def cycle_ended(
        self, cycle: CycleTrace, facts: CycleFacts, events: Sequence[Sequence[object]] | None = None
    ) -> None:
        self._metrics.cycle_ended(facts)
        self._tracing.cycle_ended(cycle, facts, events)

    def cycle_dropped(
        self, cycle: CycleTrace, facts: CycleFacts, events: Sequence[Sequence[object]] | None = None
    ) -> None:
        """Its spans end; metrics count attempts that were carried out."""
        self._tracing.cycle_ended(cycle, facts, events)

    def preempted(self, victims: int, budget_violations: int) -> None:
        self._metrics.preempted(victims, budget_violations)

    def committed(self, commit: CommitFacts) -> None:
        self._metrics.committed(commit)

    def queue_moved(self, state: str, event: str, units: int) -> None:
        self._metrics.queue_moved(state, event, units)

    def queue_depth(self, cluster: str, depths: Iterable[QueueDepth]) -> None:
        self._metrics.queue_depth(cluster, depths)

    def cache_size(self, cluster: str, revision: int, objects: dict[str, int]) -> None:
        self._metrics.cache_size(cluster, revision, objects)

    def worker_restarted(self) -> None:
        self._metrics.worker_restarted()


class RpcListener:
    """Implements `rpc.telemetry_port.RpcTelemetry`."""

    def __init__(self, metrics: Metrics, tracing: Tracing) -> None:
        self._tracing = tracing
        self.rpc_started = metrics.rpc_started
        self.rpc_ended = metrics.rpc_ended
        self.refused = metrics.refused
        self.watch_opened = metrics.watch_opened
        self.watch_closed = metrics.watch_closed
        self.receiver_restarted = metrics.receiver_restarted

    def caller_trace(
        self, metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    ) -> AbstractContextManager[None]:
        return self._tracing.caller_trace(metadata)
