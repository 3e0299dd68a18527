"""Explanations as they are answered: the result of each group with all its reasons, and what would help."""

from __future__ import annotations

from muster.core.explain.explanation import Help
from muster.engine.api import ExplainAnswer
from muster.rpc.codec.decision import encode_result
from muster.rpc.codec.meta import encode_ref
from muster.v1 import decision_pb2
from muster.v1 import scheduler_service_pb2 as pb

PROVED = "proved"


def encode_helps(answer: ExplainAnswer) -> list[pb.Help]:
    """Changes each of which would let the unit be scheduled, in their order."""
    return list(map(_encode_help, answer.helps))


def encode_explained(answer: ExplainAnswer) -> decision_pb2.GroupResult | None:
    """How each group comes out; None if the unit is gone."""
    return None if answer.result is None else encode_result(answer.result)


def _encode_help(help_: Help) -> pb.Help:
    return pb.Help(
        code=help_.code.value,
        message=help_.message,
        refs=map(encode_ref, help_.refs),
        count=help_.count,
        details={**help_.details, PROVED: "true" if help_.proved else "false"},
    )
