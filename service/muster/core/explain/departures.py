"""Help by others that go: which running units, whatever their priority, would have to make room for the unit.

Preemption itself chooses them, as if the unit were above everybody; then each is put back that need not go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from muster.core.decide import decide
from muster.core.decision import PreemptionEnd, UnitFate
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explanation import Help, HelpCode
from muster.core.explain.trials import Trials
from muster.core.framework import Profile
from muster.core.messages import number_of
from muster.core.observer import NullObserver
from muster.model.priority import PREEMPT_LOWER_PRIORITY
from muster.model.variations import varied

MOST_PUT_BACK = 16
MOST_NAMED = 5
HURRY = 16
_ABOVE_ALL = 2**31


def departures(trials: Trials, known: Circumstances) -> Iterator[Help]:
    """At most one help."""
    victims = _victims(trials, known)
    if not victims or not _fits_without(trials, victims):
        return
    proved = True
    if len(victims) <= MOST_PUT_BACK:
        for each in list(victims):
            fewer = [other for other in victims if other is not each]
            with trials.without_pods(_pods(fewer)):
                verdict = trials.thorough()
            victims = fewer if verdict.fits else victims
            proved &= verdict.fits or verdict.proved
    yield _help(victims, proved=proved and len(victims) <= MOST_PUT_BACK)


def _victims(trials: Trials, known: Circumstances) -> list[UnitFate]:
    if not known.others.keys:
        return []
    above = varied(
        trials.unit, priority=_ABOVE_ALL, preemption_policy=PREEMPT_LOWER_PRIORITY, victims=known.others
    )
    preemption = decide(trials.snapshot, above, _hurried(trials.profile), NullObserver()).preemption
    if preemption is None or preemption.end is not PreemptionEnd.NOMINATED:
        return []
    return list(preemption.victims)


def _hurried(profile: Profile) -> Profile:
    """The profile with a part of its effort to spare victims: nobody is evicted by an answer."""
    settings = profile.preemption
    hurried = replace(settings, move_budget=settings.move_budget // HURRY, root_candidates=1)
    return replace(profile, preemption=hurried)


def _fits_without(trials: Trials, victims: Sequence[UnitFate]) -> bool:
    with trials.without_pods(_pods(victims)):
        return trials.thorough().fits


def _pods(victims: Sequence[UnitFate]) -> list[int]:
    return [pod for victim in victims for pod in victim.pods]


def _help(victims: Sequence[UnitFate], *, proved: bool) -> Help:
    number = len(_pods(victims))
    names = [str(victim.unit) for victim in victims]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    pods = number_of(number, "pod")
    return Help(
        HelpCode.REMOVE_PODS,
        f"remove {pods} of {', '.join(names[:MOST_NAMED])}{more}",
        tuple(victim.unit for victim in victims),
        number,
        number,
        proved,
        {"units": str(len(victims)), "highestPriority": str(max(victim.priority for victim in victims))},
    )
