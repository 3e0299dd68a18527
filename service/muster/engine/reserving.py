"""Who gets the reservation of a cluster, and where (semantics 7): worked out from the objects, the queue and the time.

Of the units that wait for room and have waited long enough, the one of the highest priority that waits longest; units
that would not fit though nobody else ran are passed over. Its place is the one that is free soonest: those who run go
when they declare to, those whom the unit may preempt at once, all others last, the youngest first, since what has run
for long is likely to stay. So a place never moves to a later time because of pods that came after it was found.

Worked out anew at most once a second, and so that it takes a small part of the time. The same state gives the same
reservation, in whatever process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import numpy as np

from muster.core.arrays import IntArray
from muster.core.framework import Profile
from muster.core.soonest_place import Departures, SoonestPlace
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import pods_of_unit
from muster.engine.ports import Clock, QueuedUnit
from muster.engine.queueing_hints import EventKind
from muster.engine.reservations import SECOND_US, Reservation, ReservedNodes, may_hold
from muster.engine.unit_faults import fault_of
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerFailedError, WorkerPool
from muster.model.meta import ObjectKey
from muster.model.pod import Pod
from muster.model.priority import PREEMPT_LOWER_PRIORITY
from muster.model.run_time import max_run_time_seconds

_LOG = logging.getLogger(__name__)
_MOST_TRIED = 4
"""So many units without a place are looked at in one go; the next ones get their turn a second later."""
_REST = 20
"""How many times as long as it took nothing is worked out anew."""
_AT_ONCE_US = 0
_NEVER_US = 2**62
_Attempt = tuple[int, int]
"""Of a unit that has no place: when it was tried last, and the version of the nodes."""


class Reserver:
    """Keeps the reservation of one cluster up to date; its cycles run while nothing of that is under way."""

    def __init__(
        self, cluster: Cluster, clock: Clock, profiles: Mapping[str, Profile], pool: WorkerPool
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._profiles = profiles
        self._pool = pool
        self._second = -1
        self._seen: tuple[int, list[ObjectKey]] = (-1, [])
        self._rests_until = 0.0
        self._placeless: dict[ObjectKey, _Attempt] = {}

    async def renew(self) -> None:
        """Bring the reservation up to the present state and time."""
        cluster, now_us = self._cluster, self._clock.now_us()
        cluster.reservations.now_us = now_us
        if now_us // SECOND_US == self._second:
            return
        self._second = now_us // SECOND_US
        if self._clock.monotonic() < self._rests_until:
            return
        candidates = list(self._candidates(now_us))
        if self._stands(candidates, now_us):
            return
        self._seen = (cluster.state.revision, candidates)
        begun = self._clock.monotonic()
        found = await self._found(candidates, now_us)
        now = self._clock.monotonic()
        self._rests_until = now + _REST * (now - begun)
        if found is None:
            self._put(None, now_us)
        elif may_hold(cluster.queue.rows.get(found.unit)):
            self._put(found, now_us)
            if found.fits_now:
                cluster.queue.activate(found.unit)

    def _candidates(self, now_us: int) -> Iterator[ObjectKey]:
        """Units that might get it, in order."""
        rows = [
            row for row in self._cluster.queue.rows.values() if may_hold(row) and self._is_due(row, now_us)
        ]
        rows.sort(key=lambda row: (-row.priority, row.since_us, row.key))
        return (row.key for row in rows)

    def _is_due(self, row: QueuedUnit, now_us: int) -> bool:
        """Whether the unit has waited long enough for the profile that is quickest; which one is its own is seen later."""
        waited_us = now_us - row.since_us
        return any(_is_over(profile, waited_us) for profile in self._profiles.values())

    def _stands(self, candidates: list[ObjectKey], now_us: int) -> bool:
        """Whether the reservation cannot have become another one since it was worked out."""
        held = self._cluster.reservations.current
        if held is None:
            return not candidates
        is_waiting = held.start_us is None or held.start_us > now_us
        return is_waiting and self._seen == (self._cluster.state.revision, candidates)

    async def _found(self, candidates: list[ObjectKey], now_us: int) -> Reservation | None:
        tried = 0
        for key in candidates:
            row = self._cluster.queue.rows.get(key)
            if row is None or tried == _MOST_TRIED or self._has_no_place(row):
                continue
            profile, unit = self._unit(key, now_us - row.since_us)
            if profile is None or unit is None:
                continue
            tried += 1
            try:
                found = await self._reservation_for(unit, profile)
            except WorkerFailedError as error:
                # A plugin or a worker failed, of which the unit's own cycles tell; what it has reserved is as good as before.
                _LOG.warning("no place was looked for, for %s in %s: %s", key, self._cluster.name, error)
                found = self._held_by(key)
            else:
                if found is None:
                    self._placeless[key] = self._attempt(row)
            if found is not None:
                return found
        self._forget_those_who_left()
        return None

    def _unit(self, key: ObjectKey, waited_us: int) -> tuple[Profile | None, Unit | None]:
        """The unit with its profile, if that lets it have the reservation."""
        cluster = self._cluster
        if cluster.state.get(key) is None or fault_of(cluster.state, cluster.layouts, key) is not None:
            return None, None
        unit = build_unit(cluster, key)
        profile = self._profile(unit)
        if not unit.root.admissible or profile is None or not _is_over(profile, waited_us):
            return None, None
        return profile, unit

    def _profile(self, unit: Unit) -> Profile | None:
        """The one that its pods name; all of them name the same."""
        signatures = self._cluster.feed.signatures
        for leaf in leaves(unit.root):
            for index in leaf.pods.signatures[:1]:
                name = signatures[index].spec.scheduler_name
                return self._profiles.get(name) or next(iter(self._profiles.values()))
        return None

    async def _reservation_for(self, unit: Unit, profile: Profile) -> Reservation | None:
        """None if the unit fits nowhere. Raises WorkerFailedError."""
        cluster = self._cluster
        departures, ends = departures_for(cluster, unit)
        place = await self._pool.soonest_place(cluster.name, cluster.feed, unit, profile, departures)
        return None if place is None else reservation_at(cluster, unit, place, ends)

    def _held_by(self, key: ObjectKey) -> Reservation | None:
        held = self._cluster.reservations.current
        return held if held is not None and held.unit == key else None

    def _has_no_place(self, row: QueuedUnit) -> bool:
        return self._placeless.get(row.key) == self._attempt(row)

    def _attempt(self, row: QueuedUnit) -> _Attempt:
        return row.last_attempt_us, self._cluster.feed.snapshot.nodes.version

    def _forget_those_who_left(self) -> None:
        rows = self._cluster.queue.rows
        self._placeless = {key: attempt for key, attempt in self._placeless.items() if key in rows}

    def _put(self, after: Reservation | None, now_us: int) -> None:
        held = self._cluster.reservations
        before, held.current = held.current, after
        if before is not None and before.frees_somebody(after):
            self._cluster.queue.happened((EventKind.NOMINATION_CLEARED,), now_us)


def reserves(profiles: Mapping[str, Profile]) -> bool:
    """Whether any of the profiles makes reservations."""
    return any(profile.reservation.after_seconds is not None for profile in profiles.values())


def departures_for(cluster: Cluster, unit: Unit) -> tuple[Departures, list[int | None]]:
    """When others than the unit's own pods are expected to go, and the time of each wave; None where nobody knows."""
    pods = [*cluster.disruption.running.values(), *cluster.disruption.leaving.values()]
    ordinals = np.fromiter((pod.ordinal for pod in pods), dtype=np.int64, count=len(pods))
    ends = np.array(_ends_us(cluster.disruption.starts(), pods), dtype=np.int64)
    ends[np.isin(ordinals, _preemptible(cluster, unit))] = _AT_ONCE_US
    others = ~np.isin(ordinals, [pod.ordinal for pod in pods_of_unit(cluster.state, unit.key)])
    ordinals, ends = ordinals[others], ends[others]
    order = np.lexsort((-ordinals, ends))
    ends = ends[order]
    is_last = (np.diff(ends, append=-1) != 0) | (ends == _NEVER_US)
    times: list[int | None] = [None if end_us == _NEVER_US else end_us for end_us in ends[is_last].tolist()]
    return Departures(ordinals[order], np.flatnonzero(is_last) + 1), times


