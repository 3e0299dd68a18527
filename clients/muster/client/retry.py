"""When a call is made again: while the server is not there, or has too many calls in work.

Every call that changes something carries a `request_id`, so that a repeat of what did happen gets the first answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import stamina

from muster.client.errors import TOO_MANY_CALLS, MusterError, UnavailableError, error_of

FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0

_Result = TypeVar("_Result")

# Retries are for a program's own log, if it has one; without one Python would print a bare line for each.
logging.getLogger("stamina").addHandler(logging.NullHandler())


def wait_before_repeat(error: Exception) -> bool | float:
    """False if the call must not be repeated, True if after the usual wait, else the seconds the server asks for."""
    if not isinstance(error, MusterError):
        return False
    if not isinstance(error, UnavailableError) and error.reason != TOO_MANY_CALLS:
        return False
    return True if error.details.retry_after_seconds is None else error.details.retry_after_seconds


async def repeated(call: Callable[[], Awaitable[_Result]], seconds: float) -> _Result:
    """Makes the call until it succeeds or `seconds` are over, with growing waits. Raises MusterError."""
    attempts = stamina.retry_context(
        on=wait_before_repeat,
        attempts=None if seconds > 0 else 1,
        timeout=seconds if seconds > 0 else None,
        wait_initial=FIRST_WAIT_SECONDS,
        wait_max=LONGEST_WAIT_SECONDS,
        wait_jitter=FIRST_WAIT_SECONDS,
    )
    async for attempt in attempts:
        with attempt:
            return await typed(call)
    raise AssertionError("a retry ends with a result or an error")


async def typed(call: Callable[[], Awaitable[_Result]]) -> _Result:
    """Makes the call once. Raises MusterError in place of grpc's error."""
    try:
        return await call()
    except grpc.aio.AioRpcError as error:
        raise error_of(error) from error
