"""Filters that break a worker process in one way each; they are sent to it with a profile."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

from muster.core.framework import NodeFilter, Profile
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.plugins.profile import default_profile


@dataclass(frozen=True)
class Raises:
    """Raises where the core asks it."""

    code: str = "Unruly"
    message: str = "unruly"

    def mask(self, signature: Signature, nodes: NodeTable) -> None:
        raise ValueError("no mask today")


@dataclass(frozen=True)
class KillsItself(Raises):
    """Ends the process as the kernel would that needs its memory."""

    def mask(self, signature: Signature, nodes: NodeTable) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class NeverAnswers(Raises):
    """Stops the process, so that it neither answers nor takes what it is sent."""

    def mask(self, signature: Signature, nodes: NodeTable) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


@dataclass(frozen=True)
class RefusesHeavyImports(Raises):
    """Raises if the process has loaded what only its parent needs."""

    def mask(self, signature: Signature, nodes: NodeTable) -> None:
        import sys  # noqa: PLC0415 - that of the worker

        loaded = {"grpc", "google.protobuf", "sqlalchemy", "opentelemetry"} & set(sys.modules)
        if loaded:
            raise ValueError(f"loaded: {sorted(loaded)}")


def with_filter(node_filter: NodeFilter) -> Profile:
    return replace(default_profile(), node_filters=(node_filter,))
