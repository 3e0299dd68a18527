"""PriorityClass: a named priority. Two system classes are built in and cannot be changed."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.meta import PRIORITY_CLASS, KubernetesObject, ObjectKey

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
NEVER = "Never"
HIGHEST_USER_PRIORITY = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass(KubernetesObject):
    """Cluster-scoped; `value` and `preemption_policy` never change."""

    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(PRIORITY_CLASS, "", self.name)


SYSTEM_CLASSES = (
    PriorityClass(
        name="system-cluster-critical", value=2_000_000_000, preemption_policy=PREEMPT_LOWER_PRIORITY
    ),
    PriorityClass(name="system-node-critical", value=2_000_001_000, preemption_policy=PREEMPT_LOWER_PRIORITY),
)
