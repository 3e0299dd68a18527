"""What a service is told when it starts: flags, then environment (MUSTER_*), then a YAML file, then defaults.

Decides what is a legal setting, one thing above all: no plain text beyond this machine unless somebody asked for it.
"""

from __future__ import annotations

import ipaddress
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from muster.plugins.profile import DEFAULT_PROFILE_NAME, make_profile
from muster.store.database import parsed_url

DEFAULT_LISTEN = "127.0.0.1:50051"
HIGHEST_PORT = 65_535
# More seconds, revisions and decisions than there will be, few enough to be counted in microseconds.
LONGEST_RETENTION = 10**12
# What PyYAML lets through of a text that is no UTF-8, is not what its tag says, or is nested without end.
_OF_ODD_YAML = (ValueError, LookupError, AttributeError, RecursionError)


class InvalidSettingsError(Exception):
    """One line that names each wrong setting and what is wrong with it."""


class Settings(BaseSettings):
    """All settings of one service; the field's name is the flag (`--tls-cert`) and the variable (`MUSTER_TLS_CERT`)."""

    model_config = SettingsConfigDict(env_prefix="MUSTER_", frozen=True, extra="forbid")

    listen: str = Field(DEFAULT_LISTEN, description="HOST:PORT for gRPC, port 0 picks one; empty: no TCP")
    uds: Path | None = Field(None, description="path of a unix socket for gRPC")
    uds_mode: str = Field("660", pattern=r"^[0-7]{3,4}$", description="permissions of the socket, in octal")
    store: str = Field("sqlite:///./muster.db", description="SQLAlchemy URL: SQLite or PostgreSQL")
    metrics: str = Field("", description="HOST:PORT for /metrics, /healthz and /console; empty: none")
    console: bool = Field(default=True, description="serve the web console on the metrics address")
    eviction: Literal["server", "client"] = Field("server", description="who removes evicted pods")
    profiles: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names of the profiles to serve, the first is the default; empty: all"
    )
    profile_definitions: tuple[dict[str, Any], ...] = Field(
        (), description="profiles with scores and filters of their own; only in the file"
    )
    workers: int = Field(
        max(1, (os.cpu_count() or 1) - 1), ge=0, le=256, description="worker processes; 0: decide in this one"
    )
    receiver: bool = Field(
        default=False, description="speak gRPC in a process of its own, which pays where many call at once"
    )
    log_retention_seconds: int = Field(
        3_600,
        ge=60,
        le=LONGEST_RETENTION,
        description="how long a watch can go back, if the count does not cut it short",
    )
    log_retention_revisions: int = Field(
        100_000, ge=1_000, le=LONGEST_RETENTION, description="how many revisions a watch can go back"
    )
    decision_retention_seconds: int = Field(
        7 * 86_400, ge=60, le=LONGEST_RETENTION, description="how long decisions are kept"
    )
    decision_retention_count: int = Field(
        1_000_000,
        ge=1_000,
        le=LONGEST_RETENTION,
        description="how many decisions of a cluster are kept, the newest ones",
    )
    finished_retention_seconds: int = Field(
        0,
        ge=0,
        le=LONGEST_RETENTION,
        description="how long finished pods, and trees of which all pods have finished, are kept; 0: for ever",
    )
    tls_cert: Path | None = Field(None, description="PEM file of the server's certificate chain")
    tls_key: Path | None = Field(None, description="PEM file of its key")
    client_ca: Path | None = Field(None, description="PEM file: clients must show a certificate signed by it")
    token_file: Path | None = Field(
        None, description="`name, token, role` a line; role: reader, writer, admin"
    )
    insecure: bool = Field(default=False, description="allow plain text beyond this machine")
    reflection: bool = Field(default=True, description="answer gRPC server reflection")
    drain_seconds: float = Field(20.0, ge=0, le=600, description="how long calls in work may take at the end")
    replica: str = Field(platform.node() or "muster", min_length=1, description="name of this process")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="of Muster's own logs"
    )
    log_format: Literal["text", "json"] = Field("text", description="shape of log lines")

    @field_validator("profiles", mode="before")
    @classmethod
    def _split_names(cls, names: object) -> object:
        """Names in one text are separated by commas."""
        return (
            tuple(each.strip() for each in names.split(",") if each.strip())
            if isinstance(names, str)
            else names
        )

    @field_validator("profile_definitions")
    @classmethod
    def _check_profiles(cls, definitions: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        for index, definition in enumerate(definitions):
            make_profile(definition, f"profile_definitions[{index}]")
        return definitions

    @field_validator("store")
    @classmethod
    def _check_store(cls, store: str) -> str:
        parsed_url(store)
        return store

    @field_validator("listen", "metrics")
    @classmethod
    def _check_address(cls, address: str) -> str:
        host, colon, port = address.rpartition(":")
        if address and not (colon and host and port.isdecimal() and int(port) <= HIGHEST_PORT):
            raise ValueError(f"{address!r} is not HOST:PORT")
        return address

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """A name beside definitions is one of them, or a typing error; without any it gets the default settings."""
        defined = [definition["name"] for definition in self.profile_definitions]
        unknown = [name for name in self.profiles if name not in (*defined, DEFAULT_PROFILE_NAME)]
        if defined and unknown:
            known = ", ".join(map(repr, dict.fromkeys((*defined, DEFAULT_PROFILE_NAME))))
            raise ValueError(f"profiles: {unknown[0]!r} is not defined; there are {known}")
        return self

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if not self.listen and self.uds is None:
            raise ValueError("listen and uds are both empty: there would be no way in")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together")
        if self.client_ca is not None and self.tls_cert is None:
            raise ValueError("client_ca needs tls_cert and tls_key")
        if self.listen and self.tls_cert is None and not self.insecure and not is_loopback(self.listen):
            raise ValueError(
                f"{self.listen} is beyond loopback and without TLS: give tls_cert and tls_key, or insecure"
            )
        return self


def load_settings(flags: Mapping[str, Any], config: Path | None = None) -> Settings:
    """Settings from all sources; flags that are None were not given. Raises InvalidSettingsError."""
    values = _read(config) if config is not None else {}
    try:
        return _sourced(values)(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        faults = [_fault(each["loc"], each["msg"]) for each in error.errors()]
        raise InvalidSettingsError("; ".join(faults)) from error
    except SettingsError as error:
        raise InvalidSettingsError(" ".join(str(error).split())) from error


def _read(config: Path) -> dict[str, Any]:
    """The settings in a YAML file. Raises InvalidSettingsError."""
    try:
        values = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, *_OF_ODD_YAML) as error:
        raise InvalidSettingsError(" ".join(f"config: {config}: {error}".split())) from error
    if not isinstance(values or {}, dict) or not all(isinstance(name, str) for name in values or ()):
        raise InvalidSettingsError(f"config: {config}: is no mapping of settings to values")
    return values or {}


def _sourced(values: dict[str, Any]) -> type[Settings]:
    """Settings that take the values of a file too; pydantic-settings asks the class for its sources."""

    def sources(
        _cls: type[Any],
        /,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, InitSettingsSource(settings_cls, values))

    return type("SourcedSettings", (Settings,), {"settings_customise_sources": classmethod(sources)})


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT can be reached from this machine alone; a name other than localhost counts as beyond it."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _fault(location: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(part) for part in location)
    text = message.removeprefix("Value error, ")
    return f"{where}: {text}" if where else text
