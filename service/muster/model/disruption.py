"""PodDisruptionBudget: how many of the selected pods should stay; a preference for preemption, never a bar."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.meta import POD_DISRUPTION_BUDGET, KubernetesObject, LabelSelector, ObjectKey


@dataclass(frozen=True, slots=True)
class DisruptionStatus:
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget(KubernetesObject):
    """`min_available` and `max_unavailable` are a number or a percentage as text; exactly one is set.

    A None selector selects nothing, an empty one the whole namespace.
    """

    min_available: str | None = None
    max_unavailable: str | None = None
    selector: LabelSelector | None = None
    status: DisruptionStatus = DisruptionStatus()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(POD_DISRUPTION_BUDGET, self.namespace, self.name)
