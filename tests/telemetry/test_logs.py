"""An event is one line, for people or for machines."""

import json
import logging
import sys

import pytest

from muster.telemetry.logs import LineFormatter, LogFormat


def record(message: str, *, failed: bool = False, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "muster.x", "levelname": "INFO", "msg": message, **extra})
    if failed:
        try:
            int("two\nlines")
        except ValueError:
            made.exc_info = sys.exc_info()
    return made


@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_record_is_one_line_even_with_a_traceback(shape: LogFormat) -> None:
    line = LineFormatter(shape).format(record("a\nb", failed=True, unit="PodGroup x"))

    assert "\n" not in line
    assert "ValueError" in line


def test_json_has_a_field_for_each_fact() -> None:
    fields = json.loads(LineFormatter("json").format(record("hello", cluster="c", pods=3)))

    assert fields.pop("time").endswith("+00:00")
    assert fields == {"level": "info", "logger": "muster.x", "message": "hello", "cluster": "c", "pods": 3}


def test_text_quotes_what_would_be_read_wrongly() -> None:
    line = LineFormatter("text").format(record("hello there", plain="x-1", odd='a="b"', empty=""))

    assert line.endswith(r'message="hello there" plain=x-1 odd="a=\"b\"" empty=""')
