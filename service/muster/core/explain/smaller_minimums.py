"""Help by a lower minimum: for each gang that does not hold, the smallest step down with which the unit is scheduled."""

from __future__ import annotations

from collections.abc import Iterator

from muster.core.decision import GroupResult
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explanation import UNSUCCESSFUL, Help, HelpCode, results_below
from muster.core.explain.trials import Trials, groups_below, replaced, smallest
from muster.core.tree import GroupTree, Unit
from muster.model.variations import varied

MOST_GROUPS = 6


def lower_minimums(
    trials: Trials, result: GroupResult, known: Circumstances, *, now_proved: bool
) -> Iterator[Help]:
    """A help for each failed gang that has one, the innermost gangs first."""
    failed = {each.key for each in results_below(result) if each.status in UNSUCCESSFUL}
    gangs = [group for group in groups_below(trials.unit.root) if group.is_gang and group.minimum > 1]
    concerned = [group for group in gangs if group.key in failed or not group.admissible]
    for group in concerned[::-1][:MOST_GROUPS]:
        found = smallest(
            lambda step, group=group: trials.quick(_lowered(trials, known, group, step)),  # type: ignore[misc]
            lambda step, group=group: trials.thorough(_lowered(trials, known, group, step)),  # type: ignore[misc]
            group.minimum - 1,
            now_proved=now_proved,
        )
        if found is not None:
            yield _help(group, group.minimum - found.number, proved=found.proved)


def _lowered(trials: Trials, known: Circumstances, group: GroupTree, step: int) -> Unit:
    root = replaced(trials.unit.root, group.key, lambda each: varied(each, minimum=each.minimum - step))
    return trials.with_root(known.admitted(root))


def _help(group: GroupTree, minimum: int, *, proved: bool) -> Help:
    return Help(
        HelpCode.LOWER_MINIMUM,
        f"lower the minimum of {group.key} from {group.minimum} to {minimum}",
        (group.key,),
        minimum,
        group.minimum - minimum,
        proved,
        {"from": str(group.minimum), "to": str(minimum)},
    )
