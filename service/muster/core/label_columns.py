"""Node labels as integer columns, so that a selector is judged once per distinct value instead of per node.

A column is made when its key is first asked for and kept up to date from then on. A missing label has code -1, an
empty value is a value like any other. Codes say nothing about order: what depends on order goes by the text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muster.core.arrays import BoolArray, CodeArray, widened

MISSING = -1


class LabelColumn:
    """One label of all nodes: `codes[slot]` is a place in `values`, or MISSING."""

    def __init__(self, size: int) -> None:
        self.codes: CodeArray = np.full(size, MISSING, dtype=np.int32)
        self.values: list[str] = []
        self._code_of: dict[str, int] = {}

    def set(self, slot: int, value: str | None) -> None:
        self.codes[slot] = MISSING if value is None else self.code(value)

    def code(self, value: str) -> int:
        """The value's code; a new one if it has none yet."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code

    def widen(self, size: int) -> None:
        self.codes = widened(self.codes, size, MISSING)

    def mask(self, accepts: Callable[[str | None], bool]) -> BoolArray:
        """Per slot, whether its value (None: missing) passes."""
        verdicts = np.array([*map(accepts, self.values), accepts(None)], dtype=np.bool_)
        return verdicts[self.codes]


class LabelColumns:
    """The columns asked for so far."""

    _SLACK = 4

    def __init__(self) -> None:
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str, labels: list[dict[str, str]], size: int) -> LabelColumn:
        """The column of a key, over `size` slots of which the first have `labels`."""
        column = self._columns.get(key)
        if column is None:
            column = LabelColumn(size)
            for slot, of_node in enumerate(labels):
                if key in of_node:
                    column.set(slot, of_node[key])
            self._columns[key] = column
        return column

    def update(self, slot: int, old: dict[str, str], new: dict[str, str]) -> None:
        """A slot's labels changed. A column full of values that no node has any more is dropped, to be made anew."""
        for key, column in list(self._columns.items()):
            if old.get(key) != new.get(key):
                column.set(slot, new.get(key))
                if len(column.values) > self._SLACK * len(column.codes):
                    del self._columns[key]

    def widen(self, size: int) -> None:
        for column in self._columns.values():
            column.widen(size)
