"""A question whose answer comes back as JSON, so that the event loop hands on bytes and builds nothing.

It runs in the side worker's process, which has no gRPC in it: nothing here may import any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from muster.engine.aside import Setting
from muster.engine.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Encoded:
    """Equal questions are equal, so that an answer can be shared."""

    question: Callable[[Cluster, Setting], object]

    def __call__(self, cluster: Cluster, setting: Setting) -> bytes:
        """The answer as JSON."""
        return msgspec.json.encode(self.question(cluster, setting))
