"""What a person is told of an error that no server has sent, and of one that a server has."""

from __future__ import annotations

import grpc

from muster.cli.faults import explained
from muster.client.errors import ErrorDetails, UnavailableError

ADDRESS = "127.0.0.1:50051"
QUESTION = "is a server at"


def test_who_reaches_no_server_is_asked_whether_there_is_one() -> None:
    block = explained(UnavailableError(grpc.StatusCode.UNAVAILABLE, "connection refused"), ADDRESS)

    assert f"{QUESTION} {ADDRESS}?" in block


def test_who_was_answered_by_a_server_is_not_asked_whether_there_is_one() -> None:
    details = ErrorDetails(reason="EXPLANATION_FAILED")

    block = explained(UnavailableError(grpc.StatusCode.UNAVAILABLE, "it overran its time", details), ADDRESS)

    assert block == "Error: UNAVAILABLE (EXPLANATION_FAILED): it overran its time"
