"""A storm over trees: composites with minimums and domains of their own, parents that come late, members that are lost and heal.

What `queue_storm` does and judges, for hierarchies: whole trees in place of whole gangs, one domain wherever a group asks for
one, and in the end nobody waits whom trying every placement finds room for.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from muster.core.decision import Decision
from muster.core.tree import Unit
from muster.engine.ports import DecisionRecord, UnitState
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from tests import dsl
from tests.engine.tree_cluster import NAMESPACE, composite, leaf, with_minimum
from tests.properties.queue_storm import MEMBERS, Storm
from tests.properties.tree_engine import (
    all_groups,
    all_pods,
    ancestors,
    below,
    holds,
    is_admissible,
    members_of,
    root_of,
)

RACKS = ("r0", "r1", "r2", "r3", "r3")
COMPOSITES = {"root": "", "mid": "root", "low": "mid", "other": ""}
LEAVES = {"a": "root", "b": "mid", "c": "mid", "d": "low", "e": "other", "f": "other", "lone": ""}
LEVELS = {"root": ("zone", ""), "mid": ("zone", "rack", ""), "low": ("rack", ""), "other": ("zone", "")}
LEAF_LEVELS = ("rack", "", "")
MAY_BE_SHORT = {UnitState.GATED, UnitState.ACTIVE, UnitState.IN_FLIGHT}


class TreeStorm(Storm):
    """`healed`: how many pods were placed into groups that held before and were short of a member."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.healed = 0
        chosen = self.random.choice
        self.priorities = {"root": chosen((0, 5)), "other": 0, "lone": chosen((0, 5))}
        self.cores = {name: chosen((1, 1, 2)) for name in LEAVES}
        self.groups: dict[str, AnyGroup] = {
            name: composite(
                name,
                chosen((None, 1, 2)),
                parent=parent,
                priority=self.priorities[tree_of(name)],
                same=chosen(LEVELS[name]),
            )
            for name, parent in COMPOSITES.items()
        }
        for name, parent in LEAVES.items():
            self.groups[name] = leaf(
                name,
                chosen((None, 1, 2, 3)),
                parent=parent,
                priority=self.priorities[tree_of(name)],
                same=chosen(LEAF_LEVELS),
            )

    def place_of(self, node: str) -> dict[str, str]:
        return {**super().place_of(node), "rack": RACKS[int(node[1])]}

    def commit(self, unit: Unit, decision: Decision) -> DecisionRecord:
        before = {pod.name for pod in all_pods(self.cluster.state) if pod.node_name}
        ran = {group.key for group in all_groups(self.cluster.state) if holds(self.cluster.state, group)}
        self.broken += self._own_victims(unit, decision)
        record = super().commit(unit, decision)
        state = self.cluster.state
        for pod in all_pods(state):
            if pod.node_name and pod.name not in before and pod.group:
                above = list(ancestors(state, pod))
                self.healed += above[0].key in ran
                self.broken += [
                    f"{pod.name} was bound in {each.key}, which {fault}"
                    for each in above
                    for fault in self._group_faults(each)
                ]
        return record

    def _group_faults(self, group: AnyGroup) -> Iterator[str]:
        """What may not be true of a group that just got a pod."""
        state = self.cluster.state
        if not holds(state, group):
            yield "does not hold"
        if group.deletion_us is not None:
            yield "is being deleted"
        key = group.spec.topology_key
        if key is None:
            return
        pods = [pod for each in below(state, group) for pod in members_of(state, each) if pod.is_member]
        nodes = [state.objects["Node"]["", name] for name in {pod.node_name for pod in pods} - {""}]
        domains = {node.labels.get(key) for node in nodes if isinstance(node, Node)}
        if len(domains) > 1:
            yield f"is in {domains} of {key}"

    def _own_victims(self, unit: Unit, decision: Decision) -> Iterator[str]:
        """Nobody is evicted for a unit of which it is a part."""
        victims = decision.preemption.victims if decision.preemption is not None else ()
        own = {pod.ordinal: pod.name for pod in self._members(unit.key)}
        names = [own[ordinal] for victim in victims for ordinal in victim.pods if ordinal in own]
        if names:
            yield f"{names} were evicted for their own siblings"

    def _half_gangs(self, before: object) -> Iterator[str]:
        """Trees are judged by `commit`."""
        yield from ()

    def _put_gang(self) -> None:
        group = self.groups[self.random.choice(sorted(self.groups))]
        if group.spec.is_gang:
            most = MEMBERS if isinstance(group, PodGroup) else 2
            group = with_minimum(group, self.random.randint(1, most))
        stored = self.cluster.state.group(group.key)
        if stored is None or stored.deletion_us is None:
            self._apply(replace(group, conditions=stored.conditions if stored is not None else ()))

    def _put_pod(self) -> None:
        group = self.random.choice([*LEAVES, ""])
        if not group:
            self.put_single()
            return
        spec = dsl.pod(cpu=str(self.cores[group]), priority=self.priorities[tree_of(group)])
        for number in self.random.sample(range(MEMBERS), self.random.randint(1, MEMBERS)):
            self.put_member(group, number, spec)

    def _gates(self) -> tuple[str, ...]:
        return ("wait",) if not self.random.randrange(40) else ()

    def _delete(self) -> None:
        """Mostly something else than a group, of which some go at once, whatever runs in them."""
        group = self.cluster.state.group(self.groups[self.random.choice(sorted(self.groups))].key)
        if self.random.randrange(4) or group is None:
            super()._delete()
        else:
            self.story.append(f"delete {group.key}")
            self.delete(group, force=self.random.choice((False, True)))

    def _misplaced(self) -> Iterator[str]:
        """Units, groups and pods are in the queue where their trees say that they belong."""
        cluster, state = self.cluster, self.cluster.state
        wanted, homeless = set[ObjectKey](), set[ObjectKey]()
        for pod in all_pods(state):
            if pod.is_member and not pod.node_name:
                unit = self._unit_of(pod)
                (homeless if unit is None else wanted).add(unit or pod.key)
        rootless = {group.key for group in all_groups(state) if root_of(state, group)[1] is None}
        for what, found, right in (
            ("the queue", set(cluster.queue.rows), wanted),
            ("pending members", set(cluster.pending_members), homeless),
            ("pending groups", set(cluster.pending_groups), rootless),
        ):
            if found != right:
                yield f"{what} differ by {found ^ right}"
        yield from self._wrongly_gated()

    def _wrongly_gated(self) -> Iterator[str]:
        """A unit of which a pod may be placed is not gated, and one that is not ready waits for nothing else.

        It may be active: it was in flight when it was stored, and its next cycle finds what it lacks.
        """
        for key in self.cluster.queue.rows:
            row, root = self.cluster.queue.get(key), self.cluster.state.group(key)
            waiting = [pod for pod in self._members(key) if pod.is_member and not pod.node_name]
            is_ready = root is None or is_admissible(self.cluster.state, root)
            is_ready = is_ready and not all(pod.gates for pod in waiting)
            right = {*UnitState} - {UnitState.GATED} if is_ready else MAY_BE_SHORT
            if row is not None and row.state not in right:
                yield f"{key} is {row.state.name}"

    def _unit_of(self, pod: Pod) -> ObjectKey | None:
        if not pod.group:
            return pod.key
        group = self.cluster.state.group(ObjectKey("PodGroup", NAMESPACE, pod.group))
        root = root_of(self.cluster.state, group)[1] if group is not None else None
        return root.key if root is not None else None

    def _members(self, key: ObjectKey) -> list[Pod]:
        """Those of a pod without a group or of a whole tree."""
        state, root = self.cluster.state, self.cluster.state.group(key)
        if root is None:
            return [pod for pod in self.pods() if pod.key == key]
        return [pod for each in below(state, root) for pod in members_of(state, each)]


def tree_of(name: str) -> str:
    """The name of the root that a group has once all are there."""
    while parent := {**COMPOSITES, **LEAVES}[name]:
        name = parent
    return name
