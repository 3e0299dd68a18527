"""What each page of the console asks for: one function a path below /console/api, from a query to a value for JSON.

They run on the event loop and make the engine calls that the RPCs make. Messages of the API are answered as they are;
topology, groups and timelines have no RPC, and are values of their own (bytes: JSON already). What takes time is asked aside, and every
answer has an end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from google.protobuf.message import Message

from muster.console.encoded import Encoded
from muster.console.query import Query
from muster.console.recent import Recent
from muster.console.timeline import timeline_of
from muster.engine.aside import TimeLimit
from muster.engine.errors import UnavailableError
from muster.engine.side_worker import SideWorkerFailedError
from muster.engine.topology_view import GroupsQuestion, TopologyQuestion
from muster.rpc.decisions import fitted
from muster.rpc.explain import explain
from muster.rpc.reading import Reading
from muster.v1 import scheduler_service_pb2 as pb
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.queue_pb2 import UnitState
from muster.validation.violations import REQUIRED

PAGE_SIZE = 100
MOST_ON_A_PAGE = 500
MOST_CLUSTERS = 200
LIMIT = TimeLimit(seconds=10.0, within_seconds=25.0)
SHARED_SECONDS = 1.0

View = Callable[[Query], Awaitable[Message | object]]


class Views:
    """Made once a service."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._engine = reading.engine
        self._recent = Recent[bytes](time.monotonic, SHARED_SECONDS)
        self._views: dict[str, View] = {
            "clusters": self._clusters,
            "topology": self._topology,
            "groups": self._found_groups,
            "queue": self._queue,
            "explain": self._explain,
            "decisions": self._decisions,
            "decision": self._decision,
            "timeline": self._timeline,
        }

    def __contains__(self, name: str) -> bool:
        """Whether there is a view of this name."""
        return name in self._views

    async def answer(self, name: str, query_string: str, authorization: str) -> Message | object:
        """What the view answers to the caller. Raises `Refusal`s alone."""

        async def work() -> Message | object:
            return await self._views[name](Query(query_string))

        return await self._reading.call(name, authorization, work)

    async def _clusters(self, query: Query) -> dict[str, object]:
        query.refuse()
        summaries = sorted(await self._engine.list_clusters(), key=lambda each: each.name)
        shown = [
            {"name": each.name, "revision": each.revision, "counts": each.counts}
            for each in summaries[:MOST_CLUSTERS]
        ]
        return {"clusters": shown, "hidden": len(summaries) - len(shown), "version": version("muster")}

    async def _topology(self, query: Query) -> bytes:
        group = query.key()
        query.refuse()
        return await self._aside(
            query.cluster, TopologyQuestion(query.texts("level"), query.texts("at"), group)
        )

    async def _found_groups(self, query: Query) -> bytes:
        query.refuse()
        return await self._aside(query.cluster, GroupsQuestion(query.text("text")))

    async def _aside(self, cluster: str, question: TopologyQuestion | GroupsQuestion) -> bytes:
        encoded = Encoded(question)
        try:
            return await self._recent.get(
                (cluster, encoded), lambda: self._engine.aside(cluster, encoded, LIMIT)
            )
        except SideWorkerFailedError as error:
            raise UnavailableError("VIEW_FAILED", f"the cluster was not looked at: {error}") from error

    async def _queue(self, query: Query) -> Message:
        request = pb.GetQueueRequest(
            cluster=query.cluster,
            states=[
                UnitState.ValueType(each) for each in query.enum_values("state", dict(UnitState.items()))
            ],
            page_size=query.number("pageSize", PAGE_SIZE, MOST_ON_A_PAGE),
            page_token=query.text("pageToken"),
        )
        query.refuse()
        return await self._reading.queue.list(request)

    async def _explain(self, query: Query) -> Message:
        query.refuse()
        response = await explain(
            self._engine,
            pb.ExplainRequest(
                cluster=query.cluster, unit=query.ref(), what_would_help=query.text("whatWouldHelp") == "true"
            ),
        )
        if response.HasField("last_decision"):
            response.last_decision.ClearField("assignments")
        return response

    async def _decisions(self, query: Query) -> Message:
        """A page without what only one decision's own page shows."""
        request = pb.ListDecisionsRequest(
            cluster=query.cluster,
            codes=[
                DecisionCode.ValueType(each) for each in query.enum_values("code", dict(DecisionCode.items()))
            ],
            page_size=query.number("pageSize", PAGE_SIZE, MOST_ON_A_PAGE),
            page_token=query.text("pageToken"),
        )
        if query.has("kind"):
            request.unit.CopyFrom(query.ref())
        query.refuse()
        response = await self._reading.decisions.list(request)
        for decision in response.decisions:
            decision.ClearField("result")
            decision.ClearField("assignments")
            decision.ClearField("preemption")
        return response

    async def _decision(self, query: Query) -> Message:
        record = await self._engine.get_decision(query.cluster, self._id(query))
        return fitted(query.cluster, record)

    async def _timeline(self, query: Query) -> object:
        record = await self._engine.get_decision(query.cluster, self._id(query))
        try:
            rerun = await self._engine.rerun(query.cluster, record)
        except SideWorkerFailedError as error:
            raise UnavailableError("VIEW_FAILED", f"the decision was not made again: {error}") from error
        return await asyncio.to_thread(timeline_of, rerun, fitted(query.cluster, record).result)

    def _id(self, query: Query) -> str:
        if not query.has("id"):
            query.faults.add("id", REQUIRED, "must be set")
        query.refuse()
        return query.text("id")
