"""Files lie, are named and are sized as CONTRIBUTING.md says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.repository import SOURCE_ROOTS, shown, syntax, written, written_python

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
CODE_SUFFIXES = (".go", ".proto", ".py", ".sh", ".ts")
SAYS_NOTHING = re.compile(r"(^|_)(common|helpers?|misc|utils?|utilities)(_|$)")
VAGUE_CLASS = re.compile(r"(Manager|Helper|Handler|Processor|Info|Data)$")


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.name, node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("root", SOURCE_ROOTS, ids=lambda root: root.name)
def test_the_namespace_folder_has_no_init_file(root: Path) -> None:
    assert (root / "muster").is_dir()
    assert not (root / "muster" / "__init__.py").exists()


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {
        shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in written(*CODE_SUFFIXES)
    }

    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_longer_than_two_screens() -> None:
    lengths = {
        f"{shown(path)}: {name}": length for path in written_python() for name, length in _functions(path)
    }

    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_every_file_name_says_what_is_in_it() -> None:
    names = {shown(path): [path.stem, *(folder.name for folder in path.parents)] for path in written_python()}

    assert [name for name, parts in names.items() if any(map(SAYS_NOTHING.search, parts))] == []


def test_every_class_name_says_what_it_is() -> None:
    classes = [
        f"{shown(path)}: {node.name}"
        for path in written_python()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name)
    ]

    assert classes == []


def test_every_module_with_code_says_what_it_decides() -> None:
    modules = [path for path in written_python() if set(SOURCE_ROOTS) & set(path.parents)]
    silent = [shown(path) for path in modules if syntax(path).body and not ast.get_docstring(syntax(path))]

    assert silent == []
