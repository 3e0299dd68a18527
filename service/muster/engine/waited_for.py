"""Which decision a unit waits for: the one with the victims, while later ones say only that some have not left."""

from __future__ import annotations

from muster.core.decision import DecisionCode
from muster.engine.kept_records import KeptRecords
from muster.engine.ports import DecisionRecord


class WaitedFor:
    """By unit, the newest decision that evicted for it. In memory alone; the oldest are given up."""

    def __init__(self) -> None:
        self._records = KeptRecords()

    def told(self, record: DecisionRecord) -> DecisionRecord:
        """What a caller is told who asked for a preemption: the record, or the one whose victims the unit waits for."""
        unit = record.decision.unit
        if record.decision.code is not DecisionCode.WAITING_FOR_PREEMPTION:
            self._records.pop(unit)
            return record
        if record.decision.preemption is None:
            return self._records.get(unit) or record
        self._records.add(record)
        return record
