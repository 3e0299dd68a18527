"""What the candidate domains of a failed group lack, the closest ones first: for its result and its message.

A domain that capacity ruled out lacks room for pods, amounts of resources, or groups that would find no domain inside;
of one that was tried it is known how many children held. Worked out only once a group has failed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.core.arrays import IntArray
from muster.core.candidate_outcomes import Outcomes, closest_domain
from muster.core.capacity_bound import Path
from muster.core.cuts import Level, levels_of
from muster.core.decision import Reason, Status
from muster.core.demand import Need
from muster.core.explain.amounts import quantity
from muster.core.signature import Signature
from muster.core.tree import GroupTree
from muster.model.resources import PODS

INSUFFICIENT_DOMAIN = "INSUFFICIENT_DOMAIN"
_MOST_TOLD = 5
_WORDS = {PODS: "pod slots"}


def lacking_domains(group: GroupTree, outcomes: Outcomes) -> list[Reason]:
    """Which candidate came closest, and what each of the closest lacks; nothing without candidates."""
    if not outcomes.domains:
        return []
    told = _Shortfalls(group, outcomes)
    order = told.order()
    reasons = [closest_domain(outcomes.domains[order[0]]), *map(told.reason, order[:_MOST_TOLD])]
    further = len(order) - _MOST_TOLD
    if further > 0:
        text = f"{further} more {'domain lacks' if further == 1 else 'domains lack'} as much or more"
        reasons.append(Reason(INSUFFICIENT_DOMAIN, text, 0, {"domains": str(further)}))
    return reasons


class _Lack(NamedTuple):
    """text: in words. details: the same for programs."""

    text: str
    details: dict[str, str]


class _Shortfalls:
    """Answers for one group that failed in all of its candidates."""

    def __init__(self, group: GroupTree, outcomes: Outcomes) -> None:
        self._group = group
        self._outcomes = outcomes
        self._bound = outcomes.candidates.bound.by_free
        self._demand = self._bound.demand
        self._shares: dict[tuple[Need, Path], NDArray[np.float64]] = {}

    def order(self) -> list[int]:
        """Candidates from the closest on: tried ones by children that held, the others by the share that they offer."""
        share = self._bound.share(self._demand.of(self._group))[self._outcomes.candidates.places]
        keys = (np.arange(len(share)), -share, -self._outcomes.satisfied, self._outcomes.pruned)
        order: list[int] = np.lexsort(keys).tolist()
        closest = self._outcomes.closest
        if closest is not None:
            order.remove(closest)
            order.insert(0, closest)
        return order

    def reason(self, candidate: int) -> Reason:
        domain = self._outcomes.domains[candidate]
        status = Status(int(self._outcomes.statuses[candidate]))
        if self._outcomes.pruned[candidate]:
            lack = self._lack(self._group, (), int(self._outcomes.candidates.places[candidate]))
        else:
            lack = self._lack_when_tried(candidate)
        details = {"key": domain.key, "value": domain.value, "status": status.name, **lack.details}
        return Reason(INSUFFICIENT_DOMAIN, f"{_named(domain.key, domain.value)} {lack.text}", 0, details)

    def _lack_when_tried(self, candidate: int) -> _Lack:
        held, required = int(self._outcomes.satisfied[candidate]), self._group.minimum
        noun = "pod" if self._group.is_leaf else "group"
        details = {f"{noun}s": str(required - held), "held": str(held)}
        return _Lack(f"held {held} of {_counted(required, noun)} when tried", details)

    def _lack(self, group: GroupTree, path: Path, place: int) -> _Lack:
        """What keeps a domain that is ruled out from holding the group."""
        need = self._demand.of(group)
        if not group.is_leaf:
            able = int(self._bound.most(need, path)[place])
            if able < need.missing:
                return self._lack_of_groups(group, path, place, able)
        pods = need.missing - int(self._bound.most(need, path)[place]) if group.is_leaf else 0
        short = {}
        for measure in self._demand.measures(need):
            lacking = measure.least - int(self._bound.room(measure, path)[place])
            if measure.row is None:
                pods = max(pods, lacking)
            elif lacking > 0:
                short[measure.row] = lacking
        plainly = self._short_in_sum(need, path, place)
        return _lack_of_room(pods, self._quantities(plainly if plainly or pods > 0 else short))

    def _short_in_sum(self, need: Need, path: Path, place: int) -> dict[int, int]:
        """Resources of which all nodes that admit the pods have too little together, in however small pieces."""
        rooms = self._demand.rooms
        slots = self._level(path).domains[place].slots
        free: IntArray = np.maximum(rooms.snapshot.nodes.free[:, slots], 0)
        offered: dict[tuple[Signature, ...], list[int]] = {}
        short = {}
        for measure in self._demand.amounts(need):
            if measure.signatures not in offered:
                admitted = [rooms.admission(each).admitted[slots] for each in measure.signatures]
                offered[measure.signatures] = (free @ np.logical_or.reduce(admitted)).tolist()
            if measure.row is not None:
                short[measure.row] = measure.least - offered[measure.signatures][measure.row]
        return {row: amount for row, amount in short.items() if amount > 0}

    def _quantities(self, amounts: dict[int, int]) -> dict[str, str]:
        rows = self._demand.rooms.snapshot.nodes.rows
        return {name: quantity(name, amounts[row]) for name, row in sorted(rows.items()) if row in amounts}

    def _level(self, path: Path) -> Level:
        candidates = self._outcomes.candidates
        return levels_of(self._demand.rooms.snapshot, candidates.outer, (candidates.level.key, *path))[-1]

    def _lack_of_groups(self, group: GroupTree, path: Path, place: int, able: int) -> _Lack:
        missing = self._demand.of(group).missing
        held = group.minimum - missing + able
        details = {"groups": str(missing - able), "held": str(held)}
        text = f"holds {held} of {_counted(group.minimum, 'group')}"
        for child in group.children:
            need = self._demand.of(child)
            if not child.admissible or need.missing <= 0:
                continue
            if not self._bound.holds_inside(need, path)[place]:
                where, below = self._closest_inside(child, path, place)
                return _Lack(f"{text}: {child.key.name} {below.text}{where}", below.details | details)
        return _Lack(f"{text}, each in a domain of its own", details)

    def _share(self, need: Need, path: Path) -> NDArray[np.float64]:
        known = self._shares.get((need, path))
        if known is None:
            known = self._shares[need, path] = self._bound.share(need, path)
        return known

    def _closest_inside(self, child: GroupTree, path: Path, place: int) -> tuple[str, _Lack]:
        """What a child lacks that finds no domain inside, and in words where."""
        details = {"group": child.key.name, "group_namespace": child.key.namespace}
        if child.topology_key is None:
            lack = self._lack(child, path, place)
            return "", _Lack(lack.text, details | lack.details)
        inner = (*path, child.topology_key)
        level = self._level(inner)
        inside = np.flatnonzero(level.parents == place)
        if not len(inside):
            return "", _Lack(f"finds no domain of {child.topology_key}", details)
        closest = int(inside[self._share(self._demand.of(child), inner)[inside].argmax()])
        lack = self._lack(child, inner, closest)
        details |= {"inner_key": child.topology_key, "inner_value": level.values[closest]}
        where = f" in {_named(child.topology_key, level.values[closest])}"
        return where, _Lack(lack.text, details | lack.details)


def _lack_of_room(pods: int, missing: dict[str, str]) -> _Lack:
    amounts = ", ".join(f"{amount} {_WORDS.get(resource, resource)}" for resource, amount in missing.items())
    details = {"missing": ",".join(f"{name}={amount}" for name, amount in missing.items())} if missing else {}
    if pods <= 0:
        return _Lack(f"lacks {amounts}", details)
    text = f"lacks room for {_counted(pods, 'pod')}"
    return _Lack(f"{text} ({amounts})" if missing else text, {"pods": str(pods), **details})


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _named(key: str, value: str) -> str:
    return f"{key}={value}" if value else f'{key}=""'
