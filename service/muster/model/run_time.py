"""How long a pod runs at most, as its owner declares it in an annotation: what reservations are worked out from.

Kubernetes has no such field on a pod that a scheduler could plan with, so it is an annotation, with the unit in its
name as Kubernetes has it (`terminationGracePeriodSeconds`). Nobody stops a pod that runs longer.
"""

from __future__ import annotations

import re
from functools import lru_cache

from muster.model.pod import Pod

MAX_RUN_TIME_SECONDS = "muster.dev/max-run-time-seconds"
LONGEST_RUN_TIME_SECONDS = 2**31 - 1
_WHOLE_NUMBER = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)


def max_run_time_seconds(pod: Pod) -> int | None:
    """What the pod declares; None if it declares nothing, or nothing that can be read."""
    declared = pod.annotations.get(MAX_RUN_TIME_SECONDS) if pod.annotations else None
    return None if declared is None else run_time_of(declared)


@lru_cache(maxsize=4_096)
def run_time_of(declared: str) -> int | None:
    """The annotation's value as seconds; None if it is no whole number from 1 to LONGEST_RUN_TIME_SECONDS."""
    if _WHOLE_NUMBER.fullmatch(declared) is None:
        return None
    seconds = int(declared)
    return seconds if seconds <= LONGEST_RUN_TIME_SECONDS else None
