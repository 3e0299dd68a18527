"""Help by relaxing one constraint: a topology constraint, a filter for the unit's pods, room kept for others.

Filters are dropped from the profile for the trial, which is what pods without that constraint would see.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.core.decide import decide
from muster.core.deltas import NodePut
from muster.core.explain.dropped_filters import CORDON, without_filter
from muster.core.explain.explanation import Help, HelpCode
from muster.core.explain.nodes_to_add import node_like
from muster.core.explain.trials import Trials, groups_below, replaced
from muster.core.messages import number_of
from muster.core.observer import NullObserver
from muster.core.preemption_units import PromisedRoom
from muster.core.reasons import BINDING_FAILED
from muster.core.tree import GroupTree, leaves
from muster.model.meta import ObjectKey
from muster.model.variations import varied

TOPOLOGY = "TOPOLOGY"
_NODE_KIND = "Node"
_WORDS = {
    "NODE_TAINTED": "let its pods tolerate the taints of nodes",
    "NODE_AFFINITY": "drop node selector and required node affinity of its pods",
    "HOST_PORTS": "drop the host ports of its pods",
    "POD_AFFINITY": "drop the required pod affinity of its pods",
    "POD_ANTI_AFFINITY": "drop the required pod anti-affinity between its pods and others",
    "TOPOLOGY_SPREAD": "let its pods be spread less evenly",
    "TOPOLOGY_SPREAD_KEY": "drop the spread constraints whose label nodes lack",
    BINDING_FAILED: "try nodes again on which binding failed lately",
}


def relaxed_constraints(trials: Trials) -> Iterator[Help]:
    """A help for each constraint that is enough to relax."""
    yield from _topology(trials)
    for code in _refusing(trials):
        if code == CORDON:
            yield from _uncordoned(trials)
        else:
            without = without_filter(trials.profile, code)
            if without is not None and trials.thorough(profile=without).fits:
                yield _of_filter(trials, code, _WORDS.get(code, f"drop what {code} demands of its pods"))
    if trials.unit.excluded_nodes and trials.thorough(varied(trials.unit, excluded_nodes={})).fits:
        yield _of_filter(trials, BINDING_FAILED, _WORDS[BINDING_FAILED])
    yield from _released(trials)


def _refusing(trials: Trials) -> list[str]:
    """Codes of the filters that keep a pod of the unit from a node, anywhere in the cluster."""
    snapshot, profile = trials.snapshot, trials.profile
    codes: set[str] = set()
    for index in {index for leaf in leaves(trials.unit.root) for index in leaf.pods.signatures}:
        signature = snapshot.signatures[index]
        for item in profile.node_filters:
            mask = item.mask(signature, snapshot.nodes)
            if mask is not None and not mask[snapshot.nodes.present].all():
                codes.add(item.code)
        codes |= {item.code for item in profile.pod_filters if item.concerns(signature, snapshot)}
    return sorted(codes)


def _topology(trials: Trials) -> Iterator[Help]:
    root = trials.unit.root
    for group in groups_below(root):
        if group.topology_key is None:
            continue
        relaxed = replaced(root, group.key, _unconstrained)
        if trials.thorough(trials.with_root(relaxed)).fits:
            yield Help(
                HelpCode.RELAX_CONSTRAINT,
                f"drop the topology constraint {group.topology_key} of {group.key}",
                (group.key,),
                details={"constraint": TOPOLOGY, "key": group.topology_key},
            )


def _unconstrained(group: GroupTree) -> GroupTree:
    return varied(group, topology_key=None)


def _of_filter(trials: Trials, code: str, words: str) -> Help:
    return Help(HelpCode.RELAX_CONSTRAINT, words, (trials.unit.key,), details={"constraint": code})


def _uncordoned(trials: Trials) -> Iterator[Help]:
    """The unschedulable nodes that its pods would use, if they were schedulable."""
    without = without_filter(trials.profile, CORDON)
    if without is None or not trials.quick(profile=without):
        return
    nodes = trials.snapshot.nodes
    used = decide(trials.snapshot, trials.unit, without, NullObserver()).assignments.nodes
    cordoned = [name for name in used if nodes.unschedulable[nodes.slots_of([name])[0]]]
    opened = _fewest_opened(trials, cordoned)
    if opened:
        number = number_of(len(opened), "node")
        yield Help(
            HelpCode.UNCORDON_NODES,
            f"make {number} schedulable again: {', '.join(opened)}",
            tuple(ObjectKey(_NODE_KIND, "", name) for name in opened),
            len(opened),
            len(opened),
            proved=False,
        )


def _fewest_opened(trials: Trials, cordoned: list[str]) -> list[str]:
    """Of the cordoned nodes those without which the unit is not scheduled; none if all of them are not enough."""
    opened = list(cordoned)
    if not _schedules_with(trials, opened):
        return []
    for name in cordoned:
        fewer = [each for each in opened if each != name]
        if fewer and _schedules_with(trials, fewer):
            opened = fewer
    return opened


def _schedules_with(trials: Trials, opened: list[str]) -> bool:
    nodes = trials.snapshot.nodes
    originals = [
        node_like(nodes, int(nodes.slots_of([name])[0]), name, unschedulable=True) for name in opened
    ]
    for node in originals:
        trials.snapshot.apply(NodePut(varied(node, unschedulable=False)))
    fits = trials.thorough().fits
    for node in originals:
        trials.snapshot.apply(NodePut(node))
    return fits


def _released(trials: Trials) -> Iterator[Help]:
    """Room that is kept for pods of others, nominated or with a reservation."""
    number = len(trials.unit.promised.node_names)
    if number and trials.thorough(varied(trials.unit, promised=PromisedRoom())).fits:
        yield Help(
            HelpCode.RELEASE_ROOM,
            f"give up the room that is kept for {number_of(number, 'pod')} of other units",
            count=number,
            size=number,
            proved=False,
        )
