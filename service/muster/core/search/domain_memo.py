"""What the domain search knows already: answers by (regions that are alike, parts that are alike).

A packing and a proof hold for good; "unknown" holds for the effort it was made with. What holds too many parts to fit
is remembered as such, so that no larger collection is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.core.search.packing import Verdict

Kinds = tuple[int, ...]
Place = tuple[str, int]
"""Regions that are alike: by shape, or one region by its number."""
_MOST_NOGOODS = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """placed: (place among the parts' leaves, type, place in the region's order, number of pods)."""

    verdict: Verdict
    placed: tuple[tuple[int, int, int, int], ...] = ()


IMPOSSIBLE = Answer(Verdict.IMPOSSIBLE)
UNKNOWN = Answer(Verdict.UNKNOWN)


@dataclass(slots=True)
class Memo:
    _answers: dict[tuple[Place, Kinds], tuple[Answer, int]] = field(default_factory=dict)
    _nogoods: dict[Place, list[Kinds]] = field(default_factory=dict)

    def get(self, place: Place, kinds: Kinds, effort: int) -> Answer | None:
        """The answer, if no more can be expected of this effort."""
        known = self._answers.get((place, kinds))
        if known is not None:
            answer, made_with = known
            return answer if answer.verdict is not Verdict.UNKNOWN or made_with >= effort else None
        if any(_is_part(nogood, kinds) for nogood in self._nogoods.get(place, ())):
            return IMPOSSIBLE
        return None

    def found(self, place: Place, kinds: Kinds) -> Answer | None:
        """The packing, if there is one."""
        answer, _ = self._answers.get((place, kinds), (UNKNOWN, 0))
        return answer if answer.verdict is Verdict.FOUND else None

    def put(self, place: Place, kinds: Kinds, effort: int, answer: Answer) -> None:
        self._answers[place, kinds] = (answer, effort)
        if answer.verdict is Verdict.IMPOSSIBLE:
            nogoods = self._nogoods.setdefault(place, [])
            if len(nogoods) < _MOST_NOGOODS:
                nogoods.append(kinds)


def _is_part(small: Kinds, large: Kinds) -> bool:
    """Whether one ascending collection is contained in another, each as often."""
    rest = iter(large)
    return all(kind in rest for kind in small)
