"""What a decision means for each group of its hierarchy, and for the pods that it left (semantics 6). Pure.

A group is scheduled if its own result and those of all above it are Success. One that failed its own check says why;
one below it, tried or not, names it: what such a group had placed was taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from muster.core.decision import Decision, GroupResult, Status
from muster.core.messages import group_message, pod_message
from muster.core.tree import GroupTree
from muster.engine.hierarchy import Shortage
from muster.model.meta import ObjectKey


class Outcome(NamedTuple):
    """Whether a group is scheduled, and if not, why; `by_signature` is why pods of a shape were not placed (leaf groups)."""

    scheduled: bool
    message: str
    by_signature: Mapping[int, str]


def outcomes(
    tree: GroupTree, decision: Decision, short: Mapping[ObjectKey, Shortage]
) -> dict[ObjectKey, Outcome]:
    """By group of the tree. `short`: why groups that are not admissible were not tried."""
    found: dict[ObjectKey, Outcome] = {}
    if decision.result is not None:
        _Telling(found, decision, short).tell(tree, decision.result, "")
    return found


def holding(result: GroupResult) -> Iterator[GroupResult]:
    """The groups whose assignments stand: those that are Success with all above them."""
    if result.status is Status.SUCCESS:
        yield result
        for child in result.children:
            yield from holding(child)


def all_admissible(tree: GroupTree) -> bool:
    """Whether no group of the tree is held back."""
    return tree.admissible and all(map(all_admissible, tree.children))


def has_pods_to_try(tree: GroupTree) -> bool:
    """Whether a pod waits in a part of the tree that may be tried; if none does, only the tree's own changes help."""
    if not tree.admissible:
        return False
    return bool(tree.pods.ids) or any(map(has_pods_to_try, tree.children))


@dataclass(frozen=True, slots=True)
class _Telling:
    found: dict[ObjectKey, Outcome]
    decision: Decision
    short: Mapping[ObjectKey, Shortage]

    def tell(self, tree: GroupTree, result: GroupResult, above: str) -> None:
        """Of the group and all below it; `above` tells of the nearest ancestor that failed its own check."""
        own = self._own_failure(tree, result)
        because = own or above
        by_signature = {index: pod_message(reasons) for index, reasons in result.pod_reasons.items()}
        self.found[tree.key] = Outcome(not because, because, by_signature)
        below = f"{tree.key}: {own}" if own else above
        for child, of_child in zip(tree.children, result.children, strict=True):
            self.tell(child, of_child, below)

    def _own_failure(self, tree: GroupTree, result: GroupResult) -> str:
        """Why the group itself does not hold; "" if it does, or was left before that was known."""
        if result.status is Status.SUCCESS:
            return ""
        if tree.key == self.decision.unit:
            return self.decision.message
        if not tree.admissible:
            return self.short[tree.key].because if tree.key in self.short else "it was not ready"
        return "" if result.status is Status.WAIT else group_message(result)
