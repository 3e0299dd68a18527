"""Prometheus metrics: upstream's names where upstream has one, `muster_` before the rest.

A registry of its own, so that two services in one process do not mix. `scheduler_placement_evaluation_duration_seconds`
is the mean over the candidates of one cycle: a clock reading a candidate would cost more than many evaluations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Gauge

from muster.core.decision import Decision, DecisionCode, GroupResult, SearchEnd, Status
from muster.telemetry.facts import CommitFacts, CycleFacts, QueueDepth
from muster.telemetry.tallies import Distribution, Tally

RESULTS = {
    DecisionCode.SCHEDULED: "scheduled",
    DecisionCode.WAITING_FOR_PREEMPTION: "waiting_on_preemption",
    DecisionCode.UNSCHEDULABLE: "unschedulable",
    DecisionCode.UNSCHEDULABLE_AND_UNRESOLVABLE: "unschedulable",
    DecisionCode.INVALID: "error",
    DecisionCode.SCHEDULER_ERROR: "error",
}
_STATUS_NAMES = {status: status.name.lower() for status in Status}
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SHORT_SECONDS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1)
WAIT_SECONDS = (0.01, 0.1, 1, 10, 60, 600, 3_600, 86_400)
STEPS = (0, 100, 1_000, 5_000, 10_000, 20_000, 100_000)
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


class Metrics:
    """All metrics of one service. Every method is a few dictionary look-ups; one thread alone may call them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._depths: dict[str, list[QueueDepth]] = {}
        self._make_cycle_metrics()
        self._make_queue_metrics()
        self._make_engine_metrics()
        self._make_rpc_metrics()

    def _make_cycle_metrics(self) -> None:
        labels = ("result", "profile")
        self._attempts = self._counter(
            "scheduler_podgroup_schedule_attempts", "Attempts to schedule a unit.", labels
        )
        self._attempt_seconds = self._histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds", "From snapshot to commit.", labels
        )
        self._algorithm_seconds = self._histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds", "The decision alone."
        )
        self._generated = self._counter(
            "scheduler_generated_placements", "Candidate domains that were found."
        )
        self._evaluated = self._counter(
            "scheduler_placement_evaluations", "Candidate domains that were simulated."
        )
        self._evaluation_seconds = self._histogram(
            "scheduler_placement_evaluation_duration_seconds", "Mean per candidate.", buckets=SHORT_SECONDS
        )
        self._preemptions = self._counter("scheduler_workload_preemption_attempts", "Attempts to preempt.")
        self._victims = self._histogram(
            "scheduler_workload_preemption_victims", "Pods that one preemption evicts.", buckets=COUNTS
        )
        self._pdb_violations = self._counter(
            "scheduler_preemption_pdb_violations", "Pods evicted beyond what budgets allow."
        )
        self._groups = self._counter(
            "muster_group_results", "Groups by depth in their tree and status.", ("level", "status")
        )
        self._candidates = self._counter(
            "muster_group_candidates", "Candidate domains, simulated or ruled out.", ("level", "outcome")
        )
        self._wait_seconds = self._histogram(
            "muster_unit_wait_seconds",
            "From the first pending pod to a cycle that bound.",
            buckets=WAIT_SECONDS,
        )
        self._bound_pods = self._counter("muster_bound_pods", "Pods that decisions bound.")
        self._searches = self._counter(
            "muster_searches", "Units that greedy placement failed, by how the search ended.", ("end",)
        )
        self._search_steps = self._histogram(
            "muster_search_steps", "Steps that one search took.", buckets=STEPS
        )

    def _make_queue_metrics(self) -> None:
        self._pending_pods = self._gauge("scheduler_pending_pods", "Pending pods.", ("queue",))
        self._queued = self._gauge("scheduler_queued_entities", "Units in the queue.", ("queue", "type"))
        self._incoming = self._counter(
            "scheduler_queue_incoming_entities", "Units that moved into a queue, and why.", ("queue", "event")
        )

    def _make_engine_metrics(self) -> None:
        self._commits = self._counter("muster_commits", "Transactions of the writer.", ("result",))
        self._commit_seconds = self._histogram("muster_commit_duration_seconds", "One transaction.")
        self._commit_writes = self._histogram(
            "muster_commit_writes", "Writes that share one transaction.", buckets=COUNTS
        )
        self._commit_rows = self._counter("muster_commit_rows", "Rows written.")
        self._revision = self._gauge("muster_revision", "The newest revision.", ("cluster",))
        self._cached = self._gauge("muster_cached_objects", "Objects in memory.", ("cluster", "kind"))
        self._worker_restarts = self._counter("muster_worker_restarts", "Worker processes started anew.")

    def _make_rpc_metrics(self) -> None:
        self._receiver_restarts = self._counter("muster_receiver_restarts", "Receivers started anew.")
        self._rpcs = self._counter("muster_rpcs", "RPCs that ended.", ("method", "code"))
        self._rpc_seconds = self._histogram("muster_rpc_duration_seconds", "RPCs, streams too.", ("method",))
        self._rpcs_in_work = self._running_number("muster_rpcs_in_work", "RPCs in work.", ("method",))
        self._refusals = self._counter("muster_rpc_refusals", "Refusals by reason.", ("method", "reason"))
        self._watches = self._running_number("muster_watches", "Open watches.", ("method",))

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Tally:
        return Tally(name, text, labels, self.registry)

    def _running_number(self, name: str, text: str, labels: Sequence[str]) -> Tally:
        return Tally(name, text, labels, self.registry, is_gauge=True)

    def _gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS
    ) -> Distribution:
        return Distribution(name, text, labels, buckets, self.registry)

    def cycle_ended(self, cycle: CycleFacts) -> None:
        """Count an attempt, its times and its groups."""
        decision = cycle.decision
        result = RESULTS.get(decision.code, decision.code.value.lower())
        self._attempts.add(1, result, cycle.profile)
        self._attempt_seconds.observe(cycle.attempt_seconds, result, cycle.profile)
        self._algorithm_seconds.observe(cycle.algorithm_seconds)
        if decision.assignments.pods:
            self._wait_seconds.observe(cycle.wait_seconds)
            self._bound_pods.add(len(decision.assignments.pods))
        self._count_groups(decision, cycle.algorithm_seconds)
        if decision.search.end is not SearchEnd.NOT_NEEDED:
            self._searches.add(1, decision.search.end.name.lower())
            self._search_steps.observe(decision.search.steps)

    def _count_groups(self, decision: Decision, algorithm_seconds: float) -> None:
        if decision.result is None:
            return
        if not (decision.result.children or decision.result.tried or decision.result.pruned):
            self._groups.add(1, "1", _STATUS_NAMES[decision.result.status])
            return
        evaluated = pruned = 0
        for (level, status), groups in _by_level(decision.result).items():
            self._groups.add(len(groups), level, status)
            tried_here = sum(group.tried for group in groups)
            pruned_here = sum(group.pruned for group in groups)
            if tried_here or pruned_here:
                self._candidates.add(tried_here, level, "tried")
                self._candidates.add(pruned_here, level, "pruned")
            evaluated += tried_here
            pruned += pruned_here
        if evaluated or pruned:
            self._generated.add(evaluated + pruned)
            self._evaluated.add(evaluated)
        if evaluated:
            self._evaluation_seconds.observe(algorithm_seconds / evaluated)

    def preempted(self, victims: int, budget_violations: int) -> None:
        """Count an attempt to preempt; no victims: it found none that would help."""
        self._preemptions.add(1)
        self._pdb_violations.add(budget_violations)
        if victims:
            self._victims.observe(victims)

    def committed(self, commit: CommitFacts) -> None:
        self._commits.add(1, "committed" if commit.succeeded else "failed")
        self._commit_seconds.observe(commit.seconds)
        self._commit_writes.observe(commit.writes)
        self._commit_rows.add(commit.rows if commit.succeeded else 0)

    def queue_moved(self, state: str, event: str, units: int) -> None:
        self._incoming.add(units, state, event)

    def queue_depth(self, cluster: str, depths: Iterable[QueueDepth]) -> None:
        """Replace what is known of one cluster; the gauges show the sums over all clusters."""
        gone = self._depths.pop(cluster, [])
        now = list(depths)
        if now:
            self._depths[cluster] = now
        units = {(each.state, each.kind): 0 for each in gone}
        pods = {each.state: 0 for each in gone}
        for each in (each for listed in self._depths.values() for each in listed):
            units[each.state, each.kind] = units.get((each.state, each.kind), 0) + each.units
            pods[each.state] = pods.get(each.state, 0) + each.pods
        for (state, kind), count in units.items():
            self._queued.labels(state, kind).set(count)
        for state, count in pods.items():
            self._pending_pods.labels(state).set(count)

    def cache_size(self, cluster: str, revision: int, objects: dict[str, int]) -> None:
        self._revision.labels(cluster).set(revision)
        for kind, count in objects.items():
            self._cached.labels(cluster, kind).set(count)

    def worker_restarted(self) -> None:
        self._worker_restarts.add(1)

    def receiver_restarted(self) -> None:
        self._receiver_restarts.add(1)

    def rpc_started(self, method: str) -> None:
        self._rpcs_in_work.add(1, method)

    def rpc_ended(self, method: str, code: str, seconds: float) -> None:
        self._rpcs_in_work.add(-1, method)
        self._rpcs.add(1, method, code)
        self._rpc_seconds.observe(seconds, method)

    def refused(self, method: str, reason: str) -> None:
        self._refusals.add(1, method, reason)

    def watch_opened(self, method: str) -> None:
        self._watches.add(1, method)

    def watch_closed(self, method: str) -> None:
        self._watches.add(-1, method)


def _by_level(result: GroupResult) -> dict[tuple[str, str], list[GroupResult]]:
    """Groups by depth (the root's is 1) and status."""
    found: dict[tuple[str, str], list[GroupResult]] = {}
    depth, level = 1, [result]
    while level:
        for group in level:
            found.setdefault((str(depth), _STATUS_NAMES[group.status]), []).append(group)
        depth, level = depth + 1, [child for group in level for child in group.children]
    return found
