"""Room that is not free for a unit though nobody runs there, and room that is though somebody does (semantics 5.6).

Nominated pods of other units are assumed before a unit is decided; pods that are leaving are taken as gone where a
placement may wait for them.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from muster.core.bound_pods import grouped
from muster.core.preemption_units import PromisedRoom
from muster.core.snapshot import Snapshot


def keep_promises(snapshot: Snapshot, promised: PromisedRoom, sign: int = 1) -> None:
    """Assume the nominated pods of other units, or (sign -1) take them away again; those without a node are left out."""
    if not promised.signatures:
        return
    pairs = zip(promised.signatures, map(snapshot.nodes.slot, promised.node_names), strict=True)
    known = [(signature, slot) for signature, slot in pairs if slot is not None]
    columns = np.array(known, dtype=np.int64).reshape(-1, 2)
    for signature, slots, numbers in grouped(columns[:, 0], columns[:, 1].astype(np.intp)):
        snapshot.assume_many(signature, slots, sign * numbers)


def depart_leaving(snapshot: Snapshot, stayed: Collection[int]) -> None:
    """Take all leaving pods as gone, but for those that count as staying."""
    if not snapshot.pods.leaving:
        return
    staying: dict[tuple[int, int], int] = {}
    signatures, slots, leaving = snapshot.pods.places(np.array(sorted(stayed), dtype=np.int64))
    for signature, slot, leaves in zip(signatures.tolist(), slots.tolist(), leaving.tolist(), strict=True):
        if slot >= 0 and leaves:
            staying[signature, slot] = staying.get((signature, slot), 0) + 1
    for signature, by_slot in sorted(snapshot.pods.leaving.items()):
        gone = {slot: number - staying.get((signature, slot), 0) for slot, number in sorted(by_slot.items())}
        at = [slot for slot, number in gone.items() if number]
        if at:
            numbers = np.array([gone[slot] for slot in at], dtype=np.int64)
            snapshot.depart(signature, np.array(at, dtype=np.intp), numbers)
