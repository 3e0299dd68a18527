"""Units of equal pods that may go anywhere, placed in one step: what the recursion comes to if there is room for all.

Most units are such: a pod alone, or a gang or a tree without a constraint on topology. Whatever is short or in doubt, told
to an observer, or nominated before is left to the recursion (KEP-6012). Several that differ in their names alone are placed
as one: their pods, in order, are as many equal pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.core.decision import Assignments, Decision, DecisionCode, GroupResult, Status
from muster.core.domains import CLUSTER
from muster.core.messages import number_of
from muster.core.ordering import Batch
from muster.core.pod_placement import PodPlacer
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit, leaves
from muster.core.trial import Ledger, few_assignments
from muster.model.meta import ObjectKey
from muster.model.variations import variation

MOST_PODS = 64
"""Of larger units the recursion is but a small part, while pods that are placed in vain would be a large one."""
_PODS_TOGETHER = 32
"""Of all units that are placed in one step; the placer takes no more one by one where nodes are in many states."""
_RESULT = GroupResult(ObjectKey("", "", ""), Status.SUCCESS)
_DECISION = Decision(ObjectKey("", "", ""), DecisionCode.SCHEDULED)
_result = variation(GroupResult, "key", "required", "satisfied", "children")
_decision = variation(Decision, "unit", "result", "assignments", "message")


def place_equal_pods(unit: Unit, ledger: Ledger) -> Decision | None:
    """The decision on a unit of which every pod finds a node, which stay assumed; else None, and nothing is assumed."""
    signature = _only_signature(unit)
    if signature is None:
        return None
    pods, mark = _in_order(unit.root), ledger.mark()
    if ledger.place(Batch(signature, pods), len(pods), CLUSTER) < len(pods):
        ledger.rollback(mark)
        return None
    return _placed(unit, ledger.assignments())


def most_together(unit: Unit, snapshot: Snapshot, placer: PodPlacer) -> int:
    """How many units that are equal to this one but for their names may be placed in one step."""
    signature = _only_signature(unit)
    if signature is None or unit.promised.signatures:
        return 0
    return _PODS_TOGETHER // unit.pod_count if placer.is_plain(snapshot.signatures[signature]) else 0


def place_equal_units(units: Sequence[Unit], snapshot: Snapshot, placer: PodPlacer) -> list[Decision]:
    """Decisions on the first of these units, for as long as every pod of each finds a node; those stay assumed.

    units: equal but for their names, and no more than `most_together`.
    """
    orders, mark = [_in_order(unit.root) for unit in units], snapshot.mark()
    number, index = len(orders[0]), leaves(units[0].root)[0].pods.signatures[0]
    slots = placer.place(index, number * len(units), None).tolist()
    whole = len(slots) // number
    if whole < len(units):
        snapshot.rollback(mark)
        slots = placer.place(index, number * whole, None).tolist() if whole else []
    return [
        _placed(unit, few_assignments(snapshot.nodes, pods, slots[start : start + number]))
        for unit, pods, start in zip(units, orders, range(0, len(slots), number), strict=False)
    ]


def _placed(unit: Unit, assignments: Assignments) -> Decision:
    message = f"placed {number_of(len(assignments.pods), 'pod')}"
    return _decision(_DECISION, unit.key, _held(unit.root), assignments, message)


def _held(group: GroupTree) -> GroupResult:
    """The result of a group all of whose children hold."""
    if group.is_leaf:
        return _result(_RESULT, group.key, group.minimum, group.satisfied + len(group.pods.ids), ())
    children = tuple(map(_held, group.children))
    return _result(_RESULT, group.key, group.minimum, len(children), children)


def _in_order(root: GroupTree) -> tuple[int, ...]:
    """The pods in the order in which the recursion places them: the minimum of the whole tree, then what else there is."""
    return root.pods.ids if root.is_leaf else (*_minimum(root), *_filled(root))


def _minimum(group: GroupTree) -> list[int]:
    if group.is_leaf:
        return list(group.pods.ids[: group.minimum])
    return [pod for child in group.children[: group.minimum] for pod in _minimum(child)]


def _filled(group: GroupTree) -> list[int]:
    """What comes once the minimum of the group is placed: that of its other children, then what else each of them has."""
    if group.is_leaf:
        return list(group.pods.ids[group.minimum :])
    late = [pod for child in group.children[group.minimum :] for pod in _minimum(child)]
    return late + [pod for child in group.children for pod in _filled(child)]


def _only_signature(unit: Unit) -> int | None:
    """That of all its pods, if nothing but room and filters decides about the unit, and all of it may hold; else None."""
    root, earlier = unit.root, unit.earlier
    if unit.excluded_nodes or earlier.nominations.pods or earlier.is_waiting:
        return None
    if root.is_leaf:
        is_plain = root.topology_key is None and root.satisfied + len(root.pods.ids) >= root.minimum
    else:
        is_plain = _is_untouched(root)
    signatures = {index for leaf in leaves(root) for index in leaf.pods.signatures} if is_plain else ()
    return next(iter(signatures)) if len(signatures) == 1 and unit.pod_count <= MOST_PODS else None


def _is_untouched(group: GroupTree) -> bool:
    """Whether none of the tree holds yet, all of it may, and may go anywhere."""
    if group.topology_key is not None or not group.admissible or group.minimum < 1:
        return False
    if group.is_leaf:
        return not group.satisfied and len(group.pods.ids) >= group.minimum
    return len(group.children) >= group.minimum and all(map(_is_untouched, group.children))
