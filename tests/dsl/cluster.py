"""The cluster of a test: nodes, running pods, and the verb `schedule` with the checks that no test must forget."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.core.decide import decide, decide_and_assume
from muster.core.decision import Decision, GroupResult, Status
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
from muster.core.framework import Profile
from muster.core.observer import RecordingObserver
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from muster.plugins.profile import default_profile
from tests.dsl.groups import NAMESPACE, GroupPlan
from tests.dsl.state import state_of


@dataclass
class Result:
    """What `schedule` gave: the decision, and pods by name."""

    decision: Decision
    pod_names: dict[int, str]
    events: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def code(self) -> str:
        return self.decision.code.value

    @property
    def on(self) -> dict[str, str]:
        """Pod name to node name."""
        assigned = self.decision.assignments
        return {
            self.pod_names[pod]: assigned.nodes[place]
            for pod, place in zip(assigned.pods, assigned.node_index, strict=True)
        }

    @property
    def nodes(self) -> list[str]:
        """The node of each placed pod, in the order of placing."""
        return list(self.on.values())

    @property
    def placed(self) -> dict[str, str]:
        """Constrained groups and the value of the domain that each got."""
        return {result.key.name: result.domain_value for result in self.results() if result.domain_key}

    def group(self, name: str) -> GroupResult:
        return next(result for result in self.results() if result.key.name == name)

    def reasons(self) -> dict[str, int]:
        """Codes of why pods of the only failed signature found no node, and how many nodes each concerns."""
        (reasons,) = [found for result in self.results() for found in result.pod_reasons.values()]
        return {reason.code: reason.node_count for reason in reasons}

    def tried(self, name: str) -> dict[str, Status]:
        """Candidate domains of a group on the path taken, and what each came to."""
        found: dict[str, Status] = {}
        open_groups: list[str] = []
        for event in self.events:
            if event[0] == "enter":
                open_groups.append(str(event[3]).rsplit("/", 1)[-1])
            elif event[0] == "leave":
                open_groups.pop()
            elif open_groups[-1] == name:
                attributes = event[2]
                assert isinstance(attributes, dict)
                found[attributes["domain"]] = Status[attributes["status"]]
        return found

    def results(self) -> list[GroupResult]:
        def below(result: GroupResult) -> list[GroupResult]:
            return [result, *(item for child in result.children for item in below(child))]

        return below(self.decision.result) if self.decision.result is not None else []


class Cluster:
    """Nodes, and what runs on them."""

    def __init__(self, *nodes: Node | list[Node], profile: Profile | None = None) -> None:
        self.snapshot = Snapshot()
        self.signatures = SignatureTable()
        self.profile = profile or default_profile()
        self._ordinal = 0
        for item in nodes:
            for node in item if isinstance(item, list) else [item]:
                self.snapshot.apply(NodePut(node))

    def runs(self, pod: Pod, *node_names: str, leaving: bool = False) -> None:
        """Such a pod runs on each of the nodes."""
        signature = self._signature(pod)
        ids = tuple(self._next() for _ in node_names)
        self.snapshot.apply(PodsBound(ids, (signature,) * len(ids), node_names, leaving=leaving))

    def unit(self, plan: GroupPlan | Pod, **options: object) -> tuple[Unit, dict[int, str]]:
        """The plan as a unit, and the names of its pods by ordinal."""
        names: dict[int, str] = {}
        if isinstance(plan, Pod):
            pods = PendingPods((self._next(),), (self._signature(plan),))
            names[pods.ids[0]] = plan.name
            tree = GroupTree(ObjectKey(POD, NAMESPACE, plan.name), pods=pods)
        else:
            tree = self._tree(plan, names)
        excluded = options.get("excluded", {})
        assert isinstance(excluded, dict)
        of_pod = {pod: frozenset(excluded[name]) for pod, name in names.items() if name in excluded}
        return Unit(tree, excluded_nodes=of_pod), names

    def schedule(self, plan: GroupPlan | Pod, **options: object) -> Result:
        """Decide the plan, and check what must always hold."""
        unit, names = self.unit(plan, **options)
        before = state_of(self.snapshot)
        observer = RecordingObserver(lambda: 0)
        decision = decide(self.snapshot, unit, self.profile, observer)
        assert state_of(self.snapshot) == before, "the snapshot is not as it was"
        self._check_second_run(unit, decision)
        result = Result(decision, names, observer.events)
        for group in result.results():
            assert group.status is not Status.SUCCESS or group.satisfied >= group.required, "half a group"
        assert result.decision.result is not None
        if result.decision.result.status is not Status.SUCCESS:
            assert not decision.assignments.pods, "pods of a group that failed"
        return result

    def _check_second_run(self, unit: Unit, decision: Decision) -> None:
        mark = self.snapshot.mark()
        before = self.snapshot.nodes.free.copy()
        assert decide_and_assume(self.snapshot, unit, self.profile, RecordingObserver(lambda: 0)) == decision
        taken = self.snapshot.nodes.free < before
        assert not (taken & (self.snapshot.nodes.free < 0)).any(), "a node is over-committed"
        self.snapshot.rollback(mark)

    def _tree(self, plan: GroupPlan, names: dict[int, str]) -> GroupTree:
        ids = tuple(self._next() for _ in plan.pods)
        names.update(zip(ids, (item.name for item in plan.pods), strict=True))
        kind = POD_GROUP if plan.is_leaf else COMPOSITE_POD_GROUP
        return GroupTree(
            key=ObjectKey(kind, NAMESPACE, plan.name),
            is_gang=plan.policy.is_gang,
            minimum=plan.policy.minimum,
            topology_key=plan.topology_key,
            admissible=plan.admissible,
            satisfied=len(plan.bound),
            bound_nodes=plan.bound,
            pods=PendingPods(ids, tuple(self._signature(item) for item in plan.pods)),
            children=tuple(self._tree(child, names) for child in plan.children),
        )

    def _signature(self, pod: Pod) -> int:
        index = self.signatures.intern(pod)
        self.snapshot.apply(SignaturesAdded(self.signatures.take_new()))
        return index

    def _next(self) -> int:
        self._ordinal += 1
        return self._ordinal
