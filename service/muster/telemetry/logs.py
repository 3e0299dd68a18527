"""Logs: one line an event on stderr, as `key=value` text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, then what was given as `extra`, then the exception; never more than one line."""

    def __init__(self, shape: LogFormat) -> None:
        super().__init__()
        self._shape = shape

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if self._shape == "json":
            return json.dumps(fields, default=str, ensure_ascii=False)
        return " ".join(f"{key}={_quoted(value)}" for key, value in fields.items())


def set_up_logs(level: str, shape: LogFormat) -> None:
    """Send all logs of the process to stderr in one shape; `level` is Muster's, libraries begin at WARNING."""
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(LineFormatter(shape))
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(logging.WARNING)
    logging.getLogger("muster").setLevel(level.upper())


def _quoted(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
