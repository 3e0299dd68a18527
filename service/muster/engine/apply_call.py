"""The Apply call: its admission, and the one step of the event loop in which its revision is made.

Of a large call all is admitted ahead, in slices, while reads go on. Others who would write to the cluster wait for it; if
it changed all the same, everything is admitted again in the step itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from muster.engine.api import ApplyAnswer, ApplyCall
from muster.engine.applying import Accepted, ApplyPlan, answer_of
from muster.engine.cluster import Cluster
from muster.engine.mutation import Mutation
from muster.engine.ports import Clock, Ids
from muster.engine.slices import finished
from muster.validation.violations import Violation

if TYPE_CHECKING:
    from muster.engine.cluster_service import ClusterService

AT_ONCE = 500
"""Up to so many objects are admitted in the step that writes them."""


class _Ahead(NamedTuple):
    """What was admitted before the step that writes it."""

    plan: ApplyPlan
    admitted: list[Accepted]

    def holds(self, mutation: Mutation) -> bool:
        """Whether it is what the plan would come to now."""
        return mutation.cluster is self.plan.cluster and mutation.revision == self.plan.revision


class Applying:
    """One call; `faults` is what validation found in each object, by its index."""

    def __init__(
        self, call: ApplyCall, faults: Mapping[int, list[Violation]], clock: Clock, ids: Ids
    ) -> None:
        self._call = call
        self._faults = faults
        self._clock = clock
        self._ids = ids

    async def to_nothing(self, nothing: Cluster) -> ApplyAnswer:
        """The answer, or the refusal, of a cluster that does not exist, so that a refused call makes none."""
        ahead = await self._ahead(nothing)
        return answer_of(self._call, ahead.admitted, 0)

    async def to(self, service: ClusterService) -> ApplyAnswer:
        """Admit and write. Raises the refusal of the call."""
        cluster = service.cluster
        if len(self._call.objects) <= AT_ONCE:
            await cluster.large_calls.over()
            return self._written(service, None)
        service.check_available()
        async with cluster.large_calls.alone():
            return self._written(service, await self._ahead(cluster))

    def _written(self, service: ClusterService, ahead: _Ahead | None) -> ApplyAnswer:
        identity = None if self._call.validate_only else self._call.identity
        answer = service.write(partial(self._step, ahead), identity, self._call.encode_answer)
        self._call.written()
        return answer

    async def _ahead(self, cluster: Cluster) -> _Ahead:
        plan = ApplyPlan(cluster, self._call, self._clock.now_us(), self._ids)
        return _Ahead(plan, await plan.admit(self._faults))

    def _step(self, ahead: _Ahead | None, mutation: Mutation) -> tuple[ApplyAnswer, bool]:
        if ahead is None or not ahead.holds(mutation):
            plan = ApplyPlan(mutation.cluster, self._call, mutation.now_us, self._ids)
            ahead = _Ahead(plan, finished(plan.admit(self._faults)))
        if not self._call.validate_only:
            ahead.plan.write(ahead.admitted, mutation)
        writes = bool(mutation.edits)
        revision = mutation.revision if writes else mutation.state.revision
        return answer_of(self._call, ahead.admitted, revision), writes
