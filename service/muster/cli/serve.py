"""The command that is the service; nothing of what clients need is loaded for it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _setting(name: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{name}", metavar=metavar, help=text)


@click.command()
@_setting("listen", "HOST:PORT", "Address for gRPC; port 0 picks one; '' is no TCP. Default 127.0.0.1:50051.")
@_setting("uds", "PATH", "Unix socket for gRPC.")
@_setting("uds-mode", "OCTAL", "Permissions of the socket. Default 660.")
@_setting("store", "URL", "SQLite or PostgreSQL. Default sqlite:///./muster.db.")
@_setting("metrics", "HOST:PORT", "Address for /metrics, /healthz and /console. Default: none.")
@click.option("--console/--no-console", default=None, help="Serve the web console there. Default on.")
@_setting("eviction", "server|client", "Who removes evicted pods. Default server.")
@_setting("profiles", "NAMES", "Profiles to serve, by comma; the first is the default one.")
@_setting("workers", "N", "Worker processes; 0 decides in the server's own. Default: cores less one.")
@click.option(
    "--receiver/--no-receiver",
    default=None,
    help="Speak gRPC in a process of its own: for many callers at once. Default off.",
)
@_setting("tls-cert", "FILE", "PEM file of the server's certificate chain.")
@_setting("tls-key", "FILE", "PEM file of its key.")
@_setting("client-ca", "FILE", "PEM file: clients must show a certificate signed by it.")
@_setting("token-file", "FILE", "A line a caller: name, token, role (reader, writer, admin).")
@click.option("--insecure", is_flag=True, default=None, help="Allow plain text beyond this machine.")
@click.option("--reflection/--no-reflection", default=None, help="Answer gRPC server reflection. Default on.")
@_setting("log-retention-seconds", "N", "How long a watch can go back. Default 3600.")
@_setting("log-retention-revisions", "N", "How many revisions a watch can go back. Default 100000.")
@_setting("decision-retention-seconds", "N", "How long decisions are kept. Default 604800.")
@_setting("decision-retention-count", "N", "How many decisions of a cluster are kept. Default 1000000.")
@_setting(
    "finished-retention-seconds", "N", "How long finished pods and groups are kept. Default 0: for ever."
)
@_setting("drain-seconds", "N", "How long calls in work may take at the end. Default 20.")
@_setting("replica", "NAME", "Name of this process. Default: the host's name.")
@_setting("log-level", "LEVEL", "debug, info, warning or error. Default info.")
@_setting("log-format", "text|json", "Shape of log lines. Default text.")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="YAML file of the same settings."
)
def serve(config: Path | None, **flags: Any) -> None:  # noqa: ANN401 - the settings judge them
    """Run the service until SIGTERM or SIGINT.

    Prints `serving on ADDRESS` once calls are answered. Each option may also be an environment variable, such as
    MUSTER_STORE, or a line of the configuration file; options count first, then variables, then the file.
    """
    # What a start makes stays, and to look through it time and again takes a quarter of the start. Once the service
    # answers it turns the collector on.
    gc.disable()
    try:
        raise click.exceptions.Exit(_exit_status(flags, config))
    finally:
        gc.enable()


def _exit_status(flags: dict[str, Any], config: Path | None) -> int:
    from muster.app.lifecycle import serve as serve_until_stopped
    from muster.app.settings import InvalidSettingsError, load_settings

    try:
        settings = load_settings(flags, config)
    except InvalidSettingsError as error:
        raise click.UsageError(str(error)) from error
    return serve_until_stopped(settings)
