"""Domains: the nodes that share one value of a label, inside an outer domain (KEP-5732, KEP-6012).

A domain is identified by key, path and value: equal values inside different outer domains are different domains,
an empty value is a value, and a node without the label is in none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.label_columns import LabelColumn


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that a group may use: `slots` ascending; None for the whole cluster, whose key is empty."""

    key: str = ""
    value: str = ""
    slots: Slots | None = None


CLUSTER = Domain()


def domain_totals(per_slot: IntArray, column: LabelColumn) -> IntArray:
    """Per slot, the sum over all nodes with the same label value; 0 where the label is missing."""
    sums = value_totals(per_slot, column)
    totals: IntArray = np.append(sums, 0)[column.codes]
    return totals


def value_totals(per_slot: IntArray, column: LabelColumn, among: BoolArray | None = None) -> IntArray:
    """Per value of the column, the sum over the nodes that have it (of those in `among`)."""
    counted = column.codes >= 0
    if among is not None:
        counted &= among
    sums = np.bincount(column.codes[counted], weights=per_slot[counted], minlength=len(column.values))
    return sums.astype(np.int64)
