"""Tables on terminals of any width, and where there is no terminal."""

import pytest
from rich.console import Console

from muster.cli.output import Table, show, table

SENTENCE = "0/9 nodes are available: 8 Insufficient cpu, 1 node(s) had untolerated taint(s)."
ROWS = [("giant", "Pending", "-", SENTENCE), ("small", "Pending", "-", SENTENCE), ("web", "Bound", "-", "")]


def waiting() -> Table:
    return table(("NAME", "STATE", "NODE", "MESSAGE"), ROWS)


def lines(width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(waiting())
    return captured.get().splitlines()


def test_a_wide_terminal_shows_a_row_a_line() -> None:
    assert lines(120) == [
        "NAME   STATE    MESSAGE",
        f"giant  Pending  {SENTENCE}",
        f"small  Pending  {SENTENCE}",
        "web    Bound",
    ]


def test_a_sentence_is_wrapped_inside_its_column_and_not_repeated() -> None:
    assert lines(80) == [
        "NAME   STATE    MESSAGE",
        "giant  Pending  0/9 nodes are available: 8 Insufficient cpu, 1 node(s) had",
        "                untolerated taint(s).",
        "small  Pending  as above",
        "web    Bound",
    ]


def test_a_sentence_without_room_beside_its_row_stands_below_it() -> None:
    assert lines(50) == [
        "NAME   STATE    MESSAGE",
        "giant  Pending",
        "    0/9 nodes are available: 8 Insufficient cpu, 1",
        "    node(s) had untolerated taint(s).",
        "small  Pending  as above",
        "web    Bound",
    ]


def test_nothing_is_cut_or_wrapped_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 200

    show(table(("NAME", "MESSAGE"), [("giant", long), ("small", long)]))

    printed = capsys.readouterr().out.splitlines()
    assert printed[1:] == [f"giant  {long.rstrip()}", f"small  {long.rstrip()}"]


def test_a_row_is_a_line_though_a_message_has_several(capsys: pytest.CaptureFixture[str]) -> None:
    show(table(("NAME", "MESSAGE"), [("a", "one\ntwo\r\n\nthree"), ("b", "four")]))

    assert capsys.readouterr().out.splitlines() == ["NAME  MESSAGE", "a     one two  three", "b     four"]
