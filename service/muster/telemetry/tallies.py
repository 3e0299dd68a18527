"""Counters and histograms of what happens on the event loop, as plain numbers until a scrape makes samples of them.

Prometheus' own take a lock and several calls for each event, and a unit makes about thirty: a twentieth of its time.
Only one thread may add to these; any may read, and then finds a moment of each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


class Tally(Collector):
    """A number for each combination of label values; `is_gauge`: it may go down. Without labels it begins at 0."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        *,
        is_gauge: bool = False,
    ) -> None:
        self._family = GaugeMetricFamily if is_gauge else CounterMetricFamily
        self._described = (name, text)
        self._labels = tuple(labels)
        self._numbers: defaultdict[Labels, float] = defaultdict(float)
        if not self._labels:
            self._numbers[()] = 0.0
        registry.register(self)

    def add(self, amount: float, *labels: str) -> None:
        """Add to the number of these label values, in the order of the labels."""
        self._numbers[labels] += amount

    def collect(self) -> Iterator[Metric]:
        family = self._family(*self._described, labels=self._labels)
        for labels, number in list(self._numbers.items()):
            family.add_metric(labels, number)
        yield family


class Distribution(Collector):
    """A histogram for each combination of label values. `bounds` are the buckets' upper ones, rising, infinity left out."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._described = (name, text)
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: defaultdict[Labels, float] = defaultdict(float)
        if not self._labels:
            self._counts[()] = [0] * (len(self._bounds) + 1)
        registry.register(self)

    def observe(self, value: float, *labels: str) -> None:
        """Count a value for these label values, in the order of the labels."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._described, labels=self._labels)
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, counts in list(self._counts.items()):
            buckets = list(zip(names, accumulate(list(counts)), strict=True))
            family.add_metric(labels, buckets, self._sums[labels])
        yield family
