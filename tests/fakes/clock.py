"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """Wall clock and monotonic clock in one: both move by `advance`, and by nothing else."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed_seconds = 0.0

    def now(self) -> datetime:
        """The wall clock's time, in UTC."""
        return self._start + timedelta(seconds=self._elapsed_seconds)

    def now_us(self) -> int:
        """The wall clock's time, in microseconds since 1970."""
        return (self.now() - EPOCH) // timedelta(microseconds=1)

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; only differences mean something."""
        return self._elapsed_seconds

    def advance(self, seconds: float) -> None:
        """Move both clocks forward. Raises ValueError for a step back, which no monotonic clock takes."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back, yet was moved by {seconds} s")
        self._elapsed_seconds += seconds
