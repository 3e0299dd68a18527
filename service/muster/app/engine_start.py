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
    _VARIANTS = "89ab"
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
        raw = os.urandom(self._UUID_BYTES * self._AT_ONCE)
        digits, variants = raw.hex(), self._VARIANTS
        return [
            f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
            f"-{variants[raw[at // 2 + 8] >> 4 & 3]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
            for at in range(0, len(digits), 2 * self._UUID_BYTES)
        ]


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
