"""Requests that may be sent twice: their identity, and the first answer for the second time.

Decides what makes two requests the same (all bytes but the id). Keeping answers, and waiting for a first request
that is still in work, is the engine's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Generic, TypeVar

from google.protobuf.message import Message

from muster.engine.api import RequestIdentity
from muster.engine.slices import Slices
from muster.v1 import cluster_service_pb2

A = TypeVar("A")
R = TypeVar("R", bound=Message)

DIGEST_BYTES = 20


def identity_of(method: str, request_id: str, request: Message) -> RequestIdentity | None:
    """The identity of a request of moderate size, None without an id."""
    if not request_id:
        return None
    rest = type(request)()
    rest.CopyFrom(request)
    rest.ClearField("request_id")
    digest = hashlib.blake2b(rest.SerializeToString(deterministic=True), digest_size=DIGEST_BYTES)
    return RequestIdentity(method, request_id, digest.digest())


async def apply_identity(
    method: str, request: cluster_service_pb2.ApplyRequest, cluster: str
) -> RequestIdentity | None:
    """As `identity_of`, for requests so large that other calls must get their turn meanwhile."""
    if not request.request_id:
        return None
    head = f"{cluster} {request.validate_only}"
    if request.HasField("wait"):
        head += f" {request.wait.seconds} {request.wait.nanos}"
    digest = hashlib.blake2b(head.encode(), digest_size=DIGEST_BYTES)
    slices = Slices()
    for each in request.objects:
        encoded = each.SerializeToString(deterministic=True)
        digest.update(len(encoded).to_bytes(4))
        digest.update(encoded)
        if slices.is_over:
            await slices.give_way()
    return RequestIdentity(method, request.request_id, digest.digest())


class AnswerEncoder(Generic[A, R]):
    """Makes the response of an answer once: for the bytes that a replay gives, and for the caller."""

    def __init__(self, encode: Callable[[A], R]) -> None:
        self._encode = encode
        self._made: tuple[A, R] | None = None

    def message(self, answer: A) -> R:
        if self._made is None or self._made[0] is not answer:
            self._made = (answer, self._encode(answer))
        return self._made[1]

    def to_bytes(self, answer: A) -> bytes:
        return self.message(answer).SerializeToString()
