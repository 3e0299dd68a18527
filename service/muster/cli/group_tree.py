"""A hierarchy drawn: which groups hold, where their pods run, why others wait, and what the last decision came to.

A domain is the label of the nodes on which a group's pods run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.markup import escape

from muster.cli.decision_views import decision_line, domain_remarks, outcome_words, search_line
from muster.cli.hierarchy import AnyGroup, Hierarchy, Key, Tally, below, is_marked
from muster.cli.kinds import ref, shown_ref
from muster.cli.object_tables import PENDING, STYLES, judgement, why
from muster.cli.tree_drawing import Branch, drawn, held_of, number_of, short_domain, short_ref
from muster.v1.decision_pb2 import Decision, GroupResult
from muster.v1.pod_group_pb2 import PodGroup

NO_LABEL = "(none)"
# Legal hierarchies have four levels; of longer chains the top is enough to see what is wrong.
LEVELS_DRAWN = 8
DOMAINS_NAMED = 4


def hierarchy_view(hierarchy: Hierarchy) -> RenderableType:
    """The tree, and the last decision below it."""
    decision = hierarchy.decision
    results = dict(_results(decision.result, 1)) if decision is not None else {}
    parts: list[RenderableType] = [
        escape(_headline(hierarchy.groups[hierarchy.top])),
        drawn(_Drawing(hierarchy, results, frozenset(_names(hierarchy))).branch(hierarchy.top, "", 1)),
    ]
    if decision is not None:
        parts.append(f"decision {escape(decision.id)}: {_outcome(decision)}")
        parts += search_line(decision.search)
    return Group(*parts)


def _names(hierarchy: Hierarchy) -> Iterator[str]:
    for (kind, name), group in hierarchy.groups.items():
        yield f"{kind} {group.metadata.namespace}/{name}"


def _results(result: GroupResult, level: int) -> Iterator[tuple[Key, GroupResult]]:
    yield (result.ref.kind, result.ref.name), result
    for child in result.children if level < LEVELS_DRAWN else ():
        yield from _results(child, level + 1)


def _outcome(decision: Decision) -> str:
    """What the last decision came to; why nothing was placed stands in the tree already."""
    return decision_line(decision) if decision.assignments.pods else outcome_words(decision)


def _headline(group: AnyGroup) -> str:
    spec = group.spec
    words = [f"{shown_ref(ref(type(group).__name__, group.metadata.name, group.metadata.namespace))}:"]
    if spec.parent_composite_pod_group_name:
        words.append(f"below cpg/{spec.parent_composite_pod_group_name},")
    if spec.HasField("workload_ref"):
        words.append(f"template {spec.workload_ref.template_name} of {spec.workload_ref.workload_name},")
    return " ".join([*words, f"priority {spec.priority}"])


@dataclass(frozen=True, slots=True)
class _Drawing:
    """results: of the last decision, by group. names: of all groups, as messages name them."""

    hierarchy: Hierarchy
    results: Mapping[Key, GroupResult]
    names: frozenset[str]

    def branch(self, key: Key, above: str, level: int) -> Branch:
        """The line of a group and those below it; `above` is all that was said on the way down."""
        group, tally = self.hierarchy.groups[key], self.hierarchy.tallies[key]
        status, reason, message = judgement(group)
        notes = [message] if status == "False" and not self._repeats(message, above) else []
        said = "\n".join((above, *notes))
        if isinstance(group, PodGroup):
            notes += self._waiting_notes(tally, said)
        children = self.hierarchy.children.get(key, ())
        if level == LEVELS_DRAWN and children:
            notes.append(
                f"and {number_of(sum(1 for _ in below(self.hierarchy.children, key)) - 1, 'group')} below"
            )
            children = ()
        is_leaf = isinstance(group, PodGroup)
        return Branch(
            name=short_ref(ref(*key)),
            state=reason or PENDING,
            style=STYLES.get(status, "dim"),
            counts=held_of(tally.held, tally.needed, "pod" if is_leaf else "group"),
            pods="" if is_leaf else number_of(tally.placed, "pod"),
            domain=self._domain(key),
            remarks=tuple(self._remarks(key)),
            notes=tuple(notes),
            children=[self.branch(child, said, level + 1) for child in children],
        )

    def _remarks(self, key: Key) -> Iterator[str]:
        group, tally = self.hierarchy.groups[key], self.hierarchy.tallies[key]
        if is_marked(group):
            yield "being deleted"
        if isinstance(group, PodGroup):
            if tally.waiting:
                yield f"{len(tally.waiting)} pending"
            if tally.leaving:
                yield f"{tally.leaving} leaving"
        if key in self.results:
            yield from domain_remarks(self.results[key])

    def _waiting_notes(self, tally: Tally, said: str) -> list[str]:
        """Why pods of a leaf wait, where no group says so, with how many wait for the same reason."""
        reasons = Counter(why(pod) for pod in tally.waiting)
        return [
            f"{number} pending: {reason}"
            for reason, number in reasons.most_common()
            if not self._repeats(reason, said)
        ]

    def _repeats(self, message: str, above: str) -> bool:
        """Whether a message is empty, part of what was said above, or only names a group of the tree with its own."""
        subject = message.partition(": ")[0].removesuffix(" is not ready")
        return message in above or subject in self.names

    def _domain(self, key: Key) -> str:
        """The domains in which a constrained group runs: one, unless somebody else bound its pods or relabelled nodes."""
        topology = self.hierarchy.groups[key].spec.scheduling_constraints.topology
        nodes = self.hierarchy.tallies[key].nodes
        if not topology or not nodes:
            return ""
        label = topology[0].key
        values = sorted({self.hierarchy.labels.get(node, {}).get(label, NO_LABEL) for node in nodes})
        more = f"+{len(values) - DOMAINS_NAMED}" if len(values) > DOMAINS_NAMED else ""
        return short_domain(label, ",".join([*values[:DOMAINS_NAMED], *([more] if more else [])]))
