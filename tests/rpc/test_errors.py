"""One table turns refusals into statuses: codes, details, sizes."""

import logging

import grpc
import pytest
from google.rpc import error_details_pb2

from muster.engine.errors import (
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    Precondition,
    Refusal,
    ResourceExhaustedError,
    UnavailableError,
)
from muster.engine.ports import FencedError, StoreUnavailableError
from muster.v1 import cluster_service_pb2 as pb
from muster.validation.violations import INVALID, Violation
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, Refused, ref, refused

STALE = [Precondition("X", f"Pod default/p-{index}", "moved on") for index in range(3)]
FAULTS = [Violation(f"objects[{index}].pod.spec", INVALID, "wrong") for index in range(3)]
GONE = [("Pod", "default/a"), ("Pod", "default/b")]


async def answer_to(api: Api, engine: FakeEngine, refusal: Exception) -> Refused:
    engine.refusal = refusal
    return await refused(api.cluster.Get(pb.GetRequest(ref=ref("Pod", "a"))))


@pytest.mark.parametrize(
    ("refusal", "code", "detail"),
    [
        *(
            pytest.param(
                InvalidArgumentError(reason, "m", FAULTS),
                grpc.StatusCode.INVALID_ARGUMENT,
                error_details_pb2.BadRequest,
                id=reason,
            )
            for reason in (
                "INVALID_OBJECTS",
                "INVALID_REQUEST",
                "TOO_MANY_OBJECTS",
                "LIMIT_EXCEEDED",
                "REQUEST_ID_REUSED",
                "PAGE_TOKEN_MISMATCH",
            )
        ),
        *(
            pytest.param(
                NotFoundError(reason, "m", GONE),
                grpc.StatusCode.NOT_FOUND,
                error_details_pb2.ResourceInfo,
                id=reason,
            )
            for reason in (
                "OBJECT_NOT_FOUND",
                "CLUSTER_NOT_FOUND",
                "DECISION_NOT_FOUND",
                "DECISION_COMPACTED",
            )
        ),
        *(
            pytest.param(
                ConflictError(reason, "m", STALE),
                grpc.StatusCode.ABORTED,
                error_details_pb2.PreconditionFailure,
                id=reason,
            )
            for reason in ("RESOURCE_VERSION_MISMATCH", "UID_MISMATCH")
        ),
        *(
            pytest.param(
                FailedPreconditionError(reason, "m", STALE),
                grpc.StatusCode.FAILED_PRECONDITION,
                error_details_pb2.PreconditionFailure,
                id=reason,
            )
            for reason in ("FOREIGN_SCHEDULER", "CLUSTER_DELETING", "OBJECT_DELETING", "ARGUMENT_STATE")
        ),
        *(
            pytest.param(OutOfRangeError(reason, "m"), grpc.StatusCode.OUT_OF_RANGE, None, id=reason)
            for reason in ("REVISION_COMPACTED", "REVISION_IN_FUTURE")
        ),
        *(
            pytest.param(
                ResourceExhaustedError(reason, "m"),
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                error_details_pb2.RetryInfo,
                id=reason,
            )
            for reason in ("WATCHER_TOO_SLOW", "TOO_MANY_WATCHES", "TOO_MANY_CALLS")
        ),
        *(
            pytest.param(
                UnavailableError(reason, "m"),
                grpc.StatusCode.UNAVAILABLE,
                error_details_pb2.RetryInfo,
                id=reason,
            )
            for reason in ("SERVER_DRAINING", "NO_CLUSTER_OWNER", "STORE_UNAVAILABLE")
        ),
    ],
)
async def test_a_refusal_has_its_code_its_reason_and_the_matching_detail(
    api: Api,
    engine: FakeEngine,
    refusal: Refusal,
    code: grpc.StatusCode,
    detail: type[error_details_pb2.BadRequest] | None,
    request: pytest.FixtureRequest,
) -> None:
    answer = await answer_to(api, engine, refusal)

    assert (answer.code, answer.domain) == (code, "muster")
    assert answer.reason == request.node.callspec.id.partition("-")[2]
    assert detail is None or answer.has(detail)
    assert answer.details.code == code.value[0]


async def test_metadata_of_a_refusal_reaches_the_caller(api: Api, engine: FakeEngine) -> None:
    answer = await answer_to(
        api, engine, OutOfRangeError("REVISION_COMPACTED", "compacted", oldest_revision="17")
    )

    assert answer.metadata == {"oldest_revision": "17"}


async def test_every_object_of_a_conflict_is_named(api: Api, engine: FakeEngine) -> None:
    answer = await answer_to(api, engine, ConflictError("UID_MISMATCH", "m", STALE))

    violations = answer.detail(error_details_pb2.PreconditionFailure).violations
    assert [each.subject for each in violations] == ["Pod default/p-0", "Pod default/p-1", "Pod default/p-2"]


async def test_every_missing_object_has_a_detail_of_its_own(api: Api, engine: FakeEngine) -> None:
    answer = await answer_to(api, engine, NotFoundError("OBJECT_NOT_FOUND", "m", GONE))

    kinds = [each.TypeName().rpartition(".")[2] for each in answer.details.details]
    assert kinds == ["ErrorInfo", "ResourceInfo", "ResourceInfo"]


@pytest.mark.parametrize("description", ["short", "ü" * 400, "x" * 5_000], ids=["short", "wide", "long"])
async def test_violations_are_shown_in_order_as_many_as_fit_and_all_are_counted(
    api: Api, engine: FakeEngine, description: str
) -> None:
    faults = [Violation(f"objects[{index}].pod", INVALID, description) for index in range(1_000)]

    answer = await answer_to(api, engine, InvalidArgumentError("INVALID_OBJECTS", "ü" * 2_000, faults))

    bad_request = answer.detail(error_details_pb2.BadRequest)
    shown = [each.field for each in bad_request.field_violations]
    largest = bad_request.field_violations[0].ByteSize() + 4
    assert shown == [f"objects[{index}].pod" for index in range(len(shown))]
    assert answer.metadata == {"violations_total": "1000", "violations_shown": str(len(shown))}
    assert bad_request.ByteSize() <= 6 * 1024 < bad_request.ByteSize() + largest + 1_100
    assert answer.trailer_bytes <= 8 * 1024


async def test_two_faults_are_both_shown(api: Api, engine: FakeEngine) -> None:
    answer = await answer_to(api, engine, InvalidArgumentError("INVALID_OBJECTS", "m", FAULTS[:2]))

    assert answer.fields == {"objects[0].pod.spec": INVALID, "objects[1].pod.spec": INVALID}
    assert answer.metadata == {"violations_total": "2", "violations_shown": "2"}


async def test_an_unexpected_exception_is_logged_and_does_not_leak(
    api: Api, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = await answer_to(api, engine, ZeroDivisionError("the secret divisor"))

    assert (answer.code, answer.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in answer.message + str(answer.details)
    record = next(each for each in caplog.records if each.exc_info)
    assert vars(record)["error_id"] == answer.metadata["error_id"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(StoreUnavailableError("disk full"), "STORE_UNAVAILABLE", id="store"),
        pytest.param(FencedError("taken"), "NO_CLUSTER_OWNER", id="fenced"),
    ],
)
async def test_a_store_that_fails_makes_the_call_unavailable(
    api: Api, engine: FakeEngine, error: Exception, reason: str
) -> None:
    answer = await answer_to(api, engine, error)

    assert (answer.code, answer.reason) == (grpc.StatusCode.UNAVAILABLE, reason)
    assert answer.detail(error_details_pb2.RetryInfo).retry_delay.ToMilliseconds() > 0
