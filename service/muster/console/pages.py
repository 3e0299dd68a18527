"""The files of the console, which ship in the package and are read once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

INDEX = "index.html"
CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A file as it is sent; the tag changes with its content."""

    body: bytes
    content_type: str
    tag: str


def read_pages() -> Mapping[str, Page]:
    """Files by their path below the console; the empty path is the index."""
    pages = dict(_pages(files("muster.console") / "static", ""))
    return {**pages, "": pages[INDEX]}


def _pages(folder: Traversable, path: str) -> Iterator[tuple[str, Page]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _pages(entry, f"{path}{entry.name}/")
            continue
        content_type = CONTENT_TYPES.get(entry.name.rpartition(".")[2])
        if content_type is not None:
            body = entry.read_bytes()
            yield path + entry.name, Page(body, content_type, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
