"""Names for the arrays that the core is made of, and how they grow."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
Slots = NDArray[np.intp]
"""Places of nodes in arrays over all nodes."""


Amount = TypeVar("Amount", int, IntArray)
"""One node's amount, or those of many nodes: formulas of operators alone hold for both."""
Amount_co = TypeVar("Amount_co", int, IntArray, covariant=True)


def widened(array: NDArray[Any], size: int, fill: int) -> NDArray[Any]:
    """The array with its last axis grown to `size`, new places holding `fill`."""
    grown = np.full((*array.shape[:-1], size), fill, dtype=array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown


def lengthened(array: IntArray, rows: int) -> IntArray:
    """The array with its first axis grown to so many rows, new ones holding 0."""
    grown = np.zeros((rows, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
