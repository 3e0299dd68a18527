"""Places equal pods one after the other, as if each had been filtered, scored and assumed by itself (semantics 5.1).

Where every filter and score reads one node only, a batch is placed in a few array operations: a node's keys for its
first, second, third pod make a column; the greedy takes the largest head of any column again and again. A head that
is larger than the one taken before it in its column is taken at once, so columns may be replaced by their running
minimum, and then the whole sequence is simply the largest entries in order. Other pods go one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.framework import Profile
from muster.core.front_runners import FrontRunners, largest, leading
from muster.core.local_keys import REFUSED, KeyRow, LocalKeys
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot

_FEW, _FEW_VARIED = 64, 32
"""Up to so many pods are placed quicker one by one than in arrays; fewer where nodes are in many states."""
_NOWHERE: Slots = np.zeros(0, dtype=np.intp)


class _Locality(NamedTuple):
    """How far what bears on pods of a signature reaches, for as long as running pods carry the same terms.

    filters, all_of_it: whether each filter, and each score besides, reads one node at a time. plain: nor does it then
    read which pods run there, so that room alone keeps a node from taking the next one.
    """

    carriers_version: int
    filters: bool
    all_of_it: bool
    plain: bool


class PodPlacer:
    """Places pods on one snapshot by one profile; keeps rows of keys from one unit to the next."""

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self.keys = LocalKeys(snapshot, profile)
        self._localities: dict[int, _Locality] = {}

    def place(self, index: int, count: int, within: Slots | None) -> Slots:
        """Assume up to `count` pods of a signature on nodes of `within` (None: all); their slots, in order.

        Fewer slots than `count` means that no node takes one more.
        """
        signature = self._snapshot.signatures[index]
        if self._locality(signature).all_of_it:
            return self._place_batch(signature, count, within)
        placed: list[int] = []
        while len(placed) < count:
            slot = self._best(signature, within)
            if slot is None:
                break
            self._snapshot.assume(index, slot)
            placed.append(slot)
        return np.array(placed, dtype=np.intp)

    def is_local(self, signature: Signature) -> bool:
        """Whether all that bears on such a pod reads one node at a time, given the pods that run now."""
        return self._locality(signature).all_of_it

    def is_plain(self, signature: Signature) -> bool:
        """Whether besides no pod that runs on a node keeps another from it, but by the room that it takes."""
        return self._locality(signature).plain

    def filters_locally(self, signature: Signature) -> bool:
        """Whether every filter that concerns such a pod reads one node at a time."""
        return self._locality(signature).filters

    def admits(self, signature: Signature) -> BoolArray:
        """Per slot, whether all filters admit such a pod now."""
        admits: BoolArray = self.keys.row(signature).keys != REFUSED
        for item in self._profile.pod_filters:
            if not item.reads_one_node and item.concerns(signature, self._snapshot):
                admits &= item.mask(signature, self._snapshot)
        return admits

    def _locality(self, signature: Signature) -> _Locality:
        known = self._localities.get(signature.index)
        if known is None or known.carriers_version != self._snapshot.pods.carriers_version:
            known = self._localities[signature.index] = self._locality_now(signature)
        return known

    def _locality_now(self, signature: Signature) -> _Locality:
        snapshot, profile = self._snapshot, self._profile
        concerned = [item for item in profile.pod_filters if item.concerns(signature, snapshot)]
        filters = all(item.reads_one_node for item in concerned)
        all_of_it = filters and not any(
            item.plugin.concerns(signature, snapshot) for item in profile.pod_scores
        )
        return _Locality(snapshot.pods.carriers_version, filters, all_of_it, all_of_it and not concerned)

    def _best(self, signature: Signature, within: Slots | None) -> int | None:
        """The slot for one pod whose filters or scores read other nodes too."""
        admits = self.admits(signature)
        slots = np.flatnonzero(admits) if within is None else within[admits[within]]
        if not len(slots):
            return None
        keys = self.keys.row(signature).keys[slots]
        for item in self._profile.pod_scores:
            if item.plugin.concerns(signature, self._snapshot):
                score = item.plugin.score(signature, self._snapshot, slots)
                keys += (item.weight * score) << self.keys.bits
        return int(slots[keys.argmax()])

    def _place_batch(self, signature: Signature, count: int, within: Slots | None) -> Slots:
        row = self.keys.row(signature)
        if row.one_by_one and count <= (_FEW_VARIED if row.is_varied else _FEW):
            front = self.keys.front(row) if within is None else leading(row.keys, within, count)
            return self._place_few(signature.index, row, count, front)
        keys = row.keys if within is None else row.keys[within]
        heads = largest(keys, count)
        if not len(heads):
            return _NOWHERE
        candidates = heads if within is None else within[heads]
        picks = _Columns(self.keys, row, candidates, keys[heads]).picks(count)
        numbers = np.bincount(picks, minlength=len(candidates))
        used = numbers > 0
        self._snapshot.assume_many(signature.index, candidates[used], numbers[used])
        return candidates[picks]

    def _place_few(self, index: int, row: KeyRow, count: int, front: FrontRunners) -> Slots:
        """One at a time, scoring again only the node just taken."""
        known = len(row.scores)
        order, taken = front.take(count, partial(self.keys.key_after, row))
        row.is_varied = 2 * (len(row.scores) - known) > count
        if taken:
            self._snapshot.assume_few(index, list(taken), list(taken.values()))
        self.keys.confirm(row, () if front is row.front else taken)
        return np.array(order, dtype=np.intp)


def placer_of(snapshot: Snapshot, profile: Profile) -> PodPlacer:
    """The snapshot's placer for a profile, made on first use."""
    placer = snapshot.derived.get(profile)
    if not isinstance(placer, PodPlacer):
        placer = snapshot.derived[profile] = PodPlacer(snapshot, profile)
    return placer


