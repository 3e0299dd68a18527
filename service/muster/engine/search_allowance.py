"""How much of its search budget a unit may spend after searches that found nothing (semantics 5.5).

The next one gets a quarter, the one after that a sixteenth, then there is none, until a domain that the unit may use
has more room than when the last one failed, or the unit's pods or minimums change. This is kept in memory alone: after
a restart, and for all but the units that failed last, a unit may spend its whole budget once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from muster.core.decision import Decision, SearchEnd
from muster.core.framework import Profile
from muster.core.pod_placement import placer_of
from muster.core.room_growth import Room, room_of
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.model.meta import ObjectKey

_SHARES = (Fraction(1, 4), Fraction(1, 16), Fraction(0))
_MOST_UNITS = 1_024


@dataclass(frozen=True, slots=True)
class _Failed:
    """Searches in a row that found nothing, and the room when the last one did."""

    times: int
    room: Room


class SearchAllowance:
    """What is known of each unit whose last search found nothing."""

    def __init__(self) -> None:
        self._failed: dict[ObjectKey, _Failed] = {}

    def has_failed(self, unit: ObjectKey) -> bool:
        """Whether the last search for the unit found nothing."""
        return unit in self._failed

    def allowed(self, unit: Unit, snapshot: Snapshot, profile: Profile) -> Unit:
        """The unit with the share of the budget that its next search may spend."""
        failed = self._failed.get(unit.key)
        if failed is None:
            return unit
        if room_of(snapshot, unit, placer_of(snapshot, profile)).has_grown_since(failed.room):
            return unit
        return replace(unit, search_budget_share=_SHARES[min(failed.times, len(_SHARES)) - 1])

    def found_nothing(self, unit: Unit, snapshot: Snapshot, profile: Profile) -> None:
        """A search for the unit, as it was allowed, ended without a placement on this snapshot."""
        before = self._failed.pop(unit.key, None)
        times = before.times if before is not None and unit.search_budget_share < 1 else 0
        room = room_of(snapshot, unit, placer_of(snapshot, profile))
        self._failed[unit.key] = _Failed(times + 1, room)
        if len(self._failed) > _MOST_UNITS:
            del self._failed[next(iter(self._failed))]

    def forget(self, unit: ObjectKey) -> None:
        """The unit was placed, changed or is gone: its next search may spend all."""
        self._failed.pop(unit, None)

    def forget_all(self) -> None:
        """What is known speaks of other shapes by now."""
        self._failed.clear()


def found_nothing(decision: Decision) -> bool:
    """Whether a search was made and ended without a placement."""
    return decision.search.steps > 0 and decision.search.end in (SearchEnd.EXHAUSTED, SearchEnd.BUDGET_SPENT)
