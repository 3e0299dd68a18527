"""The rank of every node for one shape of pod, as long as it depends on one node at a time.

A key holds the weighted score in its high bits and the place of the node's name, counted backwards, in its low bits: keys
are distinct, and the largest belongs to the node that comes first. A row of keys is kept per shape and renewed only
where nodes changed since, so the next gang of the same shape costs as much as the last one's placement touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.framework import Profile
from muster.core.front_runners import FrontRunners, front_runners
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot

REFUSED = -1
_MOST_ROWS = 64
_MOST_SCORES = 4096
_FEW_CHANGES = 40
"""So many nodes, most of which are in states seen lately, are scored quicker one by one than in arrays."""
_MOSTLY = 2
"""If a pod fits on more than one in so many nodes, all of them are scored: they need not be picked out."""
_Where = Slots | slice
_ALL = slice(None)


@dataclass(slots=True)
class KeyRow:
    """One shape's keys per slot (REFUSED where the pod cannot run) and what they are made of.

    admitted: verdict of the node filters. base: what is in a key besides scores of amounts, which is weighted node scores
    and the place of the name. amounts: requested row and amount. exclusive: two such pods can never share a node.
    one_by_one: no pod filter has a say. scores: of the states of nodes seen lately; is_varied: most that the last pods
    came upon were new. front: the best of all nodes, once asked for. The rest says how current it is.
    """

    keys: IntArray
    admitted: BoolArray
    base: IntArray
    amounts: tuple[tuple[int, int], ...]
    requests: IntArray
    exclusive: bool
    one_by_one: bool
    position: int
    version: int
    membership: int
    shifts: tuple[int, ...]
    scores: dict[tuple[int, ...], int] = field(default_factory=dict)
    is_varied: bool = False
    front: FrontRunners | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What a row is made of before anything is scored: arrays not to be changed. Fields as in KeyRow."""

    admitted: BoolArray
    amounts: tuple[tuple[int, int], ...]
    requests: IntArray
    exclusive: bool


@dataclass(slots=True)
class NodeOffer:
    """Amounts of some nodes with `taken` pods of the signature there already and one more to come."""

    nodes: NodeTable
    requests: IntArray
    where: _Where
    pods: IntArray | int
    _left: dict[str, IntArray] = field(default_factory=dict)
    _allocatable: dict[str, IntArray] = field(default_factory=dict)

    def allocatable(self, resource: str) -> IntArray:
        known = self._allocatable.get(resource)
        if known is None:
            row = self.nodes.rows.get(resource)
            known = (
                self._nothing if row is None else self._shifted(row, self.nodes.allocatable[row][self.where])
            )
            self._allocatable[resource] = known
        return known

    def left(self, resource: str) -> IntArray:
        known = self._left.get(resource)
        if known is None:
            row = self.nodes.rows.get(resource)
            known = self._nothing if row is None else self._shifted(row, self._remaining(row))
            self._left[resource] = known
        return known

    @property
    def _nothing(self) -> IntArray:
        """Of a resource that no node or pod has named: a decision makes no row for it."""
        return np.zeros_like(self.nodes.ranks[self.where])

    def _remaining(self, row: int) -> IntArray:
        # Resources that came up after the requests were looked up are none that the pod names.
        amount, free = int(self.requests[row]) if row < len(self.requests) else 0, self.free(row)
        return free - self.pods * amount if amount else free

    def free(self, row: int) -> IntArray:
        """Free amounts of a resource row, without the pods to come."""
        free: IntArray = self.nodes.free[row][self.where]
        return free

    def _shifted(self, row: int, amounts: IntArray) -> IntArray:
        shift = self.nodes.score_shifts[row]
        return amounts >> shift if shift else amounts


@dataclass(slots=True)
class OneNodeOffer:
    """Amounts of one node as plain integers, per resource row, with the pod to come placed."""

    rows: dict[str, int]
    amounts: Sequence[int]
    remaining: Sequence[int]

    def allocatable(self, resource: str) -> int:
        row = self.rows.get(resource)
        return 0 if row is None else self.amounts[row]

    def left(self, resource: str) -> int:
        row = self.rows.get(resource)
        return 0 if row is None else self.remaining[row]


