"""Trees of groups for people: a line a group, in columns that line up over all levels, with its notes below it.

What the columns say is for the callers; a line fits 80 columns as long as the names are of usual length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from muster.cli.kinds import SHORT
from muster.v1.meta_pb2 import ObjectRef

INDENT = 4
GAP = "  "
_SHORT_OF = {kind: short for short, kind in SHORT.items()}


@dataclass(slots=True)
class Branch:
    """One group. `style` is of the state; `counts` are what holds of what is needed, in words; notes are whole lines."""

    name: str
    state: str
    style: str
    counts: str = ""
    pods: str = ""
    domain: str = ""
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    children: list[Branch] = field(default_factory=list)

    def cells(self) -> tuple[str, ...]:
        """The columns after the name."""
        return (self.state, self.counts, self.pods, self.domain, " ".join(self.remarks))


def drawn(root: Branch) -> Tree:
    """The tree below a group; columns that are empty everywhere are left out."""
    found = list(_with_depth(root, 0))
    width = max(depth * INDENT + len(branch.name) for depth, branch in found)
    columns = zip(*(branch.cells() for _, branch in found), strict=True)
    widths = [max(map(len, column)) for column in columns]
    tree = Tree(_line(root, width, widths))
    _grow(tree, root, width - INDENT, widths)
    return tree


def short_ref(named: ObjectRef) -> str:
    """The object as the commands take it, with the short word for its kind: pg/workers."""
    return f"{_SHORT_OF.get(named.kind, named.kind.lower())}/{named.name}"


def short_domain(key: str, value: str) -> str:
    """A domain by the last part of its label key: zone=zone-a; nothing without a key."""
    return f"{key.rpartition('/')[2]}={value}" if key else ""


def number_of(count: int, word: str) -> str:
    """A count with its word: 1 pod, 2 pods."""
    return f"{count} {word if count == 1 else f'{word}s'}"


def held_of(held: int, needed: int, word: str) -> str:
    """What holds of what is needed: 1/2 groups, 1/1 pod."""
    return f"{held}/{number_of(needed, word)}"


def _with_depth(branch: Branch, depth: int) -> Iterator[tuple[int, Branch]]:
    yield depth, branch
    for child in branch.children:
        yield from _with_depth(child, depth + 1)


def _grow(tree: Tree, branch: Branch, width: int, widths: list[int]) -> None:
    for note in branch.notes:
        tree.add(Text(note, style="dim"))
    for child in branch.children:
        _grow(tree.add(_line(child, width, widths)), child, width - INDENT, widths)


def _line(branch: Branch, width: int, widths: list[int]) -> Text:
    state, *cells = [
        cell.ljust(column) for cell, column in zip(branch.cells(), widths, strict=True) if column
    ]
    rest = GAP.join(cells)
    line = f"{escape(branch.name.ljust(width))}{GAP}[{branch.style}]{state}[/]{GAP}{escape(rest)}"
    text = Text.from_markup(line)
    text.rstrip()
    return text
