"""Reports about pods, from messages to the engine's values. A report that makes no sense is the engine's to judge."""

from __future__ import annotations

from collections.abc import Iterable

from muster.engine.api import BindingFailed, Bound, PhaseChanged, PodReport, Removed
from muster.model.names import DEFAULT_NAMESPACE
from muster.rpc.codec import from_timestamp
from muster.rpc.codec.times import nanos_fault
from muster.v1 import pod_report_pb2


def decode_reports(reports: Iterable[pod_report_pb2.PodReport]) -> list[PodReport]:
    """The reports in their order."""
    return [
        PodReport(each.namespace or DEFAULT_NAMESPACE, each.name, each.uid, _content(each))
        for each in reports
    ]


def _content(report: pod_report_pb2.PodReport) -> Bound | BindingFailed | PhaseChanged | Removed | None:
    """What is said of the pod; None for nothing, or with a time that is none."""
    match report.WhichOneof("report"):
        case "bound":
            return Bound(report.bound.node_name)
        case "binding_failed":
            failed = report.binding_failed
            return BindingFailed(failed.node_name, failed.reason, failed.message)
        case "phase_changed":
            changed = report.phase_changed
            if nanos_fault(changed.start_time) is not None:
                return None
            start_us = None
            if changed.HasField("start_time"):
                start_us = from_timestamp(changed.start_time)
            return PhaseChanged(changed.phase, changed.reason, changed.message, start_us)
        case "removed":
            return Removed()
        case _:
            return None
