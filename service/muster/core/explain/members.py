"""Help for groups that are not ready: pods that are missing, and gates to remove (semantics 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explanation import Help, HelpCode
from muster.core.explain.trials import Trials, groups_below, replaced
from muster.core.messages import number_of
from muster.core.tree import MOST_PODS_A_UNIT, GroupTree, PendingPods, leaves
from muster.model.meta import ObjectKey
from muster.model.variations import varied

_Item = TypeVar("_Item")


def missing_members(trials: Trials, known: Circumstances) -> Iterator[Help]:
    """Pods to add to one leaf that is short of them; to all of them if no one alone is enough."""
    every = leaves(trials.unit.root)
    short = [leaf for leaf in every if _missing(leaf) > 0 and leaf.pods.ids and leaf.key not in known.gated]
    for chosen in _one_or_all(short, lambda some: _completes(trials, known, some)):
        yield _members_help(chosen)


def gates_to_remove(trials: Trials, known: Circumstances) -> Iterator[Help]:
    """All gates of one leaf; of all leaves if no one alone is enough."""
    gated = [group.key for group in groups_below(trials.unit.root) if group.key in known.gated]
    for chosen in _one_or_all(gated, lambda some: _opens(trials, known, some)):
        yield _gates_help(chosen, known.gated)


def _one_or_all(items: list[_Item], helps: Callable[[list[_Item]], bool]) -> list[list[_Item]]:
    """Each item that helps alone; if none does, all of them if they help together."""
    alone = [[item] for item in items if helps([item])]
    if alone or len(items) < 2:  # noqa: PLR2004 - one alone was asked for already
        return alone
    return [items] if helps(items) else []


def _completes(trials: Trials, known: Circumstances, short: list[GroupTree]) -> bool:
    root = trials.unit.root
    # The trial makes each of them, and a minimum may ask for thousands of millions.
    if trials.unit.pod_count + sum(map(_missing, short)) > MOST_PODS_A_UNIT:
        return False
    first_new = max(pod for leaf in leaves(root) for pod in leaf.pods.ids) + 1
    for leaf in short:
        root = replaced(root, leaf.key, partial(_completed, first_new=first_new))
        first_new += _missing(leaf)
    return trials.thorough(trials.with_root(known.admitted(root))).fits


def _opens(trials: Trials, known: Circumstances, chosen: list[ObjectKey]) -> bool:
    held = {key: pods for key, pods in known.gated.items() if key not in chosen}
    root = trials.unit.root
    for key in chosen:
        root = replaced(root, key, partial(_with_pods, gated=known.gated))
    opened = Circumstances(known.others, held, known.barred)
    return trials.thorough(trials.with_root(opened.admitted(root))).fits


def _missing(leaf: GroupTree) -> int:
    return leaf.minimum - leaf.satisfied - len(leaf.pods.ids)


def _completed(leaf: GroupTree, first_new: int) -> GroupTree:
    """The leaf with as many pods like its last one as it needs for its minimum."""
    number = _missing(leaf)
    ids = (*leaf.pods.ids, *range(first_new, first_new + number))
    signatures = (*leaf.pods.signatures, *(leaf.pods.signatures[-1],) * number)
    return varied(leaf, pods=PendingPods(ids, signatures))


def _with_pods(leaf: GroupTree, gated: Mapping[ObjectKey, PendingPods]) -> GroupTree:
    """The leaf with its gated pods among the pending ones, by ordinal."""
    more = gated[leaf.key]
    pairs = sorted(
        [*zip(leaf.pods.ids, leaf.pods.signatures, strict=True), *zip(more.ids, more.signatures, strict=True)]
    )
    return varied(leaf, pods=PendingPods(tuple(pod for pod, _ in pairs), tuple(kind for _, kind in pairs)))


def _members_help(chosen: Sequence[GroupTree]) -> Help:
    number = sum(map(_missing, chosen))
    pods = number_of(number, "member")
    names = ", ".join(str(leaf.key) for leaf in chosen)
    refs = tuple(leaf.key for leaf in chosen)
    return Help(HelpCode.ADD_MEMBERS, f"add {pods} to {names}", refs, number, number)


def _gates_help(chosen: Sequence[ObjectKey], gated: Mapping[ObjectKey, PendingPods]) -> Help:
    number = sum(len(gated[key].ids) for key in chosen)
    pods = number_of(number, "pod")
    text = f"remove the scheduling gates of {pods} of {', '.join(map(str, chosen))}"
    return Help(HelpCode.REMOVE_GATES, text, tuple(chosen), number, number)
