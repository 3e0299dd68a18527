"""How answers are printed: tables and trees for people, the API's JSON and YAML for programs.

Colours are for terminals only, and lines are wrapped only there; elsewhere a row is a line, however long.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import click
import yaml
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from muster.cli.odd_times import without_odd_times
from muster.cli.session import JSON
from muster.client.manifest_writer import write_manifests
from muster.v1.object_pb2 import Object

WIDTH_WITHOUT_TERMINAL = 5_000
GAP = "  "
INDENT = "    "
NARROWEST_SENTENCE = 40
AS_ABOVE = "as above"
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


def show_whole(markup: str) -> None:
    """Prints lines of markup that are to be copied, which are not wrapped however narrow the terminal is."""
    if sys.stdout.isatty():
        Console(highlight=False, emoji=False).print(markup, soft_wrap=True)
    else:
        show(markup)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns without lines between them: titles, then a row each; columns without content are left out.

    The last column may hold sentences. Those that are too long for the width at hand are wrapped, inside their column
    if that is wide enough, else below their row; one that the row above has said is not repeated then.
    """

    rows: Sequence[Sequence[Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The lines, for the width at hand."""
        widths = [max(cell.cell_len for cell in column) for column in zip(*self.rows, strict=True)]
        left = options.max_width - sum(width + len(GAP) for width in widths[:-1])
        *titles, last_title = self.rows[0]
        head = _line(titles, widths) + (last_title if last_title.cell_len <= left else Text())
        head.stylize("bold")
        yield _stripped(head)
        above = ""
        for *cells, last in self.rows[1:]:
            is_repeated = last.plain == above and last.cell_len > left
            above = last.plain
            sentence = Text(AS_ABOVE, "dim") if is_repeated else last
            yield from _wrapped(console, _line(cells, widths), sentence, left)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of cells of markup."""
    listed = list(rows)
    filled = [column for column in range(len(titles)) if any(row[column] not in EMPTY for row in listed)]
    return Table([[_cell(row[column]) for column in filled] for row in (titles, *listed)])


def _cell(markup: str) -> Text:
    """A row is a line, whatever a message holds."""
    return Text.from_markup(" ".join(markup.splitlines()))


def _line(cells: Iterable[Text], widths: Iterable[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=False):
        line.append_text(cell)
        line.append(" " * (width - cell.cell_len + len(GAP)))
    return line


def _wrapped(console: Console, start: Text, sentence: Text, left: int) -> Iterator[Text]:
    """A row whose last cell has so much width left: on the line, wrapped beside what is before it, or below."""
    if sentence.cell_len <= left:
        yield _stripped(start + sentence)
        return
    is_beside = left >= NARROWEST_SENTENCE
    indent = start.cell_len if is_beside else len(INDENT)
    first, *others = sentence.wrap(console, left if is_beside else console.width - indent)
    if is_beside:
        yield _stripped(start + first)
    else:
        yield _stripped(start)
        others.insert(0, first)
    for line in others:
        yield _stripped(Text(" " * indent) + line)


def _stripped(line: Text) -> Text:
    line.rstrip()
    return line


def as_json(message: Message) -> dict[str, object]:
    """A message as the API's JSON, fields at their zero value included, times that cannot be written left out."""
    try:
        return _converted(message)
    except (SerializeToJsonError, ValueError):
        return _converted(without_odd_times(message))


def _converted(message: Message) -> dict[str, object]:
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


def print_manifests(objects: Sequence[Object]) -> None:
    """Prints objects as manifests, times that cannot be written left out."""
    try:
        text = write_manifests(objects)
    except ValueError:
        text = write_manifests(map(without_odd_times, objects))
    click.echo(text, nl=False)


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
