"""One cluster's state for placement: nodes, bound pods, signatures, and a journal to try and undo in (KEP-4671).

Between cycles deltas change it; inside a cycle assignments are assumed and reverted, in exact reverse order, at a
cost that does not depend on the number of nodes. It knows amounts and counts; which node is right for a pod is for
filters and scores to say. What can be derived is derived when asked for and left behind by pickling.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from muster.core.arrays import IntArray, Slots, widened
from muster.core.bound_pods import BoundPods, Group, grouped
from muster.core.change_log import ChangeLog
from muster.core.deltas import (
    Delta,
    NodePut,
    NodeRemoved,
    PodsBound,
    PodsLeaving,
    PodsUnbound,
    SignaturesAdded,
    SignaturesKept,
)
from muster.core.journal import Departed, Entry, Lent, Several, assumed_pods
from muster.core.node_table import NodeTable
from muster.core.pod_counts import PodCount, PodCounts, PodSelection
from muster.core.signature import Signature, renumbered

Mark = int
_LARGEST_TOTAL = 2.0**60
"""While all bound pods together take less of a resource than this, no sum over one node can overflow."""
_FEW_SLOTS = 128
"""Up to so many slots one operation over all resources is quicker than one a resource."""
_FEW_GROUPS = 16
"""Up to so many groups are taken one by one, more in columns."""
_LEAST_FREE = -(2**62)
_MOST = 4
"""More than one part in so many of all slots are most of them."""
_VERY_FEW_SLOTS = 8
"""Up to so many slots are quicker one by one."""


class Snapshot:
    """`apply` deltas between cycles; `mark`, `assume`, `rollback` inside one.

    version: counts deltas that can change where a pod may run.
    changes: slots whose nodes or pods changed, for whoever keeps something derived per slot.
    derived: where placement keeps what it works out per profile; lost by pickling, never part of a decision.
    """

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.pods = BoundPods()
        self.signatures: list[Signature] = []
        self.version = 0
        self._journal: list[Entry] = []
        self._requests: IntArray = np.zeros((0, len(self.nodes.rows)), dtype=np.int64)
        self._bound_total = [0.0] * len(self.nodes.rows)
        self._exact_rows: set[int] = set()
        self._start_deriving()

    def _start_deriving(self) -> None:
        self.changes = ChangeLog()
        self.derived: dict[Hashable, Any] = {}
        self._counts = PodCounts()

    def __getstate__(self) -> dict[str, Any]:
        lost = {"changes", "derived", "_counts"}
        return {name: value for name, value in self.__dict__.items() if name not in lost}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_deriving()

    def apply(self, delta: Delta) -> None:
        """Mutate by one delta. Raises RuntimeError while assignments are assumed: revert them first."""
        if self._journal:
            raise RuntimeError("deltas may not change a snapshot while assignments are assumed")
        match delta:
            case NodePut(node=node):
                self._note_node(self.nodes.put(node))
            case NodeRemoved(name=name):
                self._note_node(self.nodes.remove(name))
            case SignaturesAdded(signatures=signatures):
                self._add_signatures(signatures)
            case SignaturesKept(indexes=indexes):
                self._keep_signatures(indexes)
            case PodsBound():
                self._bind(delta)
            case PodsUnbound(ids=ids):
                self._unbind(ids)
            case PodsLeaving(ids=ids):
                self._mark_leaving(ids)

    def mark(self) -> Mark:
        """A point to roll back to."""
        return len(self._journal)

    def assume(self, signature: int, slot: int, count: int = 1) -> None:
        """Take room for pods of one signature on one node."""
        self._journal.append((signature, slot, count))
        self._shift_one(signature, slot, count)

    def assume_many(self, signature: int, slots: Slots, counts: IntArray) -> None:
        """Take room for pods of one signature on several distinct nodes; negative counts take running pods away."""
        if len(slots) <= _FEW_SLOTS:
            self._assume_several(signature, slots, counts)
            return
        self._journal.append((signature, slots, counts))
        self._shift_many(signature, slots, counts)

    def _assume_several(self, signature: int, slots: Slots, counts: IntArray) -> None:
        before = self.nodes.free[:, slots]
        self._journal.append(Several(signature, slots, counts, before, signature not in self.pods.counts))
        self.nodes.free[:, slots] = before - np.multiply.outer(self._requests[signature], counts)
        self._count_many(signature, slots, counts)

    def _revert(self, entry: Several) -> None:
        """All is taken back in reverse order, so what was free then is free now: quicker than to work it out."""
        self.nodes.free[:, entry.slots] = entry.before
        if not entry.is_first:
            self._count_many(entry.signature, entry.slots, -entry.counts)
            return
        self.pods.forget(entry.signature)
        self._counts.shift(self.signatures[entry.signature], entry.slots, -entry.counts, leaving=False)
        self.changes.extend(entry.slots.tolist())

    def assume_few(self, signature: int, slots: list[int], counts: list[int]) -> None:
        """As `assume_many`, for a handful of slots."""
        if len(slots) > _VERY_FEW_SLOTS:
            self.assume_many(signature, np.array(slots, dtype=np.intp), np.array(counts, dtype=np.int64))
            return
        self._journal.append((signature, slots, counts))
        self._shift_few(signature, slots, counts)

    def depart(self, signature: int, slots: Slots, counts: IntArray) -> None:
        """Take leaving pods of one signature as gone from several distinct nodes."""
        self._journal.append(Departed(signature, slots, counts))
        self._shift_departed(signature, slots, counts)

    def lend(self, amounts: IntArray) -> None:
        """Take amounts [R, slots], which must not change, as free; filters that read pods see them all still."""
        self._journal.append(Lent(amounts))
        self._shift_lent(amounts)

    def rollback(self, mark: Mark) -> None:
        """Take back what was assumed since the mark, last first."""
        while len(self._journal) > mark:
            match self._journal.pop():
                case Departed(signature=signature, slots=slots, counts=counts):
                    self._shift_departed(signature, slots, -counts)
                case Lent(amounts=amounts):
                    self._shift_lent(-amounts)
                case Several() as entry:
                    self._revert(entry)
                case (signature, int(slot), int(count)):
                    self._shift_one(signature, slot, -count)
                case (signature, list(slots), list(counts)):
                    self._shift_few(signature, slots, [-count for count in counts])
                case (signature, slots, counts):
                    self._shift_many(signature, np.asarray(slots), -np.asarray(counts))

    def confirm(self, delta: PodsBound) -> bool:
        """Let what is assumed become bound pods, if it is exactly what the delta binds; else nothing changes.

        As good as rolling back and applying the delta, for a fraction of it.
        """
        if delta.leaving or self._exact_rows or self.pods.knows_any(delta.ids):
            return False
        slots = self.nodes.reserve_all(delta.node_names)
        unbound = assumed_pods(self._journal)
        for place in zip(delta.signatures, slots, strict=True):
            unbound[place] = unbound.get(place, 0) - 1
        if any(unbound.values()):
            return False
        self.pods.remember(delta.ids, delta.signatures, slots)
        for signature in set(delta.signatures):
            self._count_total(signature, delta.signatures.count(signature))
        self._journal.clear()
        self.version += 1
        return True

    @property
    def has_assumptions(self) -> bool:
        """Whether anything is assumed that has not been rolled back."""
        return bool(self._journal)

    def count(self, selection: PodSelection) -> PodCount:
        """Pods of a selection per slot, assumed ones included; current until the snapshot changes."""
        count = self._counts.get(selection)
        if count is None:
            counts = self.pods.staying() if selection.skips_leaving else (self.pods.counts,)
            count = self._counts.create(selection, self.nodes.size, self.signatures, counts)
        return count

    def requests(self, signature: int) -> IntArray:
        """What one pod takes, one amount per resource row."""
        row: IntArray = self._requests[signature]
        return row

    def _note_node(self, slot: int | None) -> None:
        self._fit()
        if slot is not None:
            self._settle([slot])
            self.changes.add(slot)
            self.version += 1

    def _add_signatures(self, signatures: tuple[Signature, ...]) -> None:
        for signature in signatures:
            if signature.index != len(self.signatures):
                raise ValueError(f"signature {signature.index} is not the next one ({len(self.signatures)})")
            self.signatures.append(signature)
            for resource in signature.requests:
                self.nodes.row(resource)
            if carries_terms(signature):
                self.pods.carrying.add(signature.index)
        self._fit()
        rows = self.nodes.rows
        for signature in signatures:
            for resource, amount in signature.requests.items():
                self._requests[signature.index, rows[resource]] = amount

    def _keep_signatures(self, indexes: tuple[int, ...]) -> None:
        """Give up all others, resources that nobody names any more, and all that is derived: it speaks of both by index."""
        self.signatures = renumbered(self.signatures[index] for index in indexes)
        shapes = {signature.shape: signature.requests for signature in self.signatures}
        rows = self.nodes.keep_rows(name for requests in shapes.values() for name in requests)
        self._requests = self._requests[np.ix_(indexes, rows)]
        self._bound_total = [self._bound_total[row] for row in rows]
        self._exact_rows = {place for place, row in enumerate(rows) if row in self._exact_rows}
        self.pods.renumber(indexes)
        self._start_deriving()
        self.version += 1

    def _fit(self) -> None:
        """Bring what is kept per slot, resource and signature up to their numbers."""
        height, width = self._requests.shape
        if width < len(self.nodes.rows):
            self._requests = widened(self._requests, len(self.nodes.rows), 0)
            self._bound_total += [0.0] * (len(self.nodes.rows) - width)
        if height < len(self.signatures):
            taller = np.zeros((2 * len(self.signatures), len(self.nodes.rows)), dtype=np.int64)
            taller[:height] = self._requests
            self._requests = taller
        self._counts.widen(self.nodes.size)

    def _bind(self, delta: PodsBound) -> None:
        if self.pods.knows_any(delta.ids):
            self._unbind(delta.ids)
        reserved = self.nodes.reserve_all(delta.node_names)
        self._fit()
        if len(reserved) <= _VERY_FEW_SLOTS and not delta.leaving:
            self.pods.remember(delta.ids, delta.signatures, reserved)
            self._shift_bound(delta.signatures, reserved, 1)
            return
        slots = np.array(reserved, dtype=np.intp)
        signatures = np.array(delta.signatures, dtype=np.int64)
        groups = self.pods.bind(delta.ids, signatures, slots, leaving=delta.leaving)
        self._use(groups, signatures, slots, 1)
        for signature, at, numbers in groups:
            self._counts.shift(self.signatures[signature], at, numbers, leaving=delta.leaving)
        self._note_pods(slots)

    def _unbind(self, ids: Iterable[int]) -> None:
        signatures, slots, leaving = self.pods.unbind(ids)
        if len(slots) <= _VERY_FEW_SLOTS and not leaving.any():
            at = slots.tolist()
            self._shift_bound(signatures.tolist(), at, -1)
            self.nodes.release_all(at)
            return
        groups: list[Group] = []
        for is_leaving in set(leaving.tolist()):
            concerned = leaving == is_leaving
            for group in grouped(signatures[concerned], slots[concerned]):
                groups.append(group)
                self.pods.uncount(group, leaving=bool(is_leaving))
                signature, at, numbers = group
                self._counts.shift(self.signatures[signature], at, -numbers, leaving=bool(is_leaving))
        self._use(groups, signatures, slots, -1)
        self._note_pods(slots)
        self.nodes.release_all(slots.tolist())

    def _shift_bound(self, signatures: Sequence[int], slots: list[int], sign: int) -> None:
        """Count a handful of pods that came, or (sign -1) went, and the room that they take."""
        numbers: dict[int, dict[int, int]] = {}
        for signature, slot in zip(signatures, slots, strict=True):
            by_slot = numbers.setdefault(signature, {})
            by_slot[slot] = by_slot.get(slot, 0) + sign
        for signature, by_slot in numbers.items():
            self._shift_few(signature, list(by_slot), list(by_slot.values()))
            self._count_total(signature, sum(by_slot.values()))
        if self._exact_rows:
            self._settle(sorted(set(slots)))
        self.version += bool(slots)

    def _mark_leaving(self, ids: Iterable[int]) -> None:
        for pod in ids:
            marked = self.pods.mark_leaving(pod)
            if marked is not None:
                signature, slot = marked
                self._counts.mark_leaving(self.signatures[signature], slot)
                self.changes.add(slot)
                self.version += 1

    def _note_pods(self, slots: Slots) -> None:
        if len(slots):
            self.changes.extend(slots.tolist())
            self.version += 1

    def _use(self, groups: list[Group], signatures: IntArray, slots: Slots, sign: int) -> None:
        """Take (or give back) room for pods, which are given as groups and in columns."""
        if len(groups) <= _FEW_GROUPS:
            for signature, at, numbers in groups:
                self._take(self._requests[signature], at, sign * numbers)
        else:
            taken = sign * self._requests[signatures]
            for row in np.flatnonzero(taken.any(axis=0)).tolist():
                np.subtract.at(self.nodes.free[row], slots, taken[:, row])
        for signature, _, numbers in groups:
            self._count_total(signature, sign * int(numbers.sum()))
        self._settle(sorted(set(slots.tolist())) if self._exact_rows else [])

    def _count_total(self, signature: int, pods: int) -> None:
        """Keep the sums over all bound pods, which say where amounts must be added up in exact integers."""
        for resource, amount in self.signatures[signature].requests.items():
            row = self.nodes.rows[resource]
            self._bound_total[row] += float(amount) * pods
            if self._bound_total[row] > _LARGEST_TOTAL:
                self._exact_rows.add(row)

    def _settle(self, slots: list[int]) -> None:
        """Where bound pods might take more than 64 bits hold, free amounts are computed anew and cut off below."""
        for row in self._exact_rows:
            amount_of = {index: int(self._requests[index, row]) for index in self.pods.counts}
            for slot in slots:
                left = int(self.nodes.allocatable[row, slot]) - self.pods.exact_use(slot, amount_of)
                self.nodes.free[row, slot] = max(left, _LEAST_FREE)

    def _shift_one(self, signature: int, slot: int, count: int) -> None:
        requests = self._requests[signature]
        self.nodes.free[:, slot] -= requests if count == 1 else requests * count
        self.pods.shift(signature, [slot], [count])
        self._counts.shift(self.signatures[signature], slot, count, leaving=False)
        self.changes.add(slot)

    def _shift_few(self, signature: int, slots: list[int], counts: list[int]) -> None:
        requests, free = self._requests[signature], self.nodes.free
        for slot, count in zip(slots, counts, strict=True):
            of_node = free[:, slot]
            of_node -= requests if count == 1 else requests * count
        self.pods.shift(signature, slots, counts)
        self._counts.shift_few(self.signatures[signature], slots, counts)
        self.changes.extend(slots)

    def _shift_many(self, signature: int, slots: Slots, counts: IntArray) -> None:
        self._take(self._requests[signature], slots, counts)
        self._count_many(signature, slots, counts)

    def _count_many(self, signature: int, slots: Slots, counts: IntArray) -> None:
        at = slots.tolist()
        self.pods.shift(signature, at, counts.tolist())
        self._counts.shift(self.signatures[signature], slots, counts, leaving=False)
        self.changes.extend(at)

    def _shift_departed(self, signature: int, slots: Slots, counts: IntArray) -> None:
        self._take(self._requests[signature], slots, -counts)
        at = slots.tolist()
        self.pods.depart(signature, at, counts.tolist())
        self._counts.shift(self.signatures[signature], slots, -counts, leaving=True)
        self.changes.extend(at)

    def _shift_lent(self, amounts: IntArray) -> None:
        self.nodes.free += amounts
        slots = np.flatnonzero(amounts.any(axis=0))
        if _MOST * len(slots) > self.nodes.size:
            self.changes.add_all()
        else:
            self.changes.extend(slots.tolist())

    def _take(self, requests: IntArray, slots: Slots, counts: IntArray) -> None:
        """Take `counts` times the requests from distinct slots."""
        if len(slots) <= _FEW_SLOTS:
            self.nodes.free[:, slots] -= np.multiply.outer(requests, counts)
        else:
            for row in np.flatnonzero(requests).tolist():
                self.nodes.free[row, slots] -= requests[row] * counts


def carries_terms(signature: Signature) -> bool:
    """Whether pods of the signature may bear on where other pods run: pod affinity or anti-affinity terms."""
    affinity = signature.spec.affinity
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)
