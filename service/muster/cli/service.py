"""Commands that ask about the service itself: health, version."""

from __future__ import annotations

import asyncio
from importlib.metadata import version as package_version

import click
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from muster.cli.output import print_message
from muster.cli.session import TABLE, Session, client_command
from muster.client.client import Client
from muster.client.errors import MusterError
from muster.client.retry import typed
from muster.v1.cluster_service_pb2 import GetServerInfoResponse

HEALTH_SECONDS = 5.0
SERVING = "SERVING"


@click.command()
@client_command
def health(session: Session) -> None:
    """Ask a server whether it serves. Exit status 0 if it does, else 1."""
    try:
        state = asyncio.run(_state(session))
    except (TimeoutError, OSError, MusterError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        click.echo(f"{session.server}: {reason}", err=True)
        raise click.exceptions.Exit(1) from error
    click.echo(f"{session.server}: {state}")
    if state != SERVING:
        raise click.exceptions.Exit(1)


async def _state(session: Session) -> str:
    """The name of the server's state, asked once."""
    async with session.client() as client:
        check = client.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        metadata = client.connection.metadata()
        response = await typed(lambda: check(HealthCheckRequest(), timeout=HEALTH_SECONDS, metadata=metadata))
    return HealthCheckResponse.ServingStatus.Name(response.status)


@click.command()
@client_command
def version(session: Session) -> None:
    """Show the version of this command, and of the server if one answers."""
    click.echo(f"muster {package_version('muster')}")
    info = asyncio.run(_server_info(session))
    if info is None:
        click.echo(f"no server at {session.server}")
    elif session.output != TABLE:
        print_message(info, session.output)
    else:
        profiles = ", ".join(info.profiles)
        click.echo(f"server {info.version} at {session.server} (replica {info.replica}, profiles {profiles})")


async def _server_info(session: Session) -> GetServerInfoResponse | None:
    async with session.client(retry_seconds=0) as client:
        try:
            return await _asked(client)
        except MusterError:
            return None


async def _asked(client: Client) -> GetServerInfoResponse:
    return await asyncio.wait_for(client.get_server_info(), HEALTH_SECONDS)
