"""From text to documents: YAML and JSON files, several documents each, lists unpacked.

Decides what a scalar means and nothing about Kubernetes beyond `kind: List`. Scalars follow YAML 1.2's core schema:
times stay text, and so do `yes`, `on` and `12:30`, and no tags but the schema's are known. Numbers with a point or an
exponent become `Decimal`, so that a quantity loses no digit. What the documents say is judged by `manifests`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from muster.client.manifest_aliases import Measure

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"
LIST_SUFFIX = "List"
# Python refuses to read much longer ones, and nobody writes them.
LONGEST_NUMBER = 1_000

_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?[0-9]+$")
_FLOAT = re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
CORE_SCHEMA = (
    ("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", _BOOL, list("tTfF")),
    ("tag:yaml.org,2002:int", _INT, list("-+0123456789")),
    ("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789")),
)


class DocumentError(ValueError):
    """Text that is neither YAML nor JSON, says a key twice, or more than can be held; names the source and the line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name that messages give it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One object as written, not judged yet, and where it stands ("nodes.yaml, document 2")."""

    content: object
    origin: str


_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]
    """PyYAML's safe loader with the core schema in place of YAML 1.1's."""

    yaml_implicit_resolvers: dict[str, object] = {}  # noqa: RUF012 - PyYAML reads it from the class
    yaml_constructors = {  # noqa: RUF012
        tag: _BASE.yaml_constructors[tag]
        for tag in (None, *(f"tag:yaml.org,2002:{name}" for name in ("null", "str", "seq", "map")))
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._measure = Measure()

    def construct_document(self, node: yaml.Node) -> object:
        self._measure.add(node)
        document: object = super().construct_document(node)
        return document

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Keys of merges are texts like any other in the core schema."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else "")
        mapping: dict[object, object] = super().construct_mapping(node, deep=True)
        return mapping


def _constructor(read: Callable[[str], object]) -> Callable[[Any, yaml.ScalarNode], object]:
    """A constructor of a scalar whose text may not be what an explicit tag says."""

    def construct(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
        try:
            return read(loader.construct_scalar(node))
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error

    return construct


def _bool(text: str) -> bool:
    if not _BOOL.fullmatch(text):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _decimal(text: str) -> Decimal:
    _check_length(text)
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is no number that can be held") from None


def _integer(text: str) -> int:
    _check_length(text)
    return int(text)


def _check_length(number: str) -> None:
    if len(number) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(number)} characters")


for _tag, _pattern, _first in CORE_SCHEMA:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
for _name, _read in (("bool", _bool), ("float", _decimal), ("int", _integer)):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_name}", _constructor(_read))


def sources(paths: Iterable[str]) -> Iterator[Source]:
    """The texts of files, of all manifests below folders (by path), and of standard input for "-".

    Raises OSError if a path cannot be read and DocumentError if a file is not UTF-8.
    """
    for given in paths:
        if given == STANDARD_INPUT:
            yield _source("standard input", sys.stdin.buffer.read())
            continue
        for path in _files(Path(given)):
            yield _source(str(path), path.read_bytes())


def _source(name: str, content: bytes) -> Source:
    try:
        return Source(name, content.decode())
    except UnicodeDecodeError as error:
        raise DocumentError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def documents(source: Source) -> Iterator[Document]:
    """The objects of one text in order; empty documents are left out, lists unpacked. Raises DocumentError."""
    try:
        contents = [content for content in _contents(source) if content is not None]
        for number, content in enumerate(contents, start=1):
            origin = source.name if len(contents) == 1 else f"{source.name}, document {number}"
            yield from _unpacked(content, origin)
    except RecursionError as error:
        raise DocumentError(f"{source.name} is nested too deeply") from error


def _contents(source: Source) -> list[object]:
    if source.text.lstrip()[:1] in {"{", "["}:
        try:
            return [_json(source.text)]
        except json.JSONDecodeError as error:
            if Path(source.name).suffix == ".json":
                raise DocumentError(f"{source.name} is not JSON: {error}") from error
        except ValueError as error:
            raise DocumentError(f"{source.name}: {error}") from error
    try:
        return list(yaml.load_all(source.text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise DocumentError(f"{source.name} is not YAML: {error}") from error


def _json(text: str) -> object:
    return json.loads(text, parse_float=_decimal, parse_int=_integer, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {repeated!r} is there twice")
    return mapping


def _unpacked(content: object, origin: str) -> Iterator[Document]:
    """The items of a `List`, `PodList`, ... (kinds of a typed list may be left out), else the document itself."""
    if not isinstance(content, dict) or not _is_list(content):
        yield Document(content, origin)
        return
    kind = str(content["kind"]).removesuffix(LIST_SUFFIX)
    for number, item in enumerate(content["items"], start=1):
        if isinstance(item, dict) and kind:
            item = {"apiVersion": content.get("apiVersion"), "kind": kind} | item  # noqa: PLW2901 - the same item, complete
        yield from _unpacked(item, f"{origin}, item {number}")


def _is_list(content: dict[object, object]) -> bool:
    return str(content.get("kind", "")).endswith(LIST_SUFFIX) and isinstance(content.get("items"), list)
