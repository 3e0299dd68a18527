"""Admission, deadlines, health, TLS, tokens, draining."""

import asyncio
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2

from muster.rpc.addresses import AddressError
from muster.rpc.auth import TokenFileError, read_tokens
from muster.rpc.server import SERVICES, RpcServer, ServingOptions, TlsFiles
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import cluster_service_pb2_grpc
from muster.v1 import scheduler_service_pb2 as spb
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import (
    PATIENCE_SECONDS,
    SHORT_LIMITS,
    Api,
    RecordingTelemetry,
    apply,
    health_stub,
    pod,
    ref,
    refused,
    status_of,
)

GET = pb.GetRequest(ref=ref("Pod", "a"))


@pytest.mark.parametrize("limits", [replace(SHORT_LIMITS, unary_calls=2)], ids=["two calls"])
async def test_calls_beyond_the_limit_are_refused_and_health_answers_on(
    api: Api, engine: FakeEngine, channel: aio.Channel
) -> None:
    await apply(api, pod("a"))
    engine.gate = asyncio.Event()
    held = [asyncio.ensure_future(api.cluster.Get(GET)) for _ in range(2)]
    for _ in range(3):
        await engine.entered.acquire()

    answer = await refused(api.cluster.Get(GET))
    status = await status_of(channel)
    engine.gate.set()
    await asyncio.gather(*held)

    assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")
    assert status == health_pb2.HealthCheckResponse.SERVING
    assert (await api.cluster.Get(GET)).revision == 2


