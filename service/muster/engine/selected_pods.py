"""Pods by the label selectors that select them: each selector once, whoever has it, found by the pairs that it asks for.

What is asked is which selectors select a pod, whose labels it shares with many. So a pod is held against those selectors
alone that ask for one of its pairs of key and value, and against those that ask for none, and that once for all pods
with these labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from muster.model.meta import SelectorRequirement
from muster.model.pod import Pod
from muster.model.selectors import IN, labels_match

Requirements = tuple[SelectorRequirement, ...]
_Pair = tuple[str, str]
_MOST_LABELS = 65_536


@dataclass(slots=True, eq=False)
class SelectedPods:
    """Ordinals of the live pods that one selector selects; `place` is that of the selector in the order of arrival."""

    requirements: Requirements
    place: int
    bound: dict[int, None] = field(default_factory=dict)
    unbound: set[int] = field(default_factory=set)

    def note(self, pod: Pod) -> None:
        """The pod, which is selected, is as it is here."""
        self.forget(pod.ordinal)
        if pod.is_member:
            if pod.node_name:
                self.bound[pod.ordinal] = None
            else:
                self.unbound.add(pod.ordinal)

    def forget(self, ordinal: int) -> None:
        self.bound.pop(ordinal, None)
        self.unbound.discard(ordinal)

    def __len__(self) -> int:
        return len(self.bound) + len(self.unbound)


class SelectorIndex:
    """Finds the selectors that select given labels."""

    def __init__(self, some: Iterable[SelectedPods] = ()) -> None:
        self._asking: dict[_Pair, dict[SelectedPods, None]] = {}
        self._others: dict[SelectedPods, None] = {}
        self._pairs_of: dict[SelectedPods, Sequence[_Pair]] = {}
        self._known: dict[int, tuple[dict[str, str], tuple[SelectedPods, ...]]] = {}
        for each in some:
            self.add(each)

    def __len__(self) -> int:
        return len(self._pairs_of)

    def add(self, selected: SelectedPods) -> None:
        """Take in a selector that is not there."""
        pairs = self._pairs_of[selected] = self._rarest_pairs(selected.requirements)
        for pair in pairs:
            self._asking.setdefault(pair, {})[selected] = None
        if not pairs:
            self._others[selected] = None
        self._known.clear()

    def discard(self, selected: SelectedPods) -> None:
        """Leave out a selector, if it is there."""
        for pair in self._pairs_of.pop(selected, ()):
            del self._asking[pair][selected]
            if not self._asking[pair]:
                del self._asking[pair]
        self._others.pop(selected, None)
        self._known.clear()

    def of(self, labels: dict[str, str]) -> tuple[SelectedPods, ...]:
        """Those that select pods with these labels, in order of arrival; the entry keeps the labels alive."""
        known = self._known.get(id(labels))
        if known is None:
            if len(self._known) >= _MOST_LABELS:
                self._known.clear()
            known = self._known[id(labels)] = (labels, self._found(labels))
        return known[1]

    def _found(self, labels: dict[str, str]) -> tuple[SelectedPods, ...]:
        asked = [self._others, *(self._asking[pair] for pair in labels.items() if pair in self._asking)]
        found = [each for some in asked for each in some if labels_match(each.requirements, labels)]
        return tuple(sorted(found, key=lambda each: each.place))

    def _rarest_pairs(self, requirements: Requirements) -> Sequence[_Pair]:
        """One of the pairs must be among a pod's labels; of several choices that for which the fewest others ask."""
        listed = [each for each in requirements if each.operator == IN]
        choices = [[(each.key, value) for value in dict.fromkeys(each.values)] for each in listed]
        return min(choices, key=self._others_asking, default=())

    def _others_asking(self, pairs: Sequence[_Pair]) -> int:
        return sum(len(self._asking.get(pair, ())) for pair in pairs)