class LocalKeys:
    """Rows of keys for one snapshot and one profile."""

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self._rows: dict[int, KeyRow] = {}
        self._bits = 0
        self._name_keys: IntArray = np.zeros(0, dtype=np.int64)
        self._membership = -1

    @property
    def bits(self) -> int:
        """How many low bits of a key hold the place of the name."""
        return self._bits

    def row(self, signature: Signature) -> KeyRow:
        """The row of the signature's shape, current. Not to be changed."""
        row = self._rows.pop(signature.shape, None)
        nodes = self._snapshot.nodes
        if row is None or row.version != nodes.version or len(row.shifts) != len(nodes.rows):
            row = self._brought_up(row, signature)
        elif row.position != self._snapshot.changes.position:
            self._renew(row, signature, self._snapshot.changes.since(row.position))
        if len(self._rows) >= _MOST_ROWS:
            del self._rows[next(iter(self._rows))]
        self._rows[signature.shape] = row
        return row

    def _brought_up(self, row: KeyRow | None, signature: Signature) -> KeyRow:
        """The row, or a new one, as nodes are now."""
        self._renew_names()
        nodes = self._snapshot.nodes
        if row is None or row.membership != nodes.membership or row.shifts != nodes.score_shifts:
            return self._make(signature)
        self._renew_static(row, signature)
        return row

    def admission(self, signature: Signature) -> Admission:
        """What nodes admit pods of the signature's shape, and what those take: quicker than a row that is not kept yet."""
        row = self._rows.get(signature.shape)
        if row is not None and row.version == self._snapshot.nodes.version:
            return Admission(row.admitted, row.amounts, row.requests, row.exclusive)
        requests = self._snapshot.requests(signature.index)
        return Admission(
            admitted=self._admitted(signature),
            amounts=tuple((place, int(requests[place])) for place in np.flatnonzero(requests).tolist()),
            requests=requests,
            exclusive=any(
                item.excludes_itself(signature) for item in self._profile.pod_filters if item.reads_one_node
            ),
        )

    def takes(self, signature: Signature) -> BoolArray:
        """Per slot, whether one pod of the signature could run there now by all that reads one node. A copy."""
        return self._fits(self.admission(signature), signature, _ALL)

    def room(self, row: KeyRow, slots: Slots, most: int) -> IntArray:
        """How many pods of the row's shape each of the slots holds, by free amounts; at most `most`."""
        room = np.full(len(slots), 1 if row.exclusive else most, dtype=np.int64)
        free = self._snapshot.nodes.free
        for resource, amount in row.amounts:
            np.minimum(room, free[resource][slots] // amount, out=room)
        return np.maximum(room, 0, out=room)

    def keys_after(self, row: KeyRow, slots: Slots, taken: IntArray) -> IntArray:
        """Keys of slots that hold `taken` pods of the shape more than now, if one more fits there."""
        return self._scored(row, slots, taken + 1)

    def key_after(self, row: KeyRow, slot: int, taken: int) -> int:
        """The key of one slot that holds `taken` pods of the shape more than now; REFUSED if no more fits.

        Only for rows that are scored one by one: filters are not asked again.
        """
        nodes = self._snapshot.nodes
        state = (taken, *nodes.free[:, slot].tolist(), *nodes.offered(slot))
        score = row.scores.get(state)
        if score is None:
            score = self._fit_score(row, state)
        return REFUSED if score == REFUSED else (score << self._bits) + row.base.item(slot)

    def front(self, row: KeyRow) -> FrontRunners:
        """The nodes of the cluster that rank first in a row that is current."""
        if row.front is None or row.front.is_overgrown:
            row.front = front_runners(row.keys)
        return row.front

    def confirm(self, row: KeyRow, slots: Iterable[int]) -> None:
        """All changes so far are in the row: its user has put in the keys of the slots that it changed itself.

        slots: those of them of which the front does not know.
        """
        if row.front is not None:
            for slot in slots:
                row.front.put(slot, int(row.keys[slot]))
        row.position = self._snapshot.changes.position

    def _fit_score(self, row: KeyRow, state: tuple[int, ...]) -> int:
        """The score of a state, which is `taken` and free and allocatable amounts; kept, since nodes are often alike."""
        if len(row.scores) >= _MOST_SCORES:
            row.scores.clear()
        score = row.scores[state] = self._fit_score_anew(row, *state)
        return score

    def _fit_score_anew(self, row: KeyRow, taken: int, *amounts: int) -> int:
        half = len(amounts) // 2
        left, offered = list(amounts[:half]), list(amounts[half:])
        for resource, amount in row.amounts:
            left[resource] -= amount * (taken + 1)
            if left[resource] < 0:
                return REFUSED
        if any(row.shifts):
            left = [amount >> shift for amount, shift in zip(left, row.shifts, strict=True)]
            offered = [amount >> shift for amount, shift in zip(offered, row.shifts, strict=True)]
        offer = OneNodeOffer(self._snapshot.nodes.rows, offered, left)
        return sum(item.weight * int(item.plugin.score(offer)) for item in self._profile.fit_scores)

    def _make(self, signature: Signature) -> KeyRow:
        nodes = self._snapshot.nodes
        admission = self.admission(signature)
        row = KeyRow(
            keys=np.full(nodes.size, REFUSED, dtype=np.int64),
            admitted=admission.admitted,
            base=self._base(signature),
            amounts=admission.amounts,
            requests=admission.requests.copy(),
            exclusive=admission.exclusive,
            one_by_one=not any(
                item.reads_one_node and item.concerns(signature, self._snapshot)
                for item in self._profile.pod_filters
            ),
            position=0,
            version=nodes.version,
            membership=nodes.membership,
            shifts=nodes.score_shifts,
        )
        self._renew(row, signature, None)
        return row

    def _renew_static(self, row: KeyRow, signature: Signature) -> None:
        """Nodes changed: scores are relative to the whole cluster, so look where the new ones differ."""
        admitted, base = self._admitted(signature), self._base(signature)
        differing = np.flatnonzero((admitted != row.admitted) | (base != row.base))
        row.admitted, row.base, row.version = admitted, base, self._snapshot.nodes.version
        changed = self._snapshot.changes.since(row.position)
        self._renew(row, signature, None if changed is None else sorted({*changed, *differing.tolist()}))

    def _renew(self, row: KeyRow, signature: Signature, changed: list[int] | None) -> None:
        """Score the changed slots again, or all (None)."""
        row.position = self._snapshot.changes.position
        if changed is not None and len(changed) <= _FEW_CHANGES and row.one_by_one:
            for slot in changed:
                row.keys[slot] = self.key_after(row, slot, 0) if row.admitted[slot] else REFUSED
            self.confirm(row, changed)
            return
        if changed is None or 4 * len(changed) > len(row.keys):
            where: _Where = _ALL
        elif changed:
            where = np.array(changed, dtype=np.intp)
        else:
            return
        keys = row.keys[where] = self._keys(row, signature, where)
        if isinstance(where, slice):
            row.front = None
        elif row.front is not None:
            row.front.put_all(where, keys)

    def _keys(self, row: KeyRow, signature: Signature, where: _Where) -> IntArray:
        """Keys of these slots, made where a pod fits: on a full cluster there is nothing to score."""
        fits = self._fits(row, signature, where)
        fitting = np.flatnonzero(fits)
        if _MOSTLY * len(fitting) > len(fits):
            keys = self._scored(row, where, 1)
            keys[~fits] = REFUSED
            return keys
        keys = np.full(len(fits), REFUSED, dtype=np.int64)
        if len(fitting):
            keys[fitting] = self._scored(row, fitting if isinstance(where, slice) else where[fitting], 1)
        return keys

    def _fits(self, row: KeyRow | Admission, signature: Signature, where: _Where) -> BoolArray:
        fits = row.admitted[where]
        if where is _ALL:
            fits = fits.copy()
        free = self._snapshot.nodes.free
        for resource, amount in row.amounts:
            fits &= free[resource][where] >= amount
        for item in self._profile.pod_filters:
            if item.reads_one_node and item.concerns(signature, self._snapshot):
                fits &= item.mask(signature, self._snapshot)[where]
        return fits

    def _scored(self, row: KeyRow, where: _Where, pods: IntArray | int) -> IntArray:
        return self.keys_of(row, NodeOffer(self._snapshot.nodes, row.requests, where, pods))

    def keys_of(self, row: KeyRow, offer: NodeOffer) -> IntArray:
        """Keys of the offer's nodes, if one more pod of the row's shape fits there."""
        total: IntArray | int = 0
        for item in self._profile.fit_scores:
            total = total + (
                item.plugin.score(offer) if item.weight == 1 else item.weight * item.plugin.score(offer)
            )
        keys: IntArray = row.base[offer.where] + (total << self._bits)
        return keys

    def _admitted(self, signature: Signature) -> BoolArray:
        nodes = self._snapshot.nodes
        admitted = nodes.present.copy()
        for item in self._profile.node_filters:
            mask = item.mask(signature, nodes)
            if mask is not None:
                admitted &= mask
        return admitted

    def _base(self, signature: Signature) -> IntArray:
        nodes = self._snapshot.nodes
        base = np.zeros(nodes.size, dtype=np.int64)
        for item in self._profile.node_scores:
            score = item.plugin.score(signature, nodes)
            if score is not None:
                base += item.weight * score
        return (base << self._bits) + self._name_keys

    def _renew_names(self) -> None:
        nodes = self._snapshot.nodes
        if self._membership != nodes.membership or len(self._name_keys) != nodes.size:
            self._bits = nodes.size.bit_length()
            self._name_keys = (1 << self._bits) - 1 - nodes.ranks
            self._membership = nodes.membership
