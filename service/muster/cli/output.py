"""How answers are printed: tables and trees for people, the API's JSON and YAML for programs.

Colours are for terminals only, and tables are cut to the width of one only there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

import click
import yaml
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from muster.cli.session import JSON

WIDTH_WITHOUT_TERMINAL = 250
GAP = "  "
NONE = "-"
EMPTY = frozenset({"", NONE})


def show(renderable: RenderableType) -> None:
    """Prints a table, a tree or a line of markup."""
    if sys.stdout.isatty():
        Console(highlight=False, emoji=False).print(renderable)
        return
    console = Console(width=WIDTH_WITHOUT_TERMINAL, color_system=None, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(renderable)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], long: Literal["ellipsis", "fold"] = "ellipsis"
) -> Group:
    """Columns without lines between them: titles, then a row each; columns without content are left out.

    `long` says what becomes of lines that are wider than the terminal.
    """
    listed = list(rows)
    filled = [column for column in range(len(titles)) if any(row[column] not in EMPTY for row in listed)]
    cells = [[Text.from_markup(row[column]) for column in filled] for row in (titles, *listed)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    lines = [Text(no_wrap=long == "ellipsis", overflow=long) for _ in cells]
    for line, row in zip(lines, cells, strict=True):
        for cell, width in zip(row, widths, strict=True):
            cell.pad_right(width - cell.cell_len + len(GAP))
            line.append_text(cell)
        line.rstrip()
    lines[0].stylize("bold")
    return Group(*lines)


def as_json(message: Message) -> dict[str, object]:
    """A message as the API's JSON, fields at their zero value included."""
    converted: dict[str, object] = MessageToDict(message, always_print_fields_with_no_presence=True)
    return converted


def print_message(message: Message, output: str) -> None:
    """Prints a message as JSON or YAML."""
    print_value(as_json(message), output)


def print_value(value: object, output: str) -> None:
    """Prints a value made of JSON's types as JSON or YAML."""
    if output == JSON:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)


def print_line(message: Message) -> None:
    """Prints a message as one line of JSON, for streams."""
    click.echo(json.dumps(as_json(message), ensure_ascii=False))


def progress() -> Progress:
    """A progress bar on standard error, shown on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[remark]}"),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
    )
