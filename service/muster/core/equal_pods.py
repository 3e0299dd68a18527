"""Units of equal pods that may go anywhere, placed in one step: what the recursion comes to if there is room for all.

Most units are such: a pod alone, or a gang without a constraint on topology. Whatever is short or in doubt, told to an
observer, or nominated before is left to the recursion (KEP-6012). Several that differ in their names alone are placed as
one: their pods, in order, are as many equal pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.core.decision import Assignments, Decision, DecisionCode, GroupResult, Status
from muster.core.domains import CLUSTER
from muster.core.messages import number_of
from muster.core.ordering import Batch
from muster.core.pod_placement import PodPlacer
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.core.trial import Ledger, few_assignments
from muster.model.meta import ObjectKey
from muster.model.variations import variation

MOST_PODS = 64
"""Of larger units the recursion is but a small part, while pods that are placed in vain would be a large one."""
_PODS_TOGETHER = 32
"""Of all units that are placed in one step; the placer takes no more one by one where nodes are in many states."""
_RESULT = GroupResult(ObjectKey("", "", ""), Status.SUCCESS)
_DECISION = Decision(ObjectKey("", "", ""), DecisionCode.SCHEDULED)
_result = variation(GroupResult, "key", "required", "satisfied")
_decision = variation(Decision, "unit", "result", "assignments", "message")


def place_equal_pods(unit: Unit, ledger: Ledger) -> Decision | None:
    """The decision on a unit of which every pod finds a node, which stay assumed; else None, and nothing is assumed."""
    pods = unit.root.pods
    if not _is_plain(unit) or len(set(pods.signatures)) != 1:
        return None
    number, mark = len(pods.ids), ledger.mark()
    if ledger.place(Batch(pods.signatures[0], pods.ids), number, CLUSTER) < number:
        ledger.rollback(mark)
        return None
    return _placed(unit, ledger.assignments())


def most_together(unit: Unit, snapshot: Snapshot, placer: PodPlacer) -> int:
    """How many units that are equal to this one but for their names may be placed in one step."""
    signatures = unit.root.pods.signatures
    if not _is_plain(unit) or unit.promised.signatures or len(set(signatures)) != 1:
        return 0
    return _PODS_TOGETHER // len(signatures) if placer.is_plain(snapshot.signatures[signatures[0]]) else 0


def place_equal_units(units: Sequence[Unit], snapshot: Snapshot, placer: PodPlacer) -> list[Decision]:
    """Decisions on the first of these units, for as long as every pod of each finds a node; those stay assumed.

    units: equal but for their names, and no more than `most_together`.
    """
    pods, mark = units[0].root.pods, snapshot.mark()
    number, index = len(pods.ids), pods.signatures[0]
    slots = placer.place(index, number * len(units), None).tolist()
    whole = len(slots) // number
    if whole < len(units):
        snapshot.rollback(mark)
        slots = placer.place(index, number * whole, None).tolist() if whole else []
    return [
        _placed(unit, few_assignments(snapshot.nodes, unit.root.pods.ids, slots[start : start + number]))
        for unit, start in zip(units, range(0, len(slots), number), strict=False)
    ]


def _placed(unit: Unit, assignments: Assignments) -> Decision:
    root, number = unit.root, len(unit.root.pods.ids)
    return _decision(
        _DECISION,
        root.key,
        _result(_RESULT, root.key, root.minimum, root.satisfied + number),
        assignments,
        f"placed {number_of(number, 'pod')}",
    )


def _is_plain(unit: Unit) -> bool:
    """Whether nothing but room and filters decides about the unit, and its minimum is in reach."""
    root, earlier = unit.root, unit.earlier
    if not root.is_leaf or root.topology_key is not None or unit.excluded_nodes:
        return False
    if earlier.nominations.pods or earlier.is_waiting:
        return False
    number = len(root.pods.ids)
    return number <= MOST_PODS and root.satisfied + number >= root.minimum
