"""A cluster whose profile makes reservations, and whose pods finish when they said that they would."""

from __future__ import annotations

from dataclasses import replace

from muster.core.framework import NodeFilter, ReservationSettings
from muster.engine.api import PhaseChanged, PodReport, ReportCall
from muster.engine.reports import report
from muster.engine.reservations import Reservation
from muster.engine.reserving import Reserver
from muster.engine.slices import finished
from muster.engine.worker_pool import WorkerPool
from muster.model.group import PodGroup
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from muster.model.priority import NEVER
from muster.model.run_time import MAX_RUN_TIME_SECONDS, max_run_time_seconds
from tests.engine.small_cluster import NOW_US, SECOND_US
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, pods

AFTER_SECONDS = 30


class _Now:
    """The time of a cluster, as a clock."""

    def __init__(self, cluster: TreeCluster) -> None:
        self._cluster = cluster

    def now_us(self) -> int:
        return self._cluster.now_us

    def monotonic(self) -> float:
        return self._cluster.now_us / SECOND_US


class ReservingCluster(TreeCluster):
    """`second` lets time pass; reservations are worked out as before every cycle of the real engine.

    after_seconds: of the profile; None: no reservations. overrunning: names of pods that go on for longer than they said.
    """

    def __init__(self, *objects: ClusterObject, after_seconds: int | None = AFTER_SECONDS) -> None:
        super().__init__()
        profile = replace(PROFILE, reservation=ReservationSettings(after_seconds))
        self._profiles = {profile.name: profile}
        self._reserver = self._new_reserver()
        self.overrunning: set[str] = set()
        self.apply(*objects)

    @property
    def reservation(self) -> Reservation | None:
        return self.cluster.reservations.current

    @property
    def reserved_nodes(self) -> list[str]:
        """A name for every pod that is to run there."""
        held = self.reservation
        return sorted(name for each in held.room for name in each.node_names) if held is not None else []

    @property
    def start_seconds(self) -> float:
        """In how many seconds the unit that has the reservation is expected to start."""
        assert self.reservation is not None
        assert self.reservation.start_us is not None
        return (self.reservation.start_us - self.now_us) / SECOND_US

    def tried(self) -> None:
        """Cycles until no unit is active, with what a reservation makes of it."""
        for _ in range(1_000):
            finished(self._reserver.renew())
            if self.cycle() is None:
                return
        raise AssertionError("the queue does not come to rest")

    def second(self) -> None:
        """One second passes, whose end some pods do not live to see."""
        self.later(1)
        self.finish(*(pod.name for pod in self._pods() if self._is_over(pod)))
        self.tried()

    def seconds(self, number: int) -> None:
        for _ in range(number):
            self.second()

    def reserve_by(self, node_filter: NodeFilter) -> None:
        """From now on this filter, with no other, has its say about what is reserved."""
        (profile,) = self._profiles.values()
        self._profiles = {profile.name: replace(profile, node_filters=(node_filter,))}
        self._reserver = self._new_reserver()

    def finish(self, *names: str) -> None:
        done = [PodReport("default", name, "", PhaseChanged("Succeeded", "", "")) for name in names]
        if done:
            self.change(lambda mutation: report(mutation, ReportCall("default", done)))

    def waiting(self) -> list[Pod]:
        return [pod for pod in self._pods() if not pod.node_name]

    def restarted(self) -> ReservingCluster:
        """A process of its own finds the cluster in its store; what is reserved is to be worked out by the next `tried`."""
        loaded = super().restarted()
        again = ReservingCluster(after_seconds=None)
        again.cluster, again.now_us, again._profiles = loaded.cluster, self.now_us, self._profiles
        again.overrunning, again._reserver = self.overrunning, again._new_reserver()
        return again

    def _new_reserver(self) -> Reserver:
        self.cluster.profiles = self._profiles
        return Reserver(self.cluster, _Now(self), self._profiles, WorkerPool(0))

    def _pods(self) -> list[Pod]:
        found = self.cluster.state.objects["Pod"].values()
        return [pod for pod in found if isinstance(pod, Pod)]

    def _is_over(self, pod: Pod) -> bool:
        seconds = max_run_time_seconds(pod)
        if seconds is None or not pod.node_name or pod.is_terminal or pod.name in self.overrunning:
            return False
        return self.cluster.disruption.start_of(pod) + seconds * SECOND_US <= self.now_us


def single(
    name: str, run_seconds: int | None = None, *, on: str = "", priority: int = 0, cpu: int = 1
) -> Pod:
    """A pod without a group; one that runs on a node has run since the clock began."""
    (pod,) = pods(leaf(name), 1, priority=priority, on=on)
    (container,) = pod.spec.containers
    requests = replace(container.resources, requests={"cpu": str(cpu)})
    spec = replace(pod.spec, containers=(replace(container, resources=requests),))
    annotations = {} if run_seconds is None else {MAX_RUN_TIME_SECONDS: str(run_seconds)}
    status = PodStatus("Running", start_us=NOW_US) if on else pod.status
    return replace(pod, name=name, group="", annotations=annotations, spec=spec, status=status)


def gang(
    size: int, name: str = "gang", *, priority: int = 0, same: str = "", policy: str = NEVER
) -> tuple[PodGroup, list[Pod]]:
    """A gang of pods of one core that preempts nobody, unless it is told to."""
    group = leaf(name, size, priority=priority, same=same, workload="")
    members = [
        replace(pod, spec=replace(pod.spec, preemption_policy=policy))
        for pod in pods(group, size, priority=priority)
    ]
    return replace(group, spec=replace(group.spec, preemption_policy=policy)), members
