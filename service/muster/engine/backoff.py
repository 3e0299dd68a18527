"""When a unit that failed may be tried again: after a backoff that grows, without jitter, or by the safety net (semantics 4)."""

from __future__ import annotations

from muster.engine.ports import QueuedUnit, UnitState
from muster.model.meta import POD
from muster.model.variations import varied

SECOND_US = 1_000_000
POD_BACKOFF_CAP_SECONDS = 10
GROUP_BACKOFF_CAP_SECONDS = 60
SAFETY_NET_US = 300 * SECOND_US


def backoff_end_us(now_us: int, attempts: int, kind: str) -> int:
    """End of the backoff after the n-th failure in a row, rounded up to a full second so that equals return together."""
    cap = POD_BACKOFF_CAP_SECONDS if kind == POD else GROUP_BACKOFF_CAP_SECONDS
    seconds = min(1 << min(attempts - 1, 10), cap)
    return full_second(now_us + seconds * SECOND_US)


def no_later_than_now(row: QueuedUnit, now_us: int) -> QueuedUnit:
    """The row, its times cut down to what they would be after a failure of now: for a clock that was put back."""
    longest_us = backoff_end_us(now_us, max(row.attempts, 1), row.key.kind)
    if row.last_attempt_us <= now_us and row.not_before_us <= longest_us:
        return row
    return varied(
        row,
        not_before_us=min(row.not_before_us, longest_us),
        last_attempt_us=min(row.last_attempt_us, now_us),
    )


def full_second(at_us: int) -> int:
    """The time, rounded up."""
    return -(-at_us // SECOND_US) * SECOND_US


def timer_us(row: QueuedUnit) -> int:
    """When the row moves on by itself; 0: never."""
    if row.state in (UnitState.BACKOFF, UnitState.WAITING_FOR_PREEMPTION):
        return row.not_before_us
    if row.state is UnitState.UNSCHEDULABLE:
        return row.last_attempt_us + SAFETY_NET_US
    return 0


def is_overdue(row: QueuedUnit, now_us: int) -> bool:
    """Whether the safety net would have the unit decided, whatever it has waited for since its last cycle."""
    return row.last_attempt_us + SAFETY_NET_US <= now_us
