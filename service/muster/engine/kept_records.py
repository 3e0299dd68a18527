"""Records of decisions that are kept in memory by their units, in bounded room; the oldest go first."""

from __future__ import annotations

from muster.engine.ports import DecisionRecord
from muster.model.meta import ObjectKey

MOST_UNITS = 4_096
MOST_PODS = 65_536
"""Named in all of the records together: about 200 bytes each once nobody else has them."""
LEAST_UNITS = 16
"""So many stay whatever they name."""


class KeptRecords:
    """The newest record of each of the units that were told last."""

    def __init__(self) -> None:
        self._records: dict[ObjectKey, DecisionRecord] = {}
        self._pods = 0

    def get(self, unit: ObjectKey) -> DecisionRecord | None:
        """The record, if it is kept."""
        return self._records.get(unit)

    def add(self, record: DecisionRecord) -> None:
        """Instead of the one that is kept of the same unit."""
        self.pop(record.decision.unit)
        self._records[record.decision.unit] = record
        self._pods += _pods_of(record)
        while self._are_too_many():
            self.pop(next(iter(self._records)))

    def pop(self, unit: ObjectKey) -> None:
        """Nobody asks for it any more."""
        record = self._records.pop(unit, None)
        if record is not None:
            self._pods -= _pods_of(record)

    def _are_too_many(self) -> bool:
        units = len(self._records)
        return units > MOST_UNITS or (self._pods > MOST_PODS and units > LEAST_UNITS)


def _pods_of(record: DecisionRecord) -> int:
    return len(record.assignments.pods) + len(record.nominations.pods) + len(record.disrupted.names)
