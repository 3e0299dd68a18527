"""PodDisruptionBudgets and the pods that each selects (semantics 5.6): how many may go, and what the status says.

Members of a budget are the live pods of its namespace that its selector selects, without those that are on their way
out; healthy ones are bound. Counts follow the pods one by one, for all budgets with one selector together; a selector that
is new is counted once it is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.core.arrays import IntArray
from muster.core.preemption_units import DisruptionBudgets
from muster.engine.selected_pods import Requirements, SelectedPods, SelectorIndex
from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
from muster.model.meta import ObjectKey
from muster.model.pod import Pod
from muster.model.selectors import requirements_of
from muster.model.variations import varied


@dataclass(slots=True, eq=False)
class _Budget:
    """One budget and what its selector selects; None without a selector, which selects nothing."""

    budget: PodDisruptionBudget
    selected: SelectedPods | None

    @property
    def members(self) -> int:
        return len(self.selected) if self.selected is not None else 0

    @property
    def healthy(self) -> int:
        return len(self.selected.bound) if self.selected is not None else 0

    @property
    def allowed(self) -> int:
        """How many more may go; negative if too many have gone already."""
        budget = self.budget
        if budget.min_available is not None:
            return self.healthy - number_of(budget.min_available, self.members)
        return number_of(budget.max_unavailable or "0", self.members) - (self.members - self.healthy)

    @property
    def status(self) -> DisruptionStatus:
        budget = self.budget
        if budget.min_available is not None:
            desired = number_of(budget.min_available, self.members)
        else:
            desired = max(0, self.members - number_of(budget.max_unavailable or "0", self.members))
        return DisruptionStatus(max(0, self.allowed), self.healthy, desired, self.members)


class _Namespace:
    """Budgets of one namespace by key, and their selectors; `uncounted` selectors are those whose pods are still to be found."""

    def __init__(self) -> None:
        self.budgets: dict[ObjectKey, _Budget] = {}
        self.index = SelectorIndex()
        self.uncounted: dict[SelectedPods, None] = {}
        self._selectors: dict[Requirements, SelectedPods] = {}
        self._budgets_of: dict[SelectedPods, dict[ObjectKey, None]] = {}
        self._made = 0

    def put(self, budget: PodDisruptionBudget) -> None:
        """A budget came or changed."""
        known = self.budgets.get(budget.key)
        if known is not None and known.budget.selector == budget.selector:
            known.budget = budget
            return
        self.remove(budget.key)
        selected = self._selected(requirements_of(budget.selector)) if budget.selector is not None else None
        self.budgets[budget.key] = _Budget(budget, selected)
        if selected is not None:
            self._budgets_of[selected][budget.key] = None

    def remove(self, key: ObjectKey) -> None:
        """The budget is there no more, if it ever was; nor is its selector, if no other has it."""
        known = self.budgets.pop(key, None)
        selected = known.selected if known is not None else None
        if selected is None:
            return
        others = self._budgets_of[selected]
        del others[key]
        if not others:
            del self._budgets_of[selected], self._selectors[selected.requirements]
            self.index.discard(selected)
            self.uncounted.pop(selected, None)

    def with_selector(self, selected: SelectedPods) -> Iterable[ObjectKey]:
        """The budgets that have the selector."""
        return self._budgets_of.get(selected, ())

    def count(self, pods: Iterable[Pod]) -> None:
        """Find what new selectors select among these pods of the namespace, in one pass for all of them."""
        if not self.uncounted:
            return
        new = SelectorIndex(self.uncounted)
        for pod in pods:
            for selected in new.of(pod.labels):
                selected.note(pod)
        self.uncounted.clear()

    def _selected(self, requirements: Requirements) -> SelectedPods:
        selected = self._selectors.get(requirements)
        if selected is None:
            self._made += 1
            selected = self._selectors[requirements] = SelectedPods(requirements, self._made)
            self._budgets_of[selected] = {}
            self.index.add(selected)
            self.uncounted[selected] = None
        return selected


class BudgetTable:
    """The budgets of one cluster; `pods` gives all of its pods as they are, with what was noted of them last."""

    def __init__(self, pods: Callable[[], Iterable[Pod]]) -> None:
        self._pods = pods
        self._by_namespace: dict[str, _Namespace] = {}
        self._touched: dict[ObjectKey, None] = {}
        self._moved: dict[str, dict[SelectedPods, None]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """A budget came or changed; its pods are counted when that is asked for first."""
        self._by_namespace.setdefault(budget.namespace, _Namespace()).put(budget)
        self._touched[budget.key] = None

    def remove(self, key: ObjectKey) -> None:
        here = self._by_namespace.get(key.namespace)
        if here is not None:
            here.remove(key)
            if not here.budgets:
                del self._by_namespace[key.namespace]
                self._moved.pop(key.namespace, None)
        self._touched.pop(key, None)

    def concern(self, namespace: str) -> bool:
        """Whether there is a budget in the namespace: else its pods need not be told of."""
        return namespace in self._by_namespace

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that came, changed, or went."""
        pod = new or old
        here = self._by_namespace.get(pod.namespace) if pod is not None else None
        if here is None or pod is None:
            return
        moved = self._moved.setdefault(pod.namespace, {})
        if old is not None:
            for selected in here.index.of(old.labels):
                selected.forget(old.ordinal)
                moved[selected] = None
        if new is not None:
            for selected in here.index.of(new.labels):
                selected.note(new)
                moved[selected] = None

    def count(self) -> None:
        """Count the pods of new selectors as the pods are now. What changed of them before is in that."""
        for namespace, here in self._by_namespace.items():
            if here.uncounted:
                here.count(pod for pod in self._pods() if pod.namespace == namespace)

    def take_changed(self) -> list[PodDisruptionBudget]:
        """Budgets whose status is not right any more, as they should be, in order of arrival; each is told once."""
        self.count()
        concerned = dict.fromkeys(self._touched)
        for namespace, moved in self._moved.items():
            here = self._by_namespace[namespace]
            for selected in sorted(moved, key=lambda each: each.place):
                concerned |= dict.fromkeys(here.with_selector(selected))
        self._touched.clear()
        self._moved.clear()
        held = (self._by_namespace[key.namespace].budgets[key] for key in concerned)
        stated = ((each.budget, each.status) for each in held)
        return [varied(budget, status=status) for budget, status in stated if status != budget.status]

    def restated(self, budget: PodDisruptionBudget) -> None:
        """The budget is stored with its status; nothing else of it changed."""
        self._by_namespace[budget.namespace].budgets[budget.key].budget = budget

    def over(self, ordinals: IntArray) -> DisruptionBudgets:
        """The budgets that select one of these bound pods [P], by key; those with one selector share their pods."""
        if not self._by_namespace:
            return DisruptionBudgets()
        self.count()
        pods, chosen = set(ordinals.tolist()), dict[SelectedPods, tuple[int, ...]]()
        budgets = {key: each for here in self._by_namespace.values() for key, each in here.budgets.items()}
        found: list[tuple[ObjectKey, int, tuple[int, ...]]] = []
        for key in sorted(budgets):
            selected = budgets[key].selected
            if selected is not None and selected not in chosen:
                chosen[selected] = tuple(sorted(pods.intersection(selected.bound)))
            if selected is not None and chosen[selected]:
                found.append((key, budgets[key].allowed, chosen[selected]))
        return DisruptionBudgets(*zip(*found, strict=True)) if found else DisruptionBudgets()


def number_of(text: str, pods: int) -> int:
    """A bound of a budget as a number of pods: a percentage is of all that are selected, rounded up."""
    return -(-pods * int(text[:-1]) // 100) if text.endswith("%") else int(text)
