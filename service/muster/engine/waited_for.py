"""Which decision a unit waits for: the one with the victims, while later ones say only that some have not left."""

from __future__ import annotations

from muster.core.decision import DecisionCode
from muster.engine.ports import DecisionRecord
from muster.model.meta import ObjectKey

MOST_UNITS = 4_096


class WaitedFor:
    """By unit, the newest decision that evicted for it. In memory alone; the oldest are given up."""

    def __init__(self) -> None:
        self._records: dict[ObjectKey, DecisionRecord] = {}

    def told(self, record: DecisionRecord) -> DecisionRecord:
        """What a caller is told who asked for a preemption: the record, or the one whose victims the unit waits for."""
        unit = record.decision.unit
        if record.decision.code is not DecisionCode.WAITING_FOR_PREEMPTION:
            self._records.pop(unit, None)
            return record
        if record.decision.preemption is None:
            return self._records.get(unit, record)
        self._records.pop(unit, None)
        if len(self._records) >= MOST_UNITS:
            del self._records[next(iter(self._records))]
        self._records[unit] = record
        return record
