"""Decisions that are told to a caller and stored nowhere: of dry runs, of reruns, of preemptions that none needs."""

from __future__ import annotations

from muster.core.decision import Assignments, Decision, DecisionCode, Preemption, PreemptionEnd
from muster.engine.binder import PodsByOrdinal, as_told, named_columns
from muster.engine.cluster import Cluster
from muster.engine.deciding import Verdict
from muster.engine.eviction import disrupted_pods
from muster.engine.ports import DecisionRecord
from muster.model.variations import varied


def fitting(decision: Decision) -> Decision:
    """What is told of a decision that places pods to those who want to preempt, but bind nothing."""
    number = len(decision.assignments.pods)
    return varied(
        decision,
        code=DecisionCode.FITS_WITHOUT_PREEMPTION,
        assignments=Assignments(),
        message=f"{number} {'pod fits' if number == 1 else 'pods fit'} without preemption",
    )


def uncommitted(
    cluster: Cluster, pods: PodsByOrdinal, verdict: Verdict, decision: Decision, now_us: int
) -> DecisionRecord:
    """The record of a decision that is not stored, with the names of all pods in it.

    pods: the unit's pods that waited for a node when it was decided; others may have bound them since.
    """
    preemption = decision.preemption or Preemption(PreemptionEnd.NO_FIT)
    return DecisionRecord(
        id="",
        revision=verdict.snapshot_revision,
        snapshot_revision=verdict.snapshot_revision,
        decision=as_told(cluster, decision),
        assignments=named_columns(decision.assignments, pods),
        profile=verdict.profile,
        create_us=now_us,
        duration_us=int(verdict.core_seconds * 1_000_000),
        nominations=named_columns(preemption.nominations, pods),
        disrupted=disrupted_pods(cluster, preemption),
    )
