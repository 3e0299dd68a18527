"""What every command that calls a server shares: where it is, which cluster and namespace, how answers are printed.

The options may stand before the command or after it; the later one counts. Decides how a failed call ends the
program: exit status 1 and one readable block on standard error.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from muster.cli.faults import explained
from muster.cli.server_options import Address, Token
from muster.client.client import Client
from muster.client.connection import DEFAULT_ADDRESS, Connection, Tls
from muster.client.errors import MusterError
from muster.client.manifest_documents import DocumentError
from muster.client.manifests import ManifestError

TABLE, JSON, YAML = "table", "json", "yaml"
# A person waits at the other end: long enough for a server that restarts, short enough to be told of one that does not.
RETRY_SECONDS = 3.0
INTERRUPTED = 130
UTF_8 = "utf-8"

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Session:
    """The values of the global options."""

    server: str = DEFAULT_ADDRESS
    cluster: str = ""
    namespace: str = ""
    output: str = TABLE
    tls: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    token: str = ""

    def client(self, retry_seconds: float = RETRY_SECONDS) -> Client:
        """A client of the server, to be closed by the caller. Raises OSError if a PEM file cannot be read."""
        secured = self.tls or self.ca is not None or self.cert is not None
        tls = Tls(self.ca, self.cert, self.key) if secured else None
        connection = Connection(self.server, tls, self.token)
        return Client(connection, cluster=self.cluster, retry_seconds=retry_seconds)


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:  # noqa: ANN401 - of any option
    """Puts a given option into the session of the whole command line; each option is named as its field.

    A variable of the environment counts once, at the outermost command, so that any option overrides it.
    """
    session = context.ensure_object(Session)
    if value is None or parameter.name is None:
        return
    is_of_environment = context.get_parameter_source(parameter.name) is ParameterSource.ENVIRONMENT
    if context.parent is None or not is_of_environment:
        context.obj = replace(session, **{parameter.name: value})


_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--server",),
        {
            "type": Address(),
            "metavar": "ADDRESS",
            "envvar": "MUSTER_SERVER",
            "help": f"HOST:PORT or unix:///path; {DEFAULT_ADDRESS} if not given.",
        },
    ),
    (
        ("--cluster",),
        {"metavar": "NAME", "envvar": "MUSTER_CLUSTER", "help": "The cluster; 'default' if not given."},
    ),
    (("-n", "--namespace"), {"metavar": "NAME", "help": "The namespace."}),
    (("-o", "--output"), {"type": click.Choice([TABLE, JSON, YAML]), "help": "How answers are printed."}),
    (("--tls",), {"is_flag": True, "default": None, "help": "Use TLS, with the system's roots."}),
    (("--ca",), {"type": click.Path(path_type=Path), "help": "PEM file of roots to trust; implies --tls."}),
    (("--cert",), {"type": click.Path(path_type=Path), "help": "PEM file of the client's certificate."}),
    (("--key",), {"type": click.Path(path_type=Path), "help": "PEM file of its key."}),
    (
        ("--token",),
        {"type": Token(), "metavar": "TOKEN", "envvar": "MUSTER_TOKEN", "help": "Bearer token."},
    ),
)


def global_options(command: _Command) -> _Command:
    """Adds the global options; their values go to the session."""
    for names, attributes in reversed(_OPTIONS):
        command = click.option(*names, expose_value=False, callback=_note, **attributes)(command)
    return command


def client_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the global options and passes the Session as the first argument.

    Bytes of the command line that are not UTF-8 are found where a message would hold them: a name of a file may have them.
    """

    @functools.wraps(command)
    def with_session(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - click's own
        session = click.get_current_context().ensure_object(Session)
        if (session.cert is None) != (session.key is None):
            raise click.UsageError("--cert and --key go together")
        try:
            return command(session, *arguments, **options)
        except UnicodeEncodeError as error:
            if error.encoding != UTF_8:
                raise
            raise click.UsageError(f"{error.object!a} is not UTF-8 text") from error
        except BrokenPipeError:
            raise  # whoever read what is printed has seen enough
        except OSError as error:
            raise click.ClickException(str(error)) from error

    return global_options(with_session)


def call(
    session: Session, use: Callable[[Client], Awaitable[_Result]], origins: Sequence[str] = ()
) -> _Result:
    """Runs calls on a client and returns their result; what the server or the input gets wrong ends the program.

    `origins` say where the objects of the request stand, for the message.
    """
    # What a command has to say of failed calls it says at the end, whoever listens to its log.
    logging.getLogger("stamina").setLevel(logging.ERROR)

    async def with_client() -> _Result:
        async with session.client() as client:
            return await use(client)

    try:
        return asyncio.run(with_client())
    except BrokenPipeError:
        raise  # whoever read what is printed has seen enough
    except (MusterError, ManifestError, DocumentError, OSError) as error:
        click.echo(explained(error, session.server, origins), err=True)
        raise click.exceptions.Exit(1) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
