"""Makes the engine from settings: the store that a URL names, the profiles, the machine's clock and random ids."""

from __future__ import annotations

import logging
import os
import time

from muster.app.settings import Settings
from muster.core.framework import Profile
from muster.engine import explaining
from muster.engine.api import SchedulingEngine
from muster.engine.engine import Engine
from muster.engine.registry import EngineOptions
from muster.engine.telemetry_port import EngineTelemetry
from muster.plugins.profile import default_profile, make_profile
from muster.rpc.codec import simulation
from muster.store.store import SqlStore

_LOG = logging.getLogger(__name__)


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        """Wall time in microseconds since the epoch."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


class RandomIds:
    """Uids as Kubernetes makes them: random UUIDs of version 4 (RFC 9562, 5.4).

    Randomness is fetched for many at once, since a system call each would cost more than all else, and written out
    here, since uuid.UUID takes four times as long.
    """

    _UUID_BYTES = 16
    _FORM = b"........-....-4...-8...-............"
    _PLACES = tuple(place for place, sign in enumerate(_FORM) if sign != ord("-"))
    _AS_VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab89ab89ab89ab")
    _AT_ONCE = 256

    def __init__(self) -> None:
        self._ready: list[str] = []

    def uid(self) -> str:
        """A random UUID (version 4)."""
        if not self._ready:
            self._ready = self._made()
        return self._ready.pop()

    def uids(self, count: int) -> list[str]:
        """That many random UUIDs (version 4)."""
        ready = self._ready
        while len(ready) < count:
            ready += self._made()
        taken = ready[len(ready) - count :]
        del ready[len(ready) - count :]
        return taken

    def _made(self) -> list[str]:
        """All of them in one text, digit by digit: the first of each, the second of each."""
        count, width = self._AT_ONCE, len(self._FORM)
        digits = os.urandom(self._UUID_BYTES * count).hex().encode()
        text = bytearray(self._FORM * count)
        for digit, place in enumerate(self._PLACES):
            text[place::width] = digits[digit :: len(self._PLACES)]
        text[self._FORM.index(b"4") :: width] = b"4" * count
        variant = self._FORM.index(b"8")
        text[variant::width] = text[variant::width].translate(self._AS_VARIANT)
        written = text.decode()
        return [written[at : at + width] for at in range(0, len(written), width)]


async def started_engine(settings: Settings, telemetry: EngineTelemetry) -> SchedulingEngine:
    """An engine that schedules already. Raises ForeignStoreError, StoreUnavailableError."""
    engine = Engine(
        store=SqlStore(settings.store),
        clock=SystemClock(),
        ids=RandomIds(),
        profiles=profiles_of(settings),
        telemetry=telemetry,
        options=EngineOptions(
            clients_evict=settings.eviction == "client",
            workers=settings.workers,
            log_seconds=settings.log_retention_seconds,
            log_revisions=settings.log_retention_revisions,
            decision_seconds=settings.decision_retention_seconds,
            most_decisions=settings.decision_retention_count,
            finished_seconds=settings.finished_retention_seconds,
            question_modules=(simulation.__name__, explaining.__name__),
        ),
    )
    await engine.start()
    return engine


def profiles_of(settings: Settings) -> dict[str, Profile]:
    """Profiles by name in the order of `profiles`, the first the default one; those that are not defined read as it does."""
    defined = {profile.name: profile for profile in map(make_profile, settings.profile_definitions)}
    base = default_profile()
    defined.setdefault(base.name, base)
    if not settings.profiles:
        return defined
    for name in settings.profiles:
        if name not in defined:
            _LOG.warning("profile %r has no definition, it decides as the default one does", name)
            defined[name] = make_profile({"name": name})
    return {name: defined[name] for name in settings.profiles}
