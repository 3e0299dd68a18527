"""PodDisruptionBudgets and the pods that each selects (semantics 5.6): how many may go, and what the status says.

Members of a budget are the live pods of its namespace that its selector selects, without those that are on their way
out; healthy ones are bound. Counts follow the pods one by one; a budget that changes counts its namespace anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.core.arrays import IntArray
from muster.core.preemption_units import DisruptionBudgets
from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
from muster.model.meta import ObjectKey, SelectorRequirement
from muster.model.pod import Pod
from muster.model.selectors import labels_match, requirements_of
from muster.model.variations import varied

_MOST_VERDICTS = 65_536


@dataclass(slots=True, eq=False)
class _Budget:
    """One budget; `bound` and `unbound` are ordinals of its members. None for `requirements` selects nothing."""

    budget: PodDisruptionBudget
    requirements: tuple[SelectorRequirement, ...] | None
    bound: dict[int, None] = field(default_factory=dict)
    unbound: set[int] = field(default_factory=set)
    _verdicts: dict[int, tuple[dict[str, str], bool]] = field(default_factory=dict)

    def selects(self, labels: dict[str, str]) -> bool:
        """Pods share their labels, so that one look is enough for all of them; the entry keeps the object alive."""
        if self.requirements is None:
            return False
        known = self._verdicts.get(id(labels))
        if known is None:
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            known = self._verdicts[id(labels)] = (labels, labels_match(self.requirements, labels))
        return known[1]

    def note(self, pod: Pod) -> None:
        """The pod is as it is here."""
        self.forget(pod.ordinal)
        if pod.is_member and self.selects(pod.labels):
            if pod.node_name:
                self.bound[pod.ordinal] = None
            else:
                self.unbound.add(pod.ordinal)

    def count(self, pods: Iterable[Pod]) -> None:
        """As `note` of each, for pods of which none was noted before, and whose labels all are held."""
        known: dict[int, bool] = {}
        for pod in pods:
            labels = pod.labels
            chosen = known.get(id(labels))
            if chosen is None:
                chosen = known[id(labels)] = self.selects(labels)
            if chosen and pod.is_member:
                if pod.node_name:
                    self.bound[pod.ordinal] = None
                else:
                    self.unbound.add(pod.ordinal)

    def forget(self, ordinal: int) -> None:
        self.bound.pop(ordinal, None)
        self.unbound.discard(ordinal)

    @property
    def members(self) -> int:
        return len(self.bound) + len(self.unbound)

    @property
    def allowed(self) -> int:
        """How many more may go; negative if too many have gone already."""
        budget = self.budget
        if budget.min_available is not None:
            return len(self.bound) - number_of(budget.min_available, self.members)
        return number_of(budget.max_unavailable or "0", self.members) - len(self.unbound)

    @property
    def status(self) -> DisruptionStatus:
        budget = self.budget
        if budget.min_available is not None:
            desired = number_of(budget.min_available, self.members)
        else:
            desired = max(0, self.members - number_of(budget.max_unavailable or "0", self.members))
        return DisruptionStatus(max(0, self.allowed), len(self.bound), desired, self.members)


class BudgetTable:
    """The budgets of one cluster. `touched`: keys of those whose counts may have changed since they were taken."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[ObjectKey, _Budget]] = {}
        self.touched: dict[ObjectKey, None] = {}

    def put(self, budget: PodDisruptionBudget, pods: Iterable[Pod]) -> None:
        """A budget came or changed; `pods`: all of the cluster, of which those of its namespace are counted."""
        here = self._by_namespace.setdefault(budget.namespace, {})
        known = here.get(budget.key)
        if known is not None and known.budget.selector == budget.selector:
            known.budget = budget
        else:
            requirements = requirements_of(budget.selector) if budget.selector is not None else None
            made = here[budget.key] = _Budget(budget, requirements)
            if requirements is not None:
                made.count(pod for pod in pods if pod.namespace == budget.namespace)
        self.touched[budget.key] = None

    def remove(self, key: ObjectKey) -> None:
        here = self._by_namespace.get(key.namespace, {})
        here.pop(key, None)
        if not here:
            self._by_namespace.pop(key.namespace, None)
        self.touched.pop(key, None)

    def concern(self, namespace: str) -> bool:
        """Whether there is a budget in the namespace: else its pods need not be told of."""
        return namespace in self._by_namespace

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that came, changed, or went."""
        pod = new or old
        here = self._by_namespace.get(pod.namespace) if pod is not None else None
        if here is None or pod is None:
            return
        for key, budget in here.items():
            if (
                old is not None
                and new is not None
                and old.labels is new.labels
                and not budget.selects(new.labels)
            ):
                continue
            if new is None:
                budget.forget(pod.ordinal)
            else:
                budget.note(new)
            self.touched[key] = None

    def take_changed(self) -> list[PodDisruptionBudget]:
        """Budgets whose status is not right any more, as they should be; each is told once."""
        changed = []
        for key in self.touched:
            held = self._by_namespace[key.namespace][key]
            if held.status != held.budget.status:
                changed.append(varied(held.budget, status=held.status))
        self.touched.clear()
        return changed

    def restated(self, budget: PodDisruptionBudget) -> None:
        """The budget is stored with its status; nothing else of it changed."""
        self._by_namespace[budget.namespace][budget.key].budget = budget

    def over(self, ordinals: IntArray) -> DisruptionBudgets:
        """The budgets that select one of these bound pods [P], by key."""
        if not self._by_namespace:
            return DisruptionBudgets()
        pods, keys, allowed, selected = set(ordinals.tolist()), [], [], []
        budgets = {key: each for here in self._by_namespace.values() for key, each in here.items()}
        for key in sorted(budgets):
            chosen = tuple(ordinal for ordinal in budgets[key].bound if ordinal in pods)
            if chosen:
                keys.append(key)
                allowed.append(budgets[key].allowed)
                selected.append(tuple(sorted(chosen)))
        return DisruptionBudgets(tuple(keys), tuple(allowed), tuple(selected))


def number_of(text: str, pods: int) -> int:
    """A bound of a budget as a number of pods: a percentage is of all that are selected, rounded up."""
    return -(-pods * int(text[:-1]) // 100) if text.endswith("%") else int(text)
