"""The metrics of the registry by OTLP, for those who have a collector and no Prometheus; off unless asked for.

The names are those of /metrics: the registry is read and sent as it is, so that there is one set of metrics.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from muster.telemetry.tracing import otlp_is_on, otlp_speaks_http, service_resource

DEFAULT_INTERVAL_MILLISECONDS = 60_000
_LABEL_OF_BUCKETS = "le"
# The wire format lets extremes be left out, the class that is encoded does not say so.
_NOT_KNOWN = cast("float", None)


@contextmanager
def exported_metrics(registry: CollectorRegistry, version: str) -> Iterator[None]:
    """Exports every OTEL_METRIC_EXPORT_INTERVAL milliseconds, and once at the end, while the context lasts."""
    if not otlp_is_on("METRICS"):
        yield
        return
    exporter = _exporter()
    seconds = int(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", DEFAULT_INTERVAL_MILLISECONDS)) / 1_000
    resource, began_ns, ended = service_resource(version), time.time_ns(), threading.Event()

    def export_until_the_end() -> None:
        while not ended.wait(seconds):
            exporter.export(as_otlp(registry, resource, began_ns))
        exporter.export(as_otlp(registry, resource, began_ns))

    thread = threading.Thread(target=export_until_the_end, name="metrics-export", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        exporter.shutdown()


def as_otlp(registry: CollectorRegistry, resource: Resource, began_ns: int) -> MetricsData:
    """What the registry holds now. Sums are cumulative since `began_ns`."""
    now_ns = time.time_ns()
    metrics = [_metric(family, began_ns, now_ns) for family in registry.collect()]
    scope = ScopeMetrics(InstrumentationScope("muster"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, began_ns: int, now_ns: int) -> Metric:
    match family.type:
        case "counter":
            points = _numbers(family, "_total", began_ns, now_ns)
            name = f"{family.name}_total"
            return Metric(
                name,
                family.documentation,
                "",
                Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True),
            )
        case "histogram":
            histogram = Histogram(_histograms(family, began_ns, now_ns), AggregationTemporality.CUMULATIVE)
            return Metric(family.name, family.documentation, "", histogram)
        case _:
            return Metric(
                family.name, family.documentation, "", Gauge(_numbers(family, "", began_ns, now_ns))
            )


def _numbers(family: Family, suffix: str, began_ns: int, now_ns: int) -> list[NumberDataPoint]:
    return [
        NumberDataPoint(sample.labels, began_ns, now_ns, sample.value)
        for sample in family.samples
        if sample.name == family.name + suffix
    ]


def _histograms(family: Family, began_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    by_labels: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in family.samples:
        labels = tuple((key, value) for key, value in sample.labels.items() if key != _LABEL_OF_BUCKETS)
        by_labels.setdefault(labels, []).append(sample)
    return [_histogram(dict(labels), samples, began_ns, now_ns) for labels, samples in by_labels.items()]


def _histogram(
    labels: dict[str, str], samples: list[Sample], began_ns: int, now_ns: int
) -> HistogramDataPoint:
    """Prometheus counts a bucket with all below it, OTLP each for itself; the last bound, infinity, is not named."""
    buckets = [each for each in samples if each.name.endswith("_bucket")]
    totals = [int(each.value) for each in buckets]
    counts = [total - below for total, below in zip(totals, [0, *totals], strict=False)]
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=began_ns,
        time_unix_nano=now_ns,
        count=totals[-1] if totals else 0,
        sum=next((each.value for each in samples if each.name.endswith("_sum")), 0.0),
        bucket_counts=counts,
        explicit_bounds=[float(each.labels[_LABEL_OF_BUCKETS]) for each in buckets[:-1]],
        min=_NOT_KNOWN,
        max=_NOT_KNOWN,
    )


def _exporter() -> MetricExporter:
    """The exporter of the chosen protocol; only that one is imported."""
    if otlp_speaks_http("METRICS"):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415
            OTLPMetricExporter as HttpExporter,
        )

        return HttpExporter()
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    return OTLPMetricExporter()
