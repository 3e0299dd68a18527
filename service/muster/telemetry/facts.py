"""What is told about a cycle, a commit and the queue: values that the engine fills in and telemetry reads."""

from __future__ import annotations

from typing import NamedTuple

from muster.core.decision import Decision


class CycleFacts(NamedTuple):
    """One cycle that ended, with a commit or without (validate_only, a commit that failed).

    attempt_seconds: from snapshot to commit; algorithm_seconds: of the pure core alone. wait_seconds: how long the unit
    had been in the queue; commit_start_ns, commit_end_ns: monotonic clock, 0 without a commit.
    """

    decision: Decision
    decision_id: str = ""
    profile: str = ""
    attempt_seconds: float = 0.0
    algorithm_seconds: float = 0.0
    wait_seconds: float = 0.0
    commit_start_ns: int = 0
    commit_end_ns: int = 0


class CommitFacts(NamedTuple):
    """One transaction of the writer: how many callers' writes it held, and of how many rows."""

    writes: int
    rows: int
    seconds: float
    succeeded: bool = True


class QueueDepth(NamedTuple):
    """Units of one kind in one state of the queue, and their pending pods."""

    state: str
    kind: str
    units: int
    pods: int
