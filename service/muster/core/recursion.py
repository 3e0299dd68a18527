"""The recursion (KEP-6012): one algorithm for a pod, a PodGroup and every level of CompositePodGroups.

A group is checked before it is simulated and after each child. It stops at once when its minimum is out of reach,
and reverts all that it assumed. First the whole tree gets its minimum, then it is filled without moving anything.
A constrained group tries each domain inside its parent's and keeps the best, or asks `lockstep` what it would find.
Greedy: no child is tried again.

What fits where is for `pod_placement`, statuses are for `feasibility`, the order of pods for `ordering`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.core.candidate_outcomes import (
    Candidates,
    Choice,
    Outcomes,
    TriedDomain,
    all_ruled_out,
    outcomes_of,
)
from muster.core.capacity import rooms_of
from muster.core.capacity_bound import bound_inside, is_hopeless
from muster.core.cuts import levels_of
from muster.core.decision import Status
from muster.core.demand import Demand
from muster.core.domains import Domain
from muster.core.framework import PlacementView, Profile
from muster.core.lockstep import Rehearsal
from muster.core.observer import NullObserver, Observer
from muster.core.ordering import Batch, batches_of
from muster.core.pins import allowed_places
from muster.core.placement_view import placement_view
from muster.core.pod_placement import PodPlacer
from muster.core.reasons import refusal_of
from muster.core.shortfalls import lacking_domains
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit
from muster.core.trial import UNSUCCESSFUL, Ledger, Trial, already_holds, attributes_of, begin


@dataclass(slots=True)
class Recursion:
    """Decides one unit on a snapshot; what it assumes stays assumed, in the ledger, until rolled back."""

    snapshot: Snapshot
    unit: Unit
    profile: Profile
    placer: PodPlacer
    ledger: Ledger
    observer: Observer
    rehearsal: Rehearsal
    is_trying: bool = False
    """Whether a candidate is simulated that will be reverted: what nobody hears of is not worked out."""
    _demand: Demand | None = field(default=None, init=False)

    @property
    def demand(self) -> Demand:
        """What the unit's groups need; most units are placed before anybody asks."""
        if self._demand is None:
            self._demand = Demand(rooms_of(self.snapshot, self.placer))
        return self._demand

    def minimum(self, group: GroupTree, outer: Domain) -> Trial:
        """Assume the group's minimum inside the outer domain; if it cannot be met, nothing stays assumed."""
        self.observer.enter("group", group.key)
        trial = begin(group)
        if trial.status not in UNSUCCESSFUL:
            if group.topology_key is not None:
                trial = self._choose_domain(trial, group.topology_key, outer)
            else:
                self._minimum_inside(trial, outer)
        self.observer.leave(attributes_of(trial) if self.observer.is_recording else {})
        return trial

    def is_proof(self, trial: Trial) -> bool:
        """Whether bounds prove that the minimum of the root, which failed, fits nowhere in the cluster."""
        if trial.group.topology_key is not None:
            return not trial.tried
        return is_hopeless(self.demand, trial.group)

    def fill(self, trial: Trial, outer: Domain) -> None:
        """Add what else fits to a group whose minimum is assumed, inside the domains that were chosen."""
        if trial.group.is_leaf and not trial.waiting:
            return
        self.observer.enter("fill", trial.group.key)
        self._fill_inside(trial, trial.domain or outer)
        self.observer.leave(attributes_of(trial) if self.observer.is_recording else {})

    def _fill_inside(self, trial: Trial, domain: Domain) -> None:
        if trial.group.is_leaf:
            self._place_pods(trial, domain, fill=True)
        for place, child in enumerate(trial.group.children):
            if trial.children[place] is None and child.admissible:
                trial.children[place] = self.minimum(child, domain)
                if not already_holds(child):
                    _count(trial, trial.children[place])
        for known in trial.children:
            if known is not None and known.status is Status.SUCCESS:
                self.fill(known, domain)

    def _minimum_inside(self, trial: Trial, domain: Domain) -> None:
        mark = self.ledger.mark()
        if trial.group.is_leaf:
            trial.waiting = batches_of(self.snapshot, self.unit, trial.group.pods)
            self._place_pods(trial, domain, fill=False)
        for place, child in enumerate(trial.group.children):
            if trial.tally.status is not Status.WAIT:
                break
            if child.admissible and not already_holds(child):
                trial.children[place] = self.minimum(child, domain)
                _count(trial, trial.children[place])
        if trial.tally.status is not Status.SUCCESS:
            self.ledger.rollback(mark)

    def _place_pods(self, leaf: Trial, domain: Domain, *, fill: bool) -> None:
        """Place a leaf's waiting pods: up to its minimum, or all."""
        self.observer.enter("pods", leaf.group.key)
        tally = leaf.tally
        before = tally.satisfied
        while leaf.waiting and (fill or tally.status is Status.WAIT):
            batch = leaf.waiting.pop(0)
            missing = len(batch.pods) if fill else tally.required - tally.satisfied
            wanted = min(len(batch.pods), missing)
            placed = self.ledger.place(batch, wanted, domain)
            tally.place(placed)
            rest = batch.pods[placed:]
            if placed < wanted:
                self._refuse(leaf, batch, len(rest), domain, fill=fill)
            elif rest:
                leaf.waiting.insert(0, Batch(batch.signature, rest, batch.excluded))
        placed = tally.satisfied - before
        self.observer.leave(
            {"key": str(leaf.group.key), "pods": placed} if self.observer.is_recording else {}
        )

    def _refuse(self, leaf: Trial, batch: Batch, number: int, domain: Domain, *, fill: bool) -> None:
        """Equal pods fail alike; before the minimum is met, tried one by one they end the group on the way."""
        signature = self.snapshot.signatures[batch.signature]
        refusal = refusal_of(self.snapshot, self.profile, signature, domain, batch.excluded)
        leaf.pod_reasons.setdefault(batch.signature, refusal.reasons)
        leaf.tally.fail(number if fill else min(number, leaf.tally.spare + 1), refusal.status)

    def _choose_domain(self, trial: Trial, key: str, outer: Domain) -> Trial:
        """Try every candidate with minimum and fill, revert, and assume the minimum in the best."""
        choice = self.rehearsal.choice(trial.group, outer)
        if choice is not None:
            self._take(trial, choice)
            return trial
        (level,) = levels_of(self.snapshot, outer, (key,))
        places, trial.reasons = allowed_places(self.snapshot.nodes, trial.group, level, outer)
        bound = bound_inside(self.demand, outer, key)
        failures = bound.failures(trial.group)[places]
        outcomes = self._outcomes(trial.group, Candidates(outer, level, places, bound, failures))
        if self.observer.is_recording:
            for event in outcomes.events():
                self.observer.candidate(event)
        best = outcomes.best
        if best is not None:
            trial.domain = outcomes.domains[best]
            trial.reasons = [outcomes.choice(best, self.profile.placement_scorer)]
            self._minimum_inside(trial, trial.domain)
        else:
            trial = self._closest(trial, outcomes)
        trial.tried, trial.pruned = outcomes.tried, outcomes.ruled_out
        return trial

    def _take(self, trial: Trial, choice: Choice) -> None:
        """Assume the minimum in a domain that is known to be the best."""
        if self.observer.is_recording:
            for event in choice.events():
                self.observer.candidate(event)
        trial.domain, trial.reasons = choice.domain, [choice.reason]
        trial.tried, trial.pruned = choice.tried, choice.pruned
        self._minimum_inside(trial, choice.domain)

    def _closest(self, trial: Trial, outcomes: Outcomes) -> Trial:
        """A group that no candidate holds is shown, to the observer too, as it was in the one that came closest."""
        if not self.is_trying:
            reasons = trial.reasons or lacking_domains(trial.group, outcomes)
            if outcomes.closest is not None:
                trial, _ = self._simulate(trial.group, outcomes.domains[outcomes.closest])
            trial.reasons = reasons
        trial.verdict = outcomes.verdict
        return trial

    def _outcomes(self, group: GroupTree, candidates: Candidates) -> Outcomes:
        """Simulate the group in each candidate that its capacity does not rule out, unless it is known what that gives."""
        if candidates.failures.all():
            return all_ruled_out(candidates)
        rehearsed = self.rehearsal.outcomes(group, candidates)
        if rehearsed is not None:
            return rehearsed
        trials: list[TriedDomain] = []
        for domain, failure in zip(candidates.domains, candidates.failures.tolist(), strict=True):
            if failure:
                trials.append(TriedDomain(domain, Status(failure)))
            else:
                attempt, view = self._try_domain(group, domain)
                trials.append(TriedDomain(domain, attempt.status, attempt.tally.satisfied, view))
        return outcomes_of(candidates, trials, self.profile.placement_scorer)

    def _try_domain(self, group: GroupTree, domain: Domain) -> tuple[Trial, PlacementView]:
        """Simulate the group in a candidate, unheard; with what the scorer is shown of it."""
        before = self.observer, self.is_trying
        self.observer, self.is_trying = NullObserver(), True
        simulated = self._simulate(group, domain)
        self.observer, self.is_trying = before
        return simulated

    def _simulate(self, group: GroupTree, domain: Domain) -> tuple[Trial, PlacementView]:
        """Minimum and fill inside the domain, reverted."""
        mark = self.ledger.mark()
        attempt = begin(group)
        self._minimum_inside(attempt, domain)
        if attempt.status is Status.SUCCESS:
            self.fill(attempt, domain)
        view = placement_view(self.snapshot, attempt, domain)
        self.ledger.rollback(mark)
        return attempt, view


def _count(trial: Trial, child: Trial | None) -> None:
    """Enter a child's status into its parent's counters."""
    if child is not None and child.status is Status.SUCCESS:
        trial.tally.place()
    elif child is not None:
        trial.tally.fail(1, child.status)
