"""Whether a refused apply names the field that a case says it must.

An ancestor or a descendant of the field will do, and so will any form of an index into a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.client.errors import MusterError
from muster.client.manifests import ManifestError

_STEP = re.compile(r"\[(?P<index>[^\]]*)\]|(?P<name>[^.\[\]]+)")
_ENVELOPE = re.compile(r"^objects\[\d+\]\.?(?:[a-z][A-Za-z]*\.?)?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The fields that an answer names, as paths in the manifest, and its text."""

    fields: tuple[str, ...]
    text: str


def refusal_of(error: MusterError | ManifestError) -> Refusal:
    """What an error says about the request; errors without violations name no field."""
    if isinstance(error, ManifestError):
        return Refusal(tuple(_in_manifest(fault.field) for fault in error.faults), str(error))
    violations = error.details.violations
    text = "; ".join([str(error), *(f"{each.field}: {each.description}" for each in violations)])
    return Refusal(tuple(_in_manifest(each.field) for each in violations), text)


def names(refusal: Refusal, field: str) -> bool:
    """Whether one of the refused fields is `field`, above it or below it; a bare word may be the last key."""
    return any(_related(_steps(refused), _steps(field)) for refused in refusal.fields)


def _in_manifest(path: str) -> str:
    """The path without `objects[3].podGroup.`."""
    return _ENVELOPE.sub("", path)


def _steps(path: str) -> list[tuple[str, str]]:
    """Names and indices: `a.b[0]` is name a, name b, index 0."""
    return [
        ("name", match["name"]) if match["name"] is not None else ("index", match["index"])
        for match in _STEP.finditer(path)
    ]


def _related(refused: list[tuple[str, str]], field: list[tuple[str, str]]) -> bool:
    if len(field) == 1 and field[0] in [step for step in refused if step[0] == "name"][-1:]:
        return True
    return all(_same(*pair) for pair in zip(refused, field, strict=False))


def _same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Equal steps; a place in a list is also equal to the name of what stands there."""
    if one[0] != other[0]:
        return False
    by_place = one[1].isdigit() and other[1].isdigit()
    return one[1] == other[1] if one[0] == "name" or by_place else True
