"""Rules of a PodDisruptionBudget: exactly one bound, a number or a percentage, and a selector."""

from __future__ import annotations

import re

from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import POD_DISRUPTION_BUDGET
from muster.validation.fields import Faults
from muster.validation.labels import label_selector_faults
from muster.validation.metadata import metadata_faults
from muster.validation.violations import INVALID, REQUIRED, Violation

MOST_PODS = 2**31 - 1

_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_PERCENTAGE = re.compile(r"(\d{1,3})%", re.ASCII)


def disruption_budget_faults(budget: PodDisruptionBudget) -> Faults:
    """All faults of a PodDisruptionBudget."""
    yield from metadata_faults(POD_DISRUPTION_BUDGET, budget)
    if budget.min_available is None and budget.max_unavailable is None:
        yield Violation("spec", REQUIRED, "must have one of minAvailable and maxUnavailable")
    if budget.min_available is not None and budget.max_unavailable is not None:
        yield Violation("spec", INVALID, "must have only one of minAvailable and maxUnavailable")
    yield from _bound_faults("spec.minAvailable", budget.min_available)
    yield from _bound_faults("spec.maxUnavailable", budget.max_unavailable)
    yield from label_selector_faults("spec.selector", budget.selector)


def _bound_faults(path: str, text: str | None) -> Faults:
    if text is None:
        return
    percentage = _PERCENTAGE.fullmatch(text)
    if percentage is not None:
        is_right = int(percentage[1]) <= 100  # noqa: PLR2004
    else:
        is_right = _NUMBER.fullmatch(text) is not None and int(text) <= MOST_PODS
    if not is_right:
        yield Violation(
            path, INVALID, f"must be a number of pods or a percentage up to 100%, not {text[:80]!r}"
        )