def reservation_at(cluster: Cluster, unit: Unit, place: SoonestPlace, ends: list[int | None]) -> Reservation:
    """The reservation of a place that was found for the unit."""
    pods = {pod.ordinal: pod for pod in pods_of_unit(cluster.state, unit.key)}
    alike: dict[int, tuple[Pod, list[str]]] = {}
    assigned = place.assignments
    for ordinal, index in zip(assigned.pods, assigned.node_index, strict=True):
        pod = pods.get(ordinal)
        if pod is not None:
            _, names = alike.setdefault(cluster.feed.signature_of(pod), (pod, []))
            names.append(assigned.nodes[index])
    room = tuple(ReservedNodes(pod, tuple(sorted(names))) for pod, names in alike.values())
    return Reservation(
        unit=unit.key,
        priority=unit.priority,
        preempts=unit.preemption_policy == PREEMPT_LOWER_PRIORITY,
        room=room,
        start_us=ends[place.waves - 1] if place.waves else _AT_ONCE_US,
        fits_now=not place.waves,
        domain_key=place.domain_key,
        domain_value=place.domain_value,
    )


def _preemptible(cluster: Cluster, unit: Unit) -> IntArray:
    """Pods that the unit may preempt; those that did not leave for it before stay."""
    if unit.preemption_policy != PREEMPT_LOWER_PRIORITY:
        return np.zeros(0, dtype=np.int64)
    victims = cluster.disruption.below(unit.priority, cluster.budgets).ordinals
    return victims[~np.isin(victims, sorted(unit.earlier.stayed))]


def _ends_us(starts: Mapping[int, int], pods: list[Pod]) -> list[int]:
    """When each pod declares to be done, or its grace ends, whichever is sooner. Pods share annotations."""
    lengths: dict[int, int | None] = {}
    ends: list[int] = []
    for pod in pods:
        end_us = _NEVER_US
        if pod.annotations:
            shared = id(pod.annotations)
            if shared not in lengths:
                lengths[shared] = max_run_time_seconds(pod)
            seconds = lengths[shared]
            if seconds is not None:
                end_us = starts.get(pod.ordinal, pod.creation_us) + seconds * SECOND_US
        if pod.deletion_us:
            end_us = min(end_us, pod.deletion_us)
        ends.append(end_us)
    return ends


def _is_over(profile: Profile, waited_us: int) -> bool:
    after = profile.reservation.after_seconds
    return after is not None and waited_us >= after * SECOND_US
