"""What became of the candidate domains of one group: which is best, which came closest, and the choice in words.

Columns over the candidates in the order of their values. How they were found, by simulating one after the other or
all in lock-step, does not show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.capacity_bound import CapacityBound
from muster.core.cuts import Level
from muster.core.decision import Reason, Status
from muster.core.domains import Domain
from muster.core.framework import PlacementScorer, PlacementView

BEST_DOMAIN = "BEST_DOMAIN"
CLOSEST_DOMAIN = "CLOSEST_DOMAIN"
_EMPTY = '""'
_NO_VIEWS: dict[int, PlacementView] = {}
_WORDS = {int(status): status.name.lower() for status in Status}


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """C domains before any is tried. places: [C] on their level, which cuts the outer domain by the group's label.

    bound: what capacity says of all domains of the level. failures: [C] statuses by it, 0 for those to try.
    """

    outer: Domain
    level: Level
    places: Slots
    bound: CapacityBound
    failures: IntArray

    @property
    def tried(self) -> BoolArray:
        """Of all domains of the level, those to try."""
        tried = np.zeros(len(self.level), dtype=np.bool_)
        tried[self.places[self.failures == 0]] = True
        return tried

    @property
    def domains(self) -> list[Domain]:
        return [self.level.domains[place] for place in self.places.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What became of C candidates. pruned: ruled out by capacity, so not tried.

    satisfied: children that held when a tried candidate ended. ranks: higher is better, of those with Success.
    view: what the scorer saw of a candidate with Success.
    """

    candidates: Candidates
    domains: Sequence[Domain]
    statuses: IntArray
    pruned: BoolArray
    satisfied: IntArray
    ranks: IntArray
    view: Callable[[int], PlacementView]

    @property
    def verdict(self) -> Status:
        """The group's status over all candidates."""
        worst = Status.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Status(int(self.statuses.min(initial=worst)))

    @property
    def best(self) -> int | None:
        """The place of the winner: the highest rank, then the first."""
        return _first_largest(self.ranks, self.statuses == Status.SUCCESS)

    @property
    def closest(self) -> int | None:
        """The tried candidate in which most children held, of several the last; None if all were ruled out."""
        backwards = _first_largest(self.satisfied[::-1], ~self.pruned[::-1])
        return None if backwards is None else len(self.pruned) - 1 - backwards

    @property
    def tried(self) -> int:
        return len(self.pruned) - self.ruled_out

    @property
    def ruled_out(self) -> int:
        return int(np.count_nonzero(self.pruned))

    def events(self) -> Iterator[dict[str, str | int]]:
        """For an observer, one a candidate."""
        columns = zip(self.domains, self.statuses.tolist(), self.pruned.tolist(), strict=True)
        for domain, status, pruned in columns:
            yield event_of(domain, status, pruned=pruned)

    def choice(self, best: int, scorer: PlacementScorer) -> Reason:
        """Why the best won: its score, that of the next, and how many candidates there were of each status."""
        others = self.statuses == Status.SUCCESS
        others[best] = False
        following = _first_largest(self.ranks, others)
        leaders = [
            (self.domains[place], self.view(place)) for place in (best, following) if place is not None
        ]
        return reason_of_choice(leaders, Counter(self.statuses.tolist()), scorer)


class Choice(NamedTuple):
    """The best candidate. tried, pruned: how many there were. events: for an observer, one a candidate."""

    domain: Domain
    reason: Reason
    tried: int
    pruned: int
    events: Callable[[], Iterator[dict[str, str | int]]]


def reason_of_choice(
    leaders: Sequence[tuple[Domain, PlacementView]], counts: Mapping[int, int], scorer: PlacementScorer
) -> Reason:
    """Why the first of the leaders won over the second, if there is one. counts: candidates of each status."""
    winner, view = leaders[0]
    score = scorer.describe(view)
    details = {"key": winner.key, "value": winner.value, "score": score}
    text = f"{winner.key}={winner.value} is best: {score}"
    for following, its_view in leaders[1:]:
        next_score = scorer.describe(its_view)
        details |= {"next_value": following.value, "next_score": next_score}
        text += f"; then {following.value or _EMPTY}: {next_score}"
    for status, number in sorted(counts.items()):
        details[_WORDS[status]] = str(number)
    return Reason(BEST_DOMAIN, text, 0, details)


def event_of(domain: Domain, status: int, *, pruned: bool) -> dict[str, str | int]:
    """What an observer is told of a candidate."""
    return {"domain": domain.value, "status": Status(status).name, "pruned": int(pruned)}


class TriedDomain(NamedTuple):
    """One candidate after its simulation; without one (no view) if its capacity ruled it out."""

    domain: Domain
    status: Status
    satisfied: int = 0
    view: PlacementView | None = None


def outcomes_of(candidates: Candidates, trials: Sequence[TriedDomain], scorer: PlacementScorer) -> Outcomes:
    """Candidates tried one by one, ranked by their scores."""
    views = {
        place: trial.view
        for place, trial in enumerate(trials)
        if trial.status is Status.SUCCESS and trial.view is not None
    }
    scores = {place: scorer.score(view) for place, view in views.items()}
    rank_of = {score: rank for rank, score in enumerate(sorted(set(scores.values())))}
    ranks = [rank_of[scores[place]] if place in scores else -1 for place in range(len(trials))]
    return Outcomes(
        candidates=candidates,
        domains=[trial.domain for trial in trials],
        statuses=np.array([trial.status for trial in trials], dtype=np.int64),
        pruned=np.array([trial.view is None for trial in trials], dtype=np.bool_),
        satisfied=np.array([trial.satisfied for trial in trials], dtype=np.int64),
        ranks=np.array(ranks, dtype=np.int64),
        view=views.__getitem__,
    )


def all_ruled_out(candidates: Candidates) -> Outcomes:
    """Of candidates none of which is to be tried."""
    number = len(candidates.places)
    return Outcomes(
        candidates=candidates,
        domains=candidates.domains,
        statuses=candidates.failures,
        pruned=np.ones(number, dtype=np.bool_),
        satisfied=np.zeros(number, dtype=np.int64),
        ranks=np.full(number, -1, dtype=np.int64),
        view=_NO_VIEWS.__getitem__,
    )


def closest_domain(domain: Domain) -> Reason:
    """Names the candidate that came closest; a failed group's counters and reasons are those in it."""
    details = {"key": domain.key, "value": domain.value}
    return Reason(CLOSEST_DOMAIN, f"{domain.key}={domain.value} came closest", 0, details)


def _first_largest(values: IntArray, among: BoolArray) -> int | None:
    places = np.flatnonzero(among)
    return int(places[values[places].argmax()]) if len(places) else None
