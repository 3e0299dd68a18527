"""What a small case asks room for: as many pods of each leaf as are placed if everybody goes (semantics 5.6).

Other children may take part only where they are alike. What fits is for `oracle` to find out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from muster.core.tree import GroupTree
from muster.model.meta import ObjectKey


def wanted_tree(group: GroupTree, placed: Counter[ObjectKey]) -> GroupTree:
    """The group with what was placed of it as its minimum, less what was not placed. placed: pods of each leaf."""
    if group.is_leaf:
        return replace(group, satisfied=0, minimum=placed[group.key])
    chosen = [child for child in group.children if _pods(child, placed)]
    sizes = {_rigid_size(child) for child in group.children}
    if len(sizes) == 1 and None not in sizes:
        return replace(group, minimum=len(chosen))
    children = tuple(wanted_tree(child, placed) for child in chosen)
    return replace(group, minimum=len(children), children=children, admissible=True)


def _pods(group: GroupTree, placed: Counter[ObjectKey]) -> int:
    return placed[group.key] + sum(_pods(child, placed) for child in group.children)


def _rigid_size(group: GroupTree) -> int | None:
    """How many pods a group has that takes part whole or not at all; None of any other."""
    if group.is_leaf:
        rigid = group.admissible and not group.satisfied and group.minimum == len(group.pods.ids)
        return group.minimum if rigid else None
    if group.minimum != len(group.children):
        return None
    sizes = [_rigid_size(child) for child in group.children]
    return None if None in sizes else sum(size for size in sizes if size is not None)
