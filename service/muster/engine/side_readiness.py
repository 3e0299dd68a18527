"""Has the side worker ready before anybody asks: which clusters it follows beforehand, and when it catches up.

A question about a cluster that the side worker does not know yet waits for a process to start and for all of the cluster
to be sent; for a small one that is soon done. Large ones are made ready while little is written to them, and no more of
them than memory should be spent on. How that is done, and when nobody cares any longer, is the side worker's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping

from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.side_worker import SideWorker

_LOG = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
LEAST_OBJECTS = 2_000
MOST_OBJECTS = 150_000
"""Of all clusters together: about a KiB of memory each."""
QUIET_REVISIONS = 20
"""Since the last look: who writes more has no time to spare for copies."""
QUIET_LOOKS = 5
"""So many looks in a row must find it quiet once it was not: a stream of writes that draws breath goes on soon."""


class SideReadiness:
    """Looks after `services`, which it reads alone."""

    def __init__(self, side: SideWorker, services: Mapping[str, ClusterService]) -> None:
        self._side = side
        self._services = services
        self._seen = self._revisions()
        self._looks_left: dict[str, int] = {}
        self._failed: set[str] = set()

    async def run(self) -> None:
        """Keep it ready, for ever."""
        while True:
            await self.catch_up()
            await asyncio.sleep(LOOK_SECONDS)

    async def catch_up(self) -> None:
        """Have it follow what has become quiet since the last time, and is worth it."""
        quiet = self._quiet()
        for cluster in _worth_it(service.cluster for service in self._services.values()):
            if cluster.name not in quiet - self._failed:
                continue
            try:
                await self._side.make_ready(cluster)
            except Exception:  # noqa: BLE001 - its questions then wait, as they would have without all this
                self._failed.add(cluster.name)
                _LOG.exception("the side worker could not be made ready for cluster %s", cluster.name)

    def _quiet(self) -> set[str]:
        before, self._seen = self._seen, self._revisions()
        written = {name for name, now in self._seen.items() if now - before.get(name, 0) > QUIET_REVISIONS}
        left = {name: max(0, self._looks_left.get(name, 0) - 1) for name in self._seen}
        self._looks_left = left | dict.fromkeys(written, QUIET_LOOKS)
        return {name for name, looks in self._looks_left.items() if not looks}

    def _revisions(self) -> dict[str, int]:
        return {name: service.cluster.state.revision for name, service in self._services.items()}


def _worth_it(clusters: Iterable[Cluster]) -> Iterator[Cluster]:
    """The large ones that there is room for, the largest first."""
    room = MOST_OBJECTS
    sizes = {cluster: sum(map(len, cluster.state.objects.values())) for cluster in clusters}
    for cluster, size in sorted(sizes.items(), key=lambda sized: (-sized[1], sized[0].name)):
        if LEAST_OBJECTS <= size <= room:
            room -= size
            yield cluster
