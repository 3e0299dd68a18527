"""A cluster in memory to which anything may happen, step by step, and what must hold after each step and in the end.

Objects, edits, deletions, reports, cycles that end late, restarts, crashes that lose what was not durable, clocks that
jump. What must hold is written down from objects alone: room, whole gangs, where units are in the queue, and, once the
noise has stopped and backoffs are over, that no unit waits which a simple count can place. Whoever runs it takes the safety
net away.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from muster.core.decision import Decision
from muster.core.tree import Unit
from muster.engine.api import BindingFailed, Bound, PhaseChanged, PodReport, Removed, ReportCall
from muster.engine.binder import commit_decision, set_back, still_holds
from muster.engine.hierarchy import is_initially_scheduled
from muster.engine.mutation import Mutation
from muster.engine.ports import DecisionRecord, LoadedCluster, UnitState
from muster.engine.queueing_hints import FREEING, EventKind
from muster.engine.reports import report
from muster.model.meta import KINDS, ObjectKey
from muster.model.node import Node, Taint
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.model.resources import node_allocatable, pod_requests
from muster.model.selectors import NO_SCHEDULE
from tests import dsl
from tests.engine.queue_worlds import ours
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, with_minimum
from tests.properties.tree_places import Places

SECOND_US = 1_000_000
NODES = [f"n{i}" for i in range(5)]
GANGS = [f"g{i}" for i in range(5)]
SINGLES = [f"s{i}" for i in range(6)]
MEMBERS = 4
DEDICATED = Taint("dedicated", "", NO_SCHEDULE)


class Storm(TreeCluster):
    """`step` does one thing, as `random` wants it, which may be another for each step; `faults` says what is wrong."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.random = chance
        self.story: list[str] = []
        self.broken: list[str] = []
        self.reused = 0
        self.cluster.profiles = {PROFILE.name: PROFILE}
        self._held: tuple[Unit, Decision, int] | None = None
        self._durable = self.stored()
        self.gangs = {
            name: leaf(
                name,
                self.random.randint(1, MEMBERS),
                workload="",
                priority=self.random.choice((0, 0, 5)),
                same=self.random.choice(("", "", "zone")),
            )
            for name in GANGS
        }

    def step(self) -> None:
        """One thing happens."""
        acts: list[tuple[int, Callable[[], None]]] = [
            (8, self._put_pod),
            (5, self._put_node),
            (3, self._put_gang),
            (4, self._delete),
            (6, self._report),
            (12, self._cycle_now),
            (2, self._begin_cycle),
            (2, self._end_cycle),
            (6, lambda: self._pass_time(self.random.choice((0.3, 1, 2, 7)))),
            (1, lambda: self._jump(self.random.choice((-4_000, -30, 90)))),
            (1, self._restart),
            (1, self._make_durable),
            (1, self._crash),
        ]
        weights, choices = zip(*acts, strict=True)
        (act,) = self.random.choices(choices, weights)
        act()

    def rest(self) -> None:
        """The noise stops: what is in work ends, all backoffs do, and bindings that failed are forgiven."""
        self._end_cycle()
        self.story.append("rest")
        for _ in range(6):
            self._run()
            self._pass_time(61)
        self._run()

    def _run(self) -> None:
        for _ in range(300):
            if not self._tried():
                return
        raise AssertionError("the queue does not come to rest")

    def _tried(self) -> bool:
        """One turn of the loop of cycles, as `CycleRunner` makes it; false without an active unit."""
        queue, failures = self.cluster.queue, self.cluster.failures
        row = queue.pop()
        if row is None:
            return False
        if row.attempts and not queue.is_asked_for(row.key):
            needs = failures.holds(row, self.cluster.feed.flush(), self.cluster.profiles)
            if needs is not None:
                self.reused += 1
                queue.failed_again(row.key, self.now_us, needs)
                failures.repeat(queue.rows[row.key])
                return True
        self._decide(row.key)
        return True

    def _decide(self, key: ObjectKey) -> None:
        unit, decision = self.decided(key)
        if self._is_ready(unit):
            self.commit(unit, decision)

    def _is_ready(self, unit: Unit) -> bool:
        """Whether the unit may be tried; it is gated if not."""
        is_ready = unit.root.admissible or unit.key in self.cluster.layouts.faults
        if not is_ready:
            set_back(Mutation(self.cluster, self.now_us), unit.key)
        return is_ready

    def commit(self, unit: Unit, decision: Decision) -> DecisionRecord:
        cluster = self.cluster
        before = self._bound_members()
        has_seen_all = set(FREEING).isdisjoint(cluster.queue.events_in_flight(unit.key))
        record = DecisionRecord("", 0, cluster.state.revision, decision, profile=PROFILE.name)
        record = commit_decision(cluster, unit, record, Mutation(cluster, self.now_us), self.eviction)
        row, needs = cluster.queue.rows.get(unit.key), cluster.queue.needs(unit.key)
        if has_seen_all and row is not None and needs is not None and row.state is UnitState.UNSCHEDULABLE:
            cluster.failures.note(row, unit, needs, cluster.feed.flush(), PROFILE)
        self.broken += self._half_gangs(before)
        return record

    def _cycle_now(self) -> None:
        self.story.append("cycle")
        self._end_cycle()
        self._tried()

    def _begin_cycle(self) -> None:
        """A worker gets a unit, and answers some steps later."""
        if self._held is not None or (row := self.cluster.queue.pop()) is None:
            return
        self.story.append(f"begin {row.key}")
        unit, decision = self.decided(row.key)
        self.cluster.feed.snapshot.rollback(0)
        if self._is_ready(unit):
            self._held = (unit, decision, self.cluster.state.revision)

    def _end_cycle(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        unit, decision, revision = held
        self.story.append(f"end {unit.key}")
        cluster, key = self.cluster, unit.key
        if cluster.state.get(key) is None or key not in cluster.queue.rows:
            cluster.queue.landed(key)
            return
        changed = cluster.state.revision != revision
        confirmed = None
        if cluster.layouts.changed_at.get(key, 0) <= revision:
            confirmed = still_holds(cluster, unit, PROFILE, decision, changed=changed)
        if confirmed is not None:
            self.commit(unit, confirmed)
        else:
            self._decide(key)

    def _put_pod(self) -> None:
        group = self.random.choice([*GANGS, ""])
        if not group:
            self.put_single()
            return
        spec = dsl.pod(cpu=str(int(group[1]) % 2 + 1), priority=self.gangs[group].spec.priority or 0)
        self.put_member(group, self.random.randrange(MEMBERS + 1), spec)

    def put_member(self, group: str, number: int, spec: Pod) -> None:
        """A pod of a group, unless it is there; now and then with a scheduling gate."""
        name = f"{group}-{number}"
        if not self.has_name(name):
            self._apply(replace(ours(spec, group=group), name=name, gates=self._gates()))

    def put_single(self) -> None:
        """A pod without a group, unless it is there; now and then others have bound it already."""
        name, chosen = self.random.choice(SINGLES), self.random.choice
        if self.has_name(name):
            return
        spec = dsl.pod(
            cpu=str(chosen((1, 2, 5))),
            priority=chosen((0, 0, 3)),
            node_selector={"disk": "ssd"} if chosen((False, True)) else {},
        )
        on = chosen(NODES) if self._could_run(spec) else ""
        self._apply(replace(ours(spec, on=on), name=name, gates=self._gates()))

    def _gates(self) -> tuple[str, ...]:
        return ("wait",) if not self.random.randrange(9) else ()

    def _could_run(self, spec: Pod) -> bool:
        """Others bind some pods, but no more than there is room for on any node."""
        if self.random.randrange(6):
            return False
        return min(self.free().values(), default=0) >= pod_requests(spec.spec)["cpu"] and len(
            self.free()
        ) == len(NODES)

    def has_name(self, name: str) -> bool:
        return self.cluster.state.pod("default", name) is not None

    def _put_node(self) -> None:
        chosen = self.random.choice
        name = chosen(NODES)
        used = self.used()[name] // 1000
        self._apply(
            dsl.node(
                name,
                str(max(used, chosen((0, 1, 2, 3, 4, 6)))),
                labels={**self.place_of(name), "disk": chosen(("ssd", "hdd"))},
                taints=(DEDICATED,) if chosen(range(5)) == 0 else (),
                unschedulable=chosen(range(6)) == 0,
            )
        )

    def place_of(self, node: str) -> dict[str, str]:
        """The labels that say where a node stands, which never change."""
        return {"zone": "a" if node[1] < "2" else "b"}

    def _put_gang(self) -> None:
        gang = self.gangs[self.random.choice(GANGS)]
        changed = with_minimum(gang, self.random.randint(1, MEMBERS))
        stored = self.cluster.state.group(gang.key)
        if stored is None or stored.deletion_us is None:
            kept = replace(changed, conditions=stored.conditions if stored is not None else ())
            self._apply(kept)

    def _apply(self, item: ClusterObject) -> None:
        self.story.append(f"apply {item!r}")
        self.apply(item)

    def _delete(self) -> None:
        objects = [item for kind in KINDS for item in self.cluster.state.objects[kind].values()]
        if objects:
            item = self.random.choice(objects)
            if not isinstance(item, Node) or not self.used()[item.name]:
                self.story.append(f"delete {item.key}")
                self.delete(item)

    def _report(self) -> None:
        pods = self.pods()
        if not pods:
            return
        pod = self.random.choice(pods)
        said = self.random.choice(
            (
                PhaseChanged("Running", "", ""),
                PhaseChanged("Succeeded", "", ""),
                PhaseChanged("Failed", "", ""),
                PhaseChanged("Pending", "", ""),
                BindingFailed(pod.node_name or "n0", "", ""),
                Bound(pod.node_name or "nowhere") if pod.node_name else Removed(),
                Removed(),
            )
        )
        uid = self.random.choice(("", "", pod.uid, "another"))
        self.story.append(f"report {pod.name} {said}")
        call = ReportCall("default", [PodReport("default", pod.name, uid, said)] * self.random.choice((1, 2)))
        self.change(lambda mutation: report(mutation, call))

    def _pass_time(self, seconds: float) -> None:
        self.story.append(f"later {seconds}")
        self.later(seconds)
        if self.cluster.failed_bindings.forgive(self.now_us):
            self.cluster.queue.happened((EventKind.BINDING_FORGIVEN,), self.now_us)

    def _jump(self, seconds: int) -> None:
        self.story.append(f"jump {seconds}")
        self.now_us += seconds * SECOND_US
        if seconds < 0:
            self.cluster.queue.time_went_back(self.now_us)
        self._pass_time(0)

    def _make_durable(self) -> None:
        self._durable = self.stored()

    def _restart(self) -> None:
        """A process ends and the next finds all that was committed."""
        self.story.append("restart")
        self._durable = self.stored()
        self._load(self._durable)

    def _crash(self) -> None:
        """The store lost what was not durable yet."""
        self.story.append("crash")
        self._load(self._durable)

    def _load(self, loaded: LoadedCluster) -> None:
        self._held = None
        fresh = TreeCluster().cluster
        fresh.profiles = self.cluster.profiles
        fresh.load(loaded)
        fresh.writes().wait_puts.update((wait.key, wait) for wait in loaded.waits)
        self.cluster = fresh
        self.cluster.queue.time_went_back(self.now_us)

    def pods(self) -> list[Pod]:
        return [pod for pod in self.cluster.state.objects["Pod"].values() if isinstance(pod, Pod)]

    def used(self) -> Counter[str]:
        """Milli-cpus in use by node."""
        used: Counter[str] = Counter()
        for pod in self.pods():
            if pod.node_name and not pod.is_terminal:
                used[pod.node_name] += pod_requests(pod.spec)["cpu"]
        return used

    def free(self) -> dict[str, int]:
        used = self.used()
        nodes = self.cluster.state.objects["Node"].values()
        return {
            node.name: node_allocatable(node).get("cpu", 0) - used[node.name]
            for node in nodes
            if isinstance(node, Node)
        }

    def faults(self) -> Iterator[str]:
        """What is wrong now, whatever goes on."""
        yield from self.broken
        yield from (f"{name} is over-committed by {-free}" for name, free in self.free().items() if free < 0)
        yield from self._misplaced()
        yield from self._array_faults()

    def _misplaced(self) -> Iterator[str]:
        """Units with pods that wait are in the queue, others are not; pods without a group of theirs are pending."""
        state, wanted, homeless = self.cluster.state, dict[ObjectKey, None](), dict[ObjectKey, None]()
        for pod in self.pods():
            if not pod.is_member or pod.node_name:
                continue
            key = ObjectKey("PodGroup", "default", pod.group) if pod.group else pod.key
            (wanted if state.get(key) is not None else homeless)[key if state.get(key) else pod.key] = None
        if set(self.cluster.queue.rows) != set(wanted):
            yield f"the queue has {set(self.cluster.queue.rows) ^ set(wanted)} too many or too few"
        if set(self.cluster.pending_members) != set(homeless):
            yield f"pending members differ by {set(self.cluster.pending_members) ^ set(homeless)}"

    def _array_faults(self) -> Iterator[str]:
        """The arrays say what the objects do."""
        snapshot = self.cluster.feed.flush()
        for name, free in self.free().items():
            slot = snapshot.nodes.slot(name)
            if slot is None or int(snapshot.nodes.free[snapshot.nodes.row("cpu"), slot]) != free:
                yield f"the arrays have another room on {name} than {free}"

    def _half_gangs(self, before: Counter[str]) -> Iterator[str]:
        """Gangs that a decision gave pods, but not their minimum. before: how many held in each."""
        for name, held in self._bound_members().items():
            gang = self.cluster.state.group(ObjectKey("PodGroup", "default", name))
            if gang is not None and before[name] < held < gang.spec.required_minimum:
                yield f"{name} has {held} of {gang.spec.required_minimum}"

    def _bound_members(self) -> Counter[str]:
        """Pods of each group that hold: bound ones, and finished ones of a group that was scheduled."""
        held = Counter[str]()
        for pod in self.pods():
            gang = (
                self.cluster.state.group(ObjectKey("PodGroup", "default", pod.group)) if pod.group else None
            )
            if gang is not None:
                has_ended = pod.status.phase == "Succeeded" and is_initially_scheduled(gang)
                held[pod.group] += has_ended or bool(pod.node_name and pod.is_member)
        return held

    def sleepers(self) -> Iterator[str]:
        """Units that wait though the nodes that admit them have room. For the end: nothing leaves, all backoffs are over."""
        for key, row in self.cluster.queue.rows.items():
            if row.state is not UnitState.GATED and self.could_run(key):
                yield f"{key} sleeps: {row}, {self.free()}"

    def could_run(self, key: ObjectKey) -> bool:
        """Whether there is room for a pod, or for what a group is short of, beside all that runs."""
        state, places = self.cluster.state, Places(self.cluster.state, self.free(), self._admits)
        root = state.group(key)
        if root is not None:
            return places.could_grow(root)
        pod = state.pod(key.namespace, key.name)
        return pod is not None and not pod.gates and places.has_room(pod)

    def _admits(self, node: Node, pod: Pod) -> bool:
        selected = all(node.labels.get(key) == value for key, value in pod.spec.node_selector.items())
        excluded = self.cluster.failed_bindings.get(pod.ordinal, ())
        return selected and not node.unschedulable and not node.taints and node.name not in excluded
