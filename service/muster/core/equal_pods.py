"""A unit of equal pods that may go anywhere, placed in one step: what the recursion comes to if there is room for all.

Most units are such: a pod alone, or a gang without a constraint on topology. Whatever is short or in doubt, told to an
observer, or nominated before is left to the recursion (KEP-6012).
"""

from __future__ import annotations

from muster.core.decision import Decision, DecisionCode, GroupResult, Status
from muster.core.domains import CLUSTER
from muster.core.messages import number_of
from muster.core.ordering import Batch
from muster.core.tree import Unit
from muster.core.trial import Ledger
from muster.model.meta import ObjectKey
from muster.model.variations import variation

MOST_PODS = 64
"""Of larger units the recursion is but a small part, while pods that are placed in vain would be a large one."""
_RESULT = GroupResult(ObjectKey("", "", ""), Status.SUCCESS)
_DECISION = Decision(ObjectKey("", "", ""), DecisionCode.SCHEDULED)
_result = variation(GroupResult, "key", "required", "satisfied")
_decision = variation(Decision, "unit", "result", "assignments", "message")


def place_equal_pods(unit: Unit, ledger: Ledger) -> Decision | None:
    """The decision on a unit of which every pod finds a node, which stay assumed; else None, and nothing is assumed."""
    root, pods = unit.root, unit.root.pods
    if not _is_plain(unit) or len(set(pods.signatures)) != 1:
        return None
    number, mark = len(pods.ids), ledger.mark()
    if ledger.place(Batch(pods.signatures[0], pods.ids), number, CLUSTER) < number:
        ledger.rollback(mark)
        return None
    return _decision(
        _DECISION,
        root.key,
        _result(_RESULT, root.key, root.minimum, root.satisfied + number),
        ledger.assignments(),
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