@dataclass(slots=True)
class _Columns:
    """The candidates' columns of keys, as far down as the picks may reach."""

    keys: LocalKeys
    row: KeyRow
    candidates: Slots
    heads: IntArray

    def picks(self, count: int) -> Slots:
        """For each pod in turn its candidate (a place in `candidates`)."""
        room = self.keys.room(self.row, self.candidates, count)
        owners = np.arange(len(self.candidates))
        entries, lowest, depth = self.heads, self.heads, 1
        open_ = owners
        step = max(1, 2 * -(-count // len(owners)) - 1)
        while True:
            threshold = _nth_largest(entries, count)
            still = (room[open_] > depth) & (lowest >= threshold)
            open_, lowest = open_[still], lowest[still]
            if not len(open_):
                break
            deeper = self._deeper(open_, lowest, depth, step, room)
            lowest = deeper[:, -1]
            entries = np.concatenate((entries, deeper.ravel()))
            owners = np.concatenate((owners, np.repeat(open_, step)))
            depth, step = depth + step, depth + step
        kept = np.flatnonzero(entries >= max(threshold, 0))
        order = kept[np.argsort(-entries[kept], kind="stable")]
        return owners[order[:count]]

    def _deeper(self, open_: Slots, lowest: IntArray, depth: int, step: int, room: IntArray) -> IntArray:
        """Running minima of the next `step` keys of open candidates, which hold `depth` entries each so far."""
        taken = np.arange(depth, depth + step)
        limits = room[open_][:, None]
        slots = np.repeat(self.candidates[open_], step)
        keys = self.keys.keys_after(self.row, slots, np.minimum(taken, limits - 1).ravel())
        block = np.where(taken < limits, keys.reshape(len(open_), step), REFUSED)
        np.minimum(block, lowest[:, None], out=block)
        minima: IntArray = np.minimum.accumulate(block, axis=1)
        return minima


def _nth_largest(entries: IntArray, count: int) -> int:
    """The count-th largest entry; REFUSED if there are fewer."""
    if len(entries) < count:
        return REFUSED
    return int(np.partition(entries, -count)[-count])
