"""What is wrong with a request itself: names, kinds, ranges, lengths. Objects inside it are validated elsewhere.

Every fault becomes a violation with its JSON path; `RequestFaults.refuse` raises them all at once. Each check
answers with the value in the model's form, whose content means nothing once a fault was found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from muster.engine.errors import InvalidArgumentError
from muster.model.meta import CLUSTER_SCOPED_KINDS, GROUP_KINDS, KINDS, POD, ObjectKey
from muster.model.names import DEFAULT_NAMESPACE, NUL, dns_label_fault, dns_subdomain_fault
from muster.rpc.codec import from_timestamp
from muster.rpc.codec.times import duration_fault, exact_seconds, nanos_fault, seconds_text
from muster.rpc.limits import (
    DEFAULT_PAGE_SIZE,
    MAX_OBJECTS,
    MAX_PAGE_SIZE,
    MAX_REQUEST_ID_LENGTH,
    MAX_WAIT_SECONDS,
)
from muster.v1 import meta_pb2, scheduler_service_pb2
from muster.validation.fields import name_faults, optional_name_faults
from muster.validation.pod import FIRST_MOMENT_US, LAST_MOMENT_US, LONGEST_GRACE_SECONDS
from muster.validation.violations import INVALID, NOT_SUPPORTED, REQUIRED, TOO_MANY, Violation

DEFAULT_CLUSTER = "default"
UNIT_KINDS = GROUP_KINDS | {POD}


def refuse_too_many(field: str, count: int) -> None:
    """Raise InvalidArgumentError TOO_MANY_OBJECTS if a call names more than MAX_OBJECTS of anything."""
    if count > MAX_OBJECTS:
        message = f"at most {MAX_OBJECTS} in one call, not {count}"
        raise InvalidArgumentError(
            "TOO_MANY_OBJECTS", f"{field}: {message}", [Violation(field, TOO_MANY, message)]
        )


class RequestFaults:
    """Collects the violations of one request, in the order in which its fields are checked."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def add(self, field: str, reason: str, description: str) -> None:
        self.violations.append(Violation(field, reason, description))

    def refuse(self) -> None:
        """Raise InvalidArgumentError if any fault was found."""
        if not self.violations:
            return
        only_limits = all(violation.reason == TOO_MANY for violation in self.violations)
        first = self.violations[0]
        raise InvalidArgumentError(
            "LIMIT_EXCEEDED" if only_limits else "INVALID_REQUEST",
            f"the request has {len(self.violations)} fault(s), first {first.field}: {first.description}",
            self.violations,
        )

    def cluster(self, name: str) -> str:
        """The cluster's name; empty is "default"."""
        fault = dns_label_fault(name) if name else None
        if fault is not None:
            self.add("cluster", INVALID, f"a cluster's name must {fault}")
        return name or DEFAULT_CLUSTER

    def request_id(self, text: str) -> str:
        if len(text) > MAX_REQUEST_ID_LENGTH:
            self.add("requestId", TOO_MANY, f"a request id has at most {MAX_REQUEST_ID_LENGTH} characters")
        if NUL in text:
            self.add("requestId", INVALID, "a request id does not hold NUL")
        return text

    def not_empty(self, field: str, count: int) -> None:
        """A repeated field that needs an element."""
        if count == 0:
            self.add(field, REQUIRED, "at least one is needed")

    def kind(self, kind: str, field: str, allowed: Collection[str] = KINDS) -> bool:
        if not kind:
            self.add(field, REQUIRED, f"one of {', '.join(sorted(allowed))}")
        elif kind not in KINDS:
            self.add(field, NOT_SUPPORTED, f"unknown kind {kind[:80]!r}; known are {', '.join(KINDS)}")
        elif kind not in allowed:
            self.add(field, INVALID, f"{kind} is not one of {', '.join(sorted(allowed))}")
        return kind in allowed

    def namespace(self, kind: str, namespace: str, field: str) -> str:
        """The namespace of an object: "default" if empty, refused and "" where the kind has none."""
        if kind in CLUSTER_SCOPED_KINDS:
            if namespace:
                self.add(field, INVALID, f"{kind} has no namespace")
            return ""
        self.namespace_name(namespace, field)
        return namespace or DEFAULT_NAMESPACE

    def namespace_name(self, namespace: str, field: str) -> None:
        """The name of a namespace, which may be left out."""
        self.violations.extend(optional_name_faults(field, namespace, dns_label_fault))

    def name(self, name: str, field: str) -> None:
        """The name of an object."""
        self.violations.extend(name_faults(field, name, dns_subdomain_fault))

    def ref(
        self, ref: meta_pb2.ObjectRef, field: str, *, present: bool, allowed: Collection[str] = KINDS
    ) -> ObjectKey:
        """The key that a reference means; a wrong one gives faults below `field`."""
        if not present:
            self.add(field, REQUIRED, "a reference is needed")
            return ObjectKey("", "", "")
        self.kind(ref.kind, f"{field}.kind", allowed)
        namespace = self.namespace(ref.kind, ref.namespace, f"{field}.namespace")
        self.name(ref.name, f"{field}.name")
        return ObjectKey(ref.kind, namespace, ref.name)

    def page_size(self, size: int) -> int:
        if not 0 <= size <= MAX_PAGE_SIZE:
            self.add("pageSize", INVALID, f"0 to {MAX_PAGE_SIZE}, not {size}")
        return size or DEFAULT_PAGE_SIZE

    def revision(self, revision: int | None, field: str) -> int | None:
        if revision is not None and revision < 0:
            self.add(field, INVALID, f"a revision is not negative, as {revision} is")
        return revision

    def enum_values(self, values: Iterable[int], known: Collection[int], field: str) -> None:
        """Each value of a repeated enum is one that this server knows, and not the unspecified one."""
        for index, value in enumerate(values):
            if value == 0 or value not in known:
                self.add(f"{field}[{index}]", NOT_SUPPORTED, f"value {value} means nothing here")

    def grace_seconds(self, seconds: int, *, present: bool) -> int | None:
        """Seconds of a grace period, at most what a pod's own may be; None without one."""
        if not present:
            return None
        if not 0 <= seconds <= LONGEST_GRACE_SECONDS:
            text = f"a grace period is 0 to {LONGEST_GRACE_SECONDS} seconds, not {seconds}"
            self.add("gracePeriodSeconds", INVALID, text)
        return seconds

    def wait_seconds(self, wait: Duration, *, present: bool) -> float | None:
        """Seconds of a wait from 0 to 10 minutes, None without one."""
        if not present:
            return None
        fault = duration_fault(wait)
        seconds = exact_seconds(wait)
        if fault is not None:
            self.add("wait", INVALID, f"a wait must {fault}")
        elif not 0 <= seconds <= MAX_WAIT_SECONDS:
            text = f"a wait is 0 to {MAX_WAIT_SECONDS} seconds, not {seconds_text(wait)}"
            self.add("wait", INVALID, text)
        return float(seconds)

    def moment(self, time: Timestamp, field: str, *, present: bool) -> int | None:
        """Microseconds since the epoch, None without a time."""
        if not present:
            return None
        fault = nanos_fault(time)
        moment_us = from_timestamp(time)
        if fault is not None:
            self.add(field, INVALID, f"a time must {fault}")
        elif not FIRST_MOMENT_US <= moment_us <= LAST_MOMENT_US:
            self.add(field, INVALID, "a time is between the years 1 and 9999")
        return moment_us


class AskedUnit(NamedTuple):
    """What a call for a cycle names: any object of a unit, and how long later cycles may be waited for."""

    cluster: str
    unit: ObjectKey
    wait_seconds: float | None


def asked_unit(
    request: scheduler_service_pb2.ScheduleRequest | scheduler_service_pb2.PreemptRequest,
) -> AskedUnit:
    """The unit that a cycle is asked for. Raises InvalidArgumentError with all faults of the request."""
    faults = RequestFaults()
    cluster = faults.cluster(request.cluster)
    unit = faults.ref(request.unit, "unit", present=request.HasField("unit"), allowed=UNIT_KINDS)
    wait = None
    if isinstance(request, scheduler_service_pb2.ScheduleRequest):
        wait = faults.wait_seconds(request.wait, present=request.HasField("wait"))
    faults.request_id(request.request_id)
    faults.refuse()
    return AskedUnit(cluster, unit, wait)
