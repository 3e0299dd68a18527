"""A domain cut by labels, level by level, so that one pass over arrays answers for all its sub-domains at once.

Nodes stand domain by domain: a domain is a slice, a sum over each domain one reduction. Cuts are kept while no node
changes. Within one domain sub-domains go by their values; equal values in different domains are different domains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.domains import Domain
from muster.core.node_table import NodeTable
from muster.core.snapshot import Snapshot

_MOST_CUTS = 8192


@dataclass(eq=False)
class Level:
    """D domains of one label, ordered by the domain above and then by value.

    slots: nodes that have this label and all those above, domain by domain, each ascending. starts: [D] where each
    domain begins in `slots`. parents: [D] places of their domains on the level above (0 on the first).
    """

    key: str
    slots: Slots
    starts: Slots
    parents: IntArray
    values: tuple[str, ...]
    _static: dict[Hashable, IntArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        parts = np.split(self.slots, self.starts[1:]) if len(self) else []
        return tuple(Domain(self.key, value, part) for value, part in zip(self.values, parts, strict=True))

    @cached_property
    def members(self) -> IntArray:
        """For each of `slots` the place of its domain."""
        sizes = np.diff(self.starts, append=len(self.slots))
        return np.repeat(np.arange(len(self)), sizes)

    def sums(self, per_slot: IntArray) -> IntArray:
        """[D] sums over each domain's nodes."""
        return self.parted_sums(per_slot[self.slots])

    def parted_sums(self, amounts: IntArray) -> IntArray:
        """[D] sums over each domain's part of amounts that are in the order of `slots`."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        sums: IntArray = np.add.reduceat(amounts, self.starts)
        return sums

    def static_sums(self, name: Hashable, per_slot: Callable[[], IntArray]) -> IntArray:
        """Sums of what no placement changes, made once under a name. Not to be changed."""
        known = self._static.get(name)
        if known is None:
            known = self._static[name] = self.sums(per_slot())
        return known


@dataclass(slots=True)
class _Cuts:
    """The cuts of one snapshot made so far, by the identity of the outer domain, which is kept alive here."""

    version: int = -1
    levels: dict[tuple[int, tuple[str, ...]], tuple[Level, ...]] = field(default_factory=dict)
    outers: list[Domain] = field(default_factory=list)


def levels_of(snapshot: Snapshot, outer: Domain, keys: tuple[str, ...]) -> tuple[Level, ...]:
    """The outer domain cut by each label inside the one before; the same objects until a node changes."""
    cuts = snapshot.derived.get("cuts")
    if not isinstance(cuts, _Cuts):
        cuts = snapshot.derived["cuts"] = _Cuts()
    if cuts.version != snapshot.nodes.version or len(cuts.levels) > _MOST_CUTS:
        cuts.version = snapshot.nodes.version
        cuts.levels.clear()
        cuts.outers.clear()
    known = cuts.levels.get((id(outer), keys))
    if known is None:
        above = levels_of(snapshot, outer, keys[:-1]) if len(keys) > 1 else ()
        known = (*above, cut(snapshot.nodes, keys[-1], outer, above[-1] if above else None))
        cuts.levels[id(outer), keys] = known
        cuts.outers.append(outer)
    return known


def cut(nodes: NodeTable, key: str, outer: Domain, above: Level | None = None) -> Level:
    """The domains of a label inside those of the level above, or else inside the outer domain."""
    if above is None:
        slots = np.flatnonzero(nodes.present) if outer.slots is None else outer.slots
        within = np.zeros(len(slots), dtype=np.int64)
    else:
        slots, within = above.slots, above.members
    column = nodes.column(key)
    codes = column.codes[slots].astype(np.int64)
    labelled = codes >= 0
    slots, within, codes = slots[labelled], within[labelled], codes[labelled]
    by_value = sorted(set(codes.tolist()), key=column.values.__getitem__)
    ranks = np.zeros(len(column.values), dtype=np.int64)
    ranks[by_value] = np.arange(len(by_value))
    places = within * len(by_value) + ranks[codes]
    order = np.argsort(places, kind="stable")
    slots, places = slots[order], places[order]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    firsts = places[starts]
    values = tuple(column.values[by_value[place]] for place in (firsts % max(len(by_value), 1)).tolist())
    return Level(key, slots, starts, firsts // max(len(by_value), 1), values)
