"""Where the pods of a PodGroup belong as victims (KEP-5710): found by climbing the groups above it.

Trees may be broken: climbing stops at a missing parent, at a repeat, and at the fourth level.
"""

from __future__ import annotations

from typing import NamedTuple

from muster.engine.cluster_state import ClusterState, Name, parent_key_of
from muster.model.meta import POD_GROUP, ObjectKey

MOST_LEVELS = 4


class Belonging(NamedTuple):
    """What the pods of a group are as victims. whole: the group that is taken whole with them; None: each is taken alone."""

    whole: ObjectKey | None
    priority: int


def belonging_of(state: ClusterState, leaf: Name) -> Belonging | None:
    """Of the pods of a PodGroup; None if it does not exist, and each pod goes by itself, at its own priority."""
    belonging: Belonging | None = None
    seen: set[ObjectKey] = set()
    current: ObjectKey | None = ObjectKey(POD_GROUP, *leaf)
    while current is not None and current not in seen and len(seen) < MOST_LEVELS:
        group = state.group(current)
        if group is None:
            break
        seen.add(current)
        below = belonging.whole if belonging is not None else None
        belonging = Belonging(current if group.spec.is_disrupted_whole else below, group.spec.priority or 0)
        current = parent_key_of(group)
    return belonging
