"""Where a unit could start soonest, if those who run go one after the other as is expected of them (semantics 7).

What is found is kept free of others as nominated pods are (`core.promises`). When the pods that run are expected to go
is for the engine to say. The minimum alone is placed, greedily; a unit that needs a search to fit gets no place.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.arrays import IntArray
from muster.core.bound_pods import grouped
from muster.core.decision import Assignments, Status
from muster.core.domains import CLUSTER
from muster.core.framework import Profile
from muster.core.lockstep import Lockstep
from muster.core.observer import NullObserver
from muster.core.pod_placement import placer_of
from muster.core.promises import keep_promises
from muster.core.recursion import Recursion
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.core.trial import Ledger


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Running pods in the order in which they are expected to go, in waves of those who go together.

    pods: [P] ordinals, none of them the unit's own. waves: [W] how many are gone after each wave, ascending to P.
    """

    pods: IntArray
    waves: IntArray


@dataclass(frozen=True, slots=True)
class SoonestPlace:
    """Where the pods of a unit's minimum fit once so many waves have gone; with none the unit fits now.

    domain_key, domain_value: what a constrained root chose, else "".
    """

    waves: int
    assignments: Assignments
    domain_key: str = ""
    domain_value: str = ""


def soonest_place(
    snapshot: Snapshot, unit: Unit, profile: Profile, departures: Departures
) -> SoonestPlace | None:
    """The place after the fewest waves; None if there is none though all have gone, or nothing is to be placed.

    Leaves the snapshot as it found it. More room is taken to make a place no worse; where it does, by terms on other
    pods, a later wave than the first is found, and its place holds all the same.
    """
    before = snapshot.mark()
    try:
        keep_promises(snapshot, unit.promised)
        low, high = 0, len(departures.waves)
        found = _place_after(snapshot, unit, profile, departures, high)
        while found is not None and low < high:
            middle = (low + high) // 2
            sooner = _place_after(snapshot, unit, profile, departures, middle)
            if sooner is None:
                low = middle + 1
            else:
                high, found = middle, sooner
        return found
    finally:
        snapshot.rollback(before)


def _place_after(
    snapshot: Snapshot, unit: Unit, profile: Profile, departures: Departures, waves: int
) -> SoonestPlace | None:
    mark = snapshot.mark()
    if waves:
        _depart(snapshot, departures.pods[: departures.waves[waves - 1]])
    placer = placer_of(snapshot, profile)
    ledger = Ledger(snapshot, placer)
    rehearsal = Lockstep(snapshot, unit, profile, placer)
    recursion = Recursion(snapshot, unit, profile, placer, ledger, NullObserver(), rehearsal)
    trial = recursion.minimum(unit.root, CLUSTER)
    assignments = ledger.assignments() if trial.status is Status.SUCCESS else Assignments()
    snapshot.rollback(mark)
    if not assignments.pods:
        return None
    domain = trial.domain or CLUSTER
    return SoonestPlace(waves, assignments, domain.key, domain.value)


def _depart(snapshot: Snapshot, pods: IntArray) -> None:
    """Take the pods as gone, those that are leaving among them; who is not bound is gone already."""
    signatures, slots, leaving = snapshot.pods.places(pods)
    for is_leaving in (False, True):
        chosen = (slots >= 0) & (leaving == is_leaving)
        for signature, at, numbers in grouped(signatures[chosen], slots[chosen]):
            if is_leaving:
                snapshot.depart(signature, at, numbers)
            else:
                snapshot.assume_many(signature, at, -numbers)
