"""Rules of a single field that many kinds share: a name, one word of a list, a quantity, a number in a range.

Each yields faults with paths as given and texts that do not name the object: `objects.validate` puts it in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.model.names import label_key_fault
from muster.model.resources import to_base_units
from muster.validation.violations import INVALID, NOT_SUPPORTED, REQUIRED, TOO_MANY, Violation

MOST_RESOURCES = 256
"""Names of resources in one object: each makes a row over all nodes of the cluster."""

Faults = Iterator[Violation]
Syntax = Callable[[str], str | None]


def name_faults(path: str, text: str, syntax: Syntax) -> Faults:
    """A name that must be there and have that syntax."""
    if not text:
        yield Violation(path, REQUIRED, "must be set")
    else:
        yield from optional_name_faults(path, text, syntax)


def optional_name_faults(path: str, text: str, syntax: Syntax) -> Faults:
    """A name that may be left out, and has that syntax if it is there."""
    fault = syntax(text) if text else None
    if fault is not None:
        yield Violation(path, INVALID, f"must {fault}, not {_shown(text)}")


def choice_faults(path: str, text: str, choices: Iterable[str]) -> Faults:
    """A word that must be there and be one of these."""
    if not text:
        yield Violation(path, REQUIRED, f"must be one of {_listed(choices)}")
    else:
        yield from optional_choice_faults(path, text, choices)


def optional_choice_faults(path: str, text: str | None, choices: Iterable[str]) -> Faults:
    """A word that may be left out (None, or empty where empty is the default), else one of these."""
    if text and text not in choices:
        yield Violation(path, NOT_SUPPORTED, f"must be one of {_listed(choices)}, not {_shown(text)}")


def range_faults(path: str, number: int | None, least: int, most: int) -> Faults:
    """A number that may be left out (None), else lies in the range, ends included."""
    if number is not None and not least <= number <= most:
        yield Violation(path, INVALID, f"must be between {least} and {most}, not {number}")


def least_faults(path: str, number: int | None, least: int) -> Faults:
    """A number that may be left out (None), else is at least that."""
    if number is not None and number < least:
        yield Violation(path, INVALID, f"must be at least {least}, not {number}")


def count_faults(path: str, number: int, most: int, what: str) -> Faults:
    """A list, or several together, that may have so many items and no more."""
    if number > most:
        yield Violation(path, TOO_MANY, f"must have at most {most} {what}, not {number}")


def resource_count_faults(path: str, *quantities: Mapping[str, str]) -> Faults:
    """The resources that an object names, here and there."""
    yield from count_faults(path, len(set().union(*quantities)), MOST_RESOURCES, "resources")


def quantity_faults(path: str, quantities: Mapping[str, str]) -> Faults:
    """Resource names to quantities: names with the syntax of label keys, amounts that base units can hold."""
    for resource, text in quantities.items():
        fault = label_key_fault(resource)
        if fault is not None:
            yield Violation(f"{path}[{resource}]", INVALID, f"a resource's name must {fault}")
        try:
            to_base_units(resource, text)
        except ValueError as error:
            yield Violation(f"{path}[{resource}]", INVALID, f"{error}, not {_shown(text)}")


def has_amounts(quantities: Mapping[str, str]) -> bool:
    """Whether every amount can be computed with."""
    return not any(quantity_faults("", quantities))


def _listed(choices: Iterable[str]) -> str:
    return ", ".join(sorted(choices))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")  # noqa: PLR2004
