"""Applies objects as the engine does, in a cluster of priority classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.model.priority import PriorityClass
from muster.validation.admission import (
    AdmissionContext,
    Admitted,
    Answer,
    Outcome,
    PriorityClasses,
    Rejected,
    SpecMemo,
    admit,
)

Kind = TypeVar("Kind", bound=ClusterObject)

HIGH = PriorityClass(name="high", value=1000, preemption_policy="Never")
USUAL = PriorityClass(name="usual", value=7, global_default=True, preemption_policy="PreemptLowerPriority")


def context(*classes: PriorityClass, revision: int = 5, memo: SpecMemo | None = None) -> AdmissionContext:
    return AdmissionContext(
        revision=revision,
        time_us=1_000,
        make_uid=lambda: "made",
        make_uids=lambda count: ["made"] * count,
        classes=PriorityClasses(classes),
        memo=memo or SpecMemo(),
    )


def created(sent: Kind, *classes: PriorityClass) -> Kind:
    return admitted(sent, admit(sent, None, context(*classes)))


def updated(sent: Kind, stored: Kind) -> Kind:
    answer = admit(sent, stored, context(revision=9))
    assert isinstance(answer, Admitted)
    assert answer.outcome is Outcome.UPDATED
    return admitted(sent, answer)


def admitted(sent: Kind, answer: Answer) -> Kind:
    assert isinstance(answer, Admitted)
    assert isinstance(answer.object, type(sent))
    return answer.object


def outcome(sent: ClusterObject, stored: ClusterObject | None) -> Outcome:
    answer = admit(sent, stored, context(revision=9))
    assert isinstance(answer, Admitted)
    return answer.outcome


def refused(answer: Answer) -> list[tuple[str, str]]:
    assert isinstance(answer, Rejected)
    return [(violation.field, violation.reason) for violation in answer.violations]


def respec(pod: Pod, **fields: object) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))  # type: ignore[arg-type]
