"""The nodes of one cluster as arrays over slots: what each offers, what is free, labels, taints, order of names.

A node keeps its slot for life, so arrays grow in place and nothing that refers to a slot ever moves. Slots carry
no meaning: ties are settled by `ranks`, the order of names, which is rebuilt when asked for after nodes came or went.
A slot without a node may still hold pods, whose node is not known yet or not any more; it fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muster.core.arrays import BoolArray, CodeArray, IntArray, Slots, lengthened, widened
from muster.core.label_columns import LabelColumn, LabelColumns
from muster.model.node import Node, Taint
from muster.model.resources import CPU, MEMORY, PODS, Amounts, node_allocatable

_FIRST_SIZE = 16
_LEAST_TAINT_SETS = 64
_SCORE_BITS = 49
"""A score multiplies an amount by at most 10 000, which must stay below 2^63."""


class NodeTable:
    """Arrays have one column per slot (`size` of them); `allocatable` and `free` have one row per resource.

    free may be negative: the node shrank below its use. `version` counts changes of labels, taints, schedulability
    and allocatable amounts, `membership` the comings and goings of nodes.
    """

    def __init__(self) -> None:
        self.size = _FIRST_SIZE
        self.rows: dict[str, int] = {CPU: 0, MEMORY: 1, PODS: 2}
        self.allocatable: IntArray = np.zeros((len(self.rows), self.size), dtype=np.int64)
        self.free: IntArray = np.zeros((len(self.rows), self.size), dtype=np.int64)
        self.present: BoolArray = np.zeros(self.size, dtype=np.bool_)
        self.unschedulable: BoolArray = np.zeros(self.size, dtype=np.bool_)
        self.taint_codes: CodeArray = np.zeros(self.size, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.names: list[str] = []
        self.labels: list[dict[str, str]] = []
        self.version = 0
        self.membership = 0
        self._slot_of: dict[str, int] = {}
        self._offers: list[Amounts] = []
        self._vacant: list[int] = []
        self._code_of_taints: dict[tuple[Taint, ...], int] = {(): 0}
        self._taints_due = _LEAST_TAINT_SETS
        self._columns = LabelColumns()
        self._offered: dict[int, tuple[int, ...]] = {}
        self._sorted: tuple[int, Slots, IntArray] | None = None
        self._shifts: tuple[int, tuple[int, ...]] = (-1, ())
        self._reserve: tuple[IntArray, IntArray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reserve": None}

    def __len__(self) -> int:
        """How many nodes there are."""
        return int(np.count_nonzero(self.present))

    def slot(self, name: str) -> int | None:
        """The slot of a node that exists, else None."""
        slot = self._slot_of.get(name)
        return slot if slot is not None and self.present[slot] else None

    def slots_of(self, names: Iterable[str]) -> Slots:
        """The slots of those of the names that are nodes."""
        found = [self._slot_of[name] for name in names if name in self._slot_of]
        slots = np.array(found, dtype=np.intp)
        return slots[self.present[slots]]

    def row(self, resource: str) -> int:
        """The row of a resource; a new one of zeros if no node or pod has named it before."""
        row = self.rows.get(resource)
        if row is None:
            row = self.rows[resource] = len(self.rows)
            self._lengthen()
            self._offered.clear()
        return row

    def _lengthen(self) -> None:
        """Show one more row of those that are held in reserve, of which there are twice as many whenever they run out."""
        number = len(self.rows)
        if self._reserve is None or number > len(self._reserve[0]):
            self._reserve = lengthened(self.allocatable, 2 * number), lengthened(self.free, 2 * number)
        self.allocatable, self.free = (held[:number] for held in self._reserve)

    def offered(self, slot: int) -> tuple[int, ...]:
        """What one node offers, an amount a resource row."""
        offered = self._offered.get(slot)
        if offered is None:
            offered = self._offered[slot] = tuple(self.allocatable[:, slot].tolist())
        return offered

    def keep_rows(self, resources: Iterable[str]) -> list[int]:
        """Give up the rows of resources that are not among these and that no node offers; the former places of the kept ones."""
        wanted = {CPU, MEMORY, PODS}.union(resources, *self._offers)
        kept = [(resource, row) for resource, row in self.rows.items() if resource in wanted]
        places = [row for _, row in kept]
        self.rows = {resource: place for place, (resource, _) in enumerate(kept)}
        self.allocatable, self.free = self.allocatable[places], self.free[places]
        self._reserve = None
        self._offered.clear()
        self.version += 1
        return places

    def put(self, node: Node) -> int | None:
        """Add or change a node; its slot, or None if nothing that placement reads changed."""
        slot = self.reserve(node.name)
        came = not self.present[slot]
        if came:
            self.present[slot] = True
            self.membership += 1
        changed = self._put_amounts(slot, node_allocatable(node))
        changed |= self._put_labels(slot, node.labels)
        changed |= self._put_taints(slot, node.taints, unschedulable=node.unschedulable)
        if not came and not changed:
            return None
        self.version += 1
        return slot

    def remove(self, name: str) -> int | None:
        """Take a node away; its former slot, or None if there was none. Amounts in use stay on the slot."""
        slot = self.slot(name)
        if slot is None:
            return None
        self._put_amounts(slot, {})
        self._put_labels(slot, {})
        self._put_taints(slot, (), unschedulable=False)
        self.present[slot] = False
        self.membership += 1
        self.version += 1
        self.release(slot)
        return slot

    def reserve(self, name: str) -> int:
        """The slot that a name has, or gets now."""
        slot = self._slot_of.get(name)
        if slot is not None:
            return slot
        if self._vacant:
            slot = self._vacant.pop()
            self.names[slot] = name
        else:
            slot = len(self.names)
            if slot == self.size:
                self._widen()
            self.names.append(name)
            self.labels.append({})
            self._offers.append({})
        self._slot_of[name] = slot
        return slot

    def reserve_all(self, names: Sequence[str]) -> list[int]:
        """The slots that the names have, or get now."""
        try:
            return [self._slot_of[name] for name in names]
        except KeyError:
            return [self.reserve(name) for name in names]

    def release(self, slot: int) -> None:
        """Give the slot back if neither a node nor a pod is on it."""
        if not self.present[slot] and not self.free[self.rows[PODS], slot]:
            del self._slot_of[self.names[slot]]
            self.names[slot] = ""
            self._vacant.append(slot)

    def release_all(self, slots: Iterable[int]) -> None:
        """As `release`, for slots that may be named more than once."""
        for slot in set(slots):
            self.release(slot)

    def column(self, key: str) -> LabelColumn:
        """The values of one label over all slots."""
        return self._columns.column(key, self.labels, self.size)

    @property
    def order(self) -> Slots:
        """Slots of all nodes in the order of their names."""
        return self._names_sorted()[1]

    @property
    def ranks(self) -> IntArray:
        """Per slot its place in the order of names; 0 where there is no node."""
        return self._names_sorted()[2]

    @property
    def score_shifts(self) -> tuple[int, ...]:
        """Per resource row, by how many bits scores shift amounts so that no product overflows; 0 unless huge."""
        version, shifts = self._shifts
        if version != self.version or len(shifts) != len(self.rows):
            largest = self.allocatable.max(axis=1).tolist()
            shifts = tuple(max(0, amount.bit_length() - _SCORE_BITS) for amount in largest)
            self._shifts = (self.version, shifts)
        return shifts

    def _names_sorted(self) -> tuple[int, Slots, IntArray]:
        if self._sorted is None or self._sorted[0] != self.membership:
            slots = np.flatnonzero(self.present)
            by_name = sorted(slots.tolist(), key=self.names.__getitem__)
            order = np.array(by_name, dtype=np.intp)
            ranks = np.zeros(self.size, dtype=np.int64)
            ranks[order] = np.arange(len(order))
            self._sorted = (self.membership, order, ranks)
        return self._sorted

    def _put_amounts(self, slot: int, amounts: Amounts) -> bool:
        old = self._offers[slot]
        if old == amounts:
            return False
        for resource in {**old, **amounts}:
            amount = amounts.get(resource, 0)
            row = self.row(resource)
            self.free[row, slot] += amount - old.get(resource, 0)
            self.allocatable[row, slot] = amount
        self._offers[slot] = amounts
        self._offered.pop(slot, None)
        return True

    def _put_labels(self, slot: int, labels: dict[str, str]) -> bool:
        old = self.labels[slot]
        if old == labels:
            return False
        self._columns.update(slot, old, labels)
        self.labels[slot] = labels
        return True

    def _put_taints(self, slot: int, taints: tuple[Taint, ...], *, unschedulable: bool) -> bool:
        code = self._code_of_taints.get(taints)
        if code is None:
            if len(self.taint_sets) >= self._taints_due:
                self._forget_taints()
            code = self._code_of_taints[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        if self.taint_codes[slot] == code and self.unschedulable[slot] == unschedulable:
            return False
        self.taint_codes[slot] = code
        self.unschedulable[slot] = unschedulable
        return True

    def _forget_taints(self) -> None:
        """Give up the sets that no node has any more. Where there is no node, there are no taints, which have code 0."""
        used, codes = np.unique(np.append(self.taint_codes, 0), return_inverse=True)
        self.taint_sets = [self.taint_sets[code] for code in used.tolist()]
        self.taint_codes = codes[:-1].astype(np.int32)
        self._code_of_taints = {taints: code for code, taints in enumerate(self.taint_sets)}
        self._taints_due = max(_LEAST_TAINT_SETS, 2 * len(self.taint_sets))

    def _widen(self) -> None:
        self.size *= 2
        self.allocatable = widened(self.allocatable, self.size, 0)
        self.free = widened(self.free, self.size, 0)
        self._reserve = None
        self.present = widened(self.present, self.size, 0)
        self.unschedulable = widened(self.unschedulable, self.size, 0)
        self.taint_codes = widened(self.taint_codes, self.size, 0)
        self._columns.widen(self.size)
        self._sorted = None