@pytest.mark.parametrize("limits", [replace(SHORT_LIMITS, deadline_seconds=0.1)], ids=["short"])
async def test_a_call_without_a_deadline_gets_the_default_one(api: Api, engine: FakeEngine) -> None:
    engine.gate = asyncio.Event()

    answer = await refused(api.cluster.Get(GET))

    assert (answer.code, answer.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEFAULT_DEADLINE")
    assert answer.metadata == {"seconds": "0.1"}


@pytest.mark.parametrize("limits", [replace(SHORT_LIMITS, deadline_seconds=0.1)], ids=["short"])
@pytest.mark.parametrize("longer", ["a deadline of its own", "a wait"])
async def test_a_caller_may_allow_more(
    api: Api, engine: FakeEngine, longer: str, telemetry: RecordingTelemetry
) -> None:
    engine.gate = asyncio.Event()
    request = spb.ScheduleRequest(unit=ref("PodGroup", "g"))
    if longer == "a wait":
        request.wait.FromSeconds(30)
    call = api.scheduler.Schedule(request, timeout=None if longer == "a wait" else 30)
    refusal = asyncio.ensure_future(refused(api.cluster.Get(GET)))

    assert (await refusal).reason == "DEFAULT_DEADLINE"
    engine.gate.set()

    assert not (await call).fresh


async def test_calls_are_told_to_telemetry_with_their_code(api: Api, telemetry: RecordingTelemetry) -> None:
    await apply(api, pod("a"))
    await refused(api.cluster.Get(pb.GetRequest(ref=ref("Pod", "b"))))

    assert telemetry.ended == [("Apply", "OK"), ("Get", "NOT_FOUND")]


async def test_a_refused_call_is_counted_before_its_caller_hears_of_it(
    api: Api, server: RpcServer, telemetry: RecordingTelemetry
) -> None:
    def counted_when_heard() -> list[int]:
        """Calls of a client on a thread of its own, which hears of a refusal while the server's loop still runs."""
        counted = []
        with grpc.insecure_channel(server.addresses[0]) as channel:
            cluster = cluster_service_pb2_grpc.ClusterServiceStub(channel)
            for _ in range(300):
                with pytest.raises(grpc.RpcError):
                    cluster.Get(GET)
                counted.append(len(telemetry.ended))
        return counted

    assert await asyncio.to_thread(counted_when_heard) == list(range(1, 301))


async def test_a_message_of_more_than_64_mebibytes_is_refused_and_a_large_one_taken(api: Api) -> None:
    large = [pod(f"p-{index}", note="x" * 1_000_000) for index in range(60)]

    response = await apply(api, *large)
    with pytest.raises(aio.AioRpcError) as caught:
        await apply(api, *large, *large)

    assert len(response.results) == 60
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_gzip_is_taken(api: Api) -> None:
    response = await api.cluster.Apply(
        pb.ApplyRequest(objects=[pod("a", note="x" * 10_000)]), compression=grpc.Compression.Gzip
    )

    assert response.revision == 2


async def test_health_answers_for_the_server_and_each_service(channel: aio.Channel) -> None:
    statuses = [await status_of(channel, name) for name in ("", *SERVICES)]

    assert statuses == [health_pb2.HealthCheckResponse.SERVING] * 3
    assert SERVICES == ("muster.v1.ClusterService", "muster.v1.SchedulerService")


async def test_draining_lets_calls_in_work_end_and_takes_no_more(
    api: Api, engine: FakeEngine, server: RpcServer, channel: aio.Channel
) -> None:
    await apply(api, pod("a"))
    engine.gate = asyncio.Event()
    in_work = asyncio.ensure_future(api.cluster.Get(GET))
    for _ in range(2):
        await engine.entered.acquire()
    watching = health_stub(channel).Watch(health_pb2.HealthCheckRequest())
    serving = await watching.read()

    draining = asyncio.ensure_future(server.drain(PATIENCE_SECONDS))
    not_serving = await watching.read()
    late = await refused(api.cluster.Get(GET))
    engine.gate.set()
    watching.cancel()
    await draining

    assert (serving.status, not_serving.status) == (1, 2)
    assert (late.code, late.reason) == (grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")
    assert (await in_work).revision == 2


async def code_of(api: Api) -> grpc.StatusCode:
    with pytest.raises(aio.AioRpcError) as caught:
        await api.cluster.Get(GET)
    return caught.value.code()


async def test_draining_does_not_wait_longer_than_told(
    api: Api, engine: FakeEngine, server: RpcServer
) -> None:
    engine.gate = asyncio.Event()
    in_work = asyncio.ensure_future(code_of(api))
    await engine.entered.acquire()
    started = time.monotonic()

    await server.drain(0.1)

    assert time.monotonic() - started < PATIENCE_SECONDS / 2
    assert await in_work in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority (ca), a server (server) and a client (client) that it signed: NAME.pem and NAME.key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1", encoding="utf-8")
    for name in ("server", "client"):
        openssl("req", *key[:3], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return folder


@pytest.mark.parametrize("shown", ["client", None], ids=["with certificate", "without"])
async def test_tls_with_a_client_authority_lets_in_who_shows_a_certificate(
    engine: FakeEngine, certificates: Path, shown: str | None, receiver: bool
) -> None:
    files = TlsFiles(certificates / "server.pem", certificates / "server.key", certificates / "ca.pem")
    server = RpcServer(engine, ServingOptions(receiver=receiver, tls=files))
    await server.start()
    authority = (certificates / "ca.pem").read_bytes()
    pair = [(certificates / f"{shown}.{end}").read_bytes() if shown else None for end in ("key", "pem")]
    async with aio.secure_channel(
        server.addresses[0], grpc.ssl_channel_credentials(authority, *pair)
    ) as channel:
        call = health_stub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        if shown:
            assert (await call).status == health_pb2.HealthCheckResponse.SERVING
        else:
            with pytest.raises(aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await server.drain(0)


async def test_tls_files_that_are_missing_are_named(
    engine: FakeEngine, tmp_path: Path, receiver: bool
) -> None:
    server = RpcServer(
        engine, ServingOptions(receiver=receiver, tls=TlsFiles(tmp_path / "no.pem", tmp_path / "no.key"))
    )

    with pytest.raises(AddressError, match=r"no\.key"):
        await server.start()


@pytest.mark.parametrize(
    ("token", "method", "expected"),
    [
        pytest.param(None, "Get", "TOKEN_REQUIRED", id="no token"),
        pytest.param("wrong", "Get", "TOKEN_UNKNOWN", id="unknown"),
        pytest.param("r-token", "Get", "OBJECT_NOT_FOUND", id="reader reads"),
        pytest.param("r-token", "Apply", "ROLE_REQUIRED", id="reader writes"),
        pytest.param("r-token", "Watch", "REVISION_IN_FUTURE", id="reader watches"),
        pytest.param("w-token", "Apply", "INVALID_REQUEST", id="writer writes"),
        pytest.param("w-token", "DeleteCluster", "ROLE_REQUIRED", id="writer removes a cluster"),
        pytest.param("a-token", "DeleteCluster", "INVALID_REQUEST", id="admin removes a cluster"),
    ],
)
async def test_a_token_gives_a_role(
    engine: FakeEngine, tmp_path: Path, token: str | None, method: str, expected: str, receiver: bool
) -> None:
    file = tmp_path / "tokens"
    file.write_text(
        "# who\nrita, r-token, reader\nwill w-token writer\n\nada,a-token,admin\n", encoding="utf-8"
    )
    server = RpcServer(engine, ServingOptions(receiver=receiver, tokens=read_tokens(file)))
    await server.start()
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    requests = {"Get": GET, "Apply": pb.ApplyRequest(), "DeleteCluster": pb.DeleteClusterRequest()}
    async with aio.insecure_channel(server.addresses[0]) as channel:
        stub = cluster_service_pb2_grpc.ClusterServiceStub(channel)
        if method == "Watch":
            answer = await refused(stub.Watch(pb.WatchRequest(from_revision=9), metadata=metadata).read())
        else:
            answer = await refused(getattr(stub, method)(requests[method], metadata=metadata))
        status = await status_of(channel)
    await server.drain(0)

    assert answer.reason == expected
    assert status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("a, b", ":1: a line is", id="two fields"),
        pytest.param("\na, b, king", ":2: the role is one of reader, writer, admin", id="role"),
        pytest.param("# nothing", "holds no token", id="empty"),
    ],
)
def test_a_wrong_token_file_is_refused_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(TokenFileError, match=fault):
        read_tokens(file)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        pytest.param(replace(SHORT_LIMITS, ping_seconds=0.9), True, id="as often as allowed"),
        pytest.param(SHORT_LIMITS, False, id="far too often"),
    ],
)
async def test_a_client_may_ping_as_often_as_allowed_without_calls(server: RpcServer, allowed: bool) -> None:
    options = [
        ("grpc.keepalive_time_ms", 1_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    async with aio.insecure_channel(server.addresses[0], options=options) as channel:
        await channel.channel_ready()
        sent_away = asyncio.ensure_future(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))

        # A server that minds says so (GOAWAY, too_many_pings) at the fourth ping.
        done, _ = await asyncio.wait({sent_away}, timeout=6)
        sent_away.cancel()

    assert bool(done) is not allowed
    assert SHORT_LIMITS.ping_seconds < 5
