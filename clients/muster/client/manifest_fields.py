"""From a document's mapping to a message, field by field as the message's descriptor says.

Decides what fits a field and what does not; which message a document becomes is `manifest_kinds`'. A value that does
not fit is a fault with its JSON path; a field that the message does not have is dropped and counted. Values of a
right type are never judged: that is the server's part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Path = tuple[str | int, ...]

# Texts that manifests may write as numbers: quantities, and int-or-strings (whole numbers only).
QUANTITIES = frozenset(
    {
        "muster.v1.NodeStatus.allocatable",
        "muster.v1.NodeStatus.capacity",
        "muster.v1.PodSpec.overhead",
        "muster.v1.ResourceRequirements.limits",
        "muster.v1.ResourceRequirements.requests",
    }
)
INT_OR_STRINGS = frozenset(
    {
        "muster.v1.PodDisruptionBudgetSpec.max_unavailable",
        "muster.v1.PodDisruptionBudgetSpec.min_available",
    }
)
WRITTEN_AS_NUMBERS = QUANTITIES | INT_OR_STRINGS
TIMESTAMP = Timestamp.DESCRIPTOR.full_name
LONGEST_PLAIN_EXPONENT = 40
INT_BITS = {
    FieldDescriptor.CPPTYPE_INT32: 32,
    FieldDescriptor.CPPTYPE_INT64: 64,
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that its field cannot hold; `path` is relative to the document."""

    path: Path
    description: str


@dataclass(slots=True)
class Findings:
    """What a conversion met: misfits, and paths of fields that the message does not have."""

    misfits: list[Misfit] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Field:
    """What the conversion needs of a field's descriptor, read once."""

    name: str
    descriptor: FieldDescriptor
    is_map: bool
    is_list: bool
    is_message: bool
    value: Callable[[object], object]


class UnfitError(ValueError):
    """The reason why a value does not fit; caught where the path is known."""


def shown(path: Path) -> str:
    """A path as JSON paths are written: `spec.containers[0].resources.requests[cpu]` has map keys in brackets."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else step if step.startswith("[") else f".{step}"
    return text.removeprefix(".")


def fill(message: Message, mapping: Mapping[object, object], path: Path, findings: Findings) -> None:
    """Sets the fields of `message` that `mapping` names by their JSON names; null counts as left out."""
    fields = _fields(message.DESCRIPTOR)
    for key, value in mapping.items():
        if value is None:
            continue
        known = fields.get(key) if isinstance(key, str) else None
        if known is None:
            findings.unknown.append((*path, str(key)))
            continue
        _set(message, known, value, (*path, str(key)), findings)


def _set(message: Any, known: _Field, value: object, path: Path, findings: Findings) -> None:  # noqa: ANN401 - a message's fields have no static type
    target = getattr(message, known.name)
    if known.is_map:
        _fill_map(target, known, value, path, findings)
    elif known.is_list:
        _fill_list(target, known, value, path, findings)
    elif known.is_message:
        target.SetInParent()
        _fill_message(target, value, path, findings)
    else:
        with _misfits(path, findings):
            setattr(message, known.name, known.value(value))


def _fill_message(target: Message, value: object, path: Path, findings: Findings) -> None:
    if target.DESCRIPTOR.full_name == TIMESTAMP and isinstance(target, Timestamp):
        with _misfits(path, findings):
            target.FromJsonString(_time(value))
    elif isinstance(value, Mapping):
        fill(target, value, path, findings)
    else:
        findings.misfits.append(Misfit(path, f"must be a mapping, not {_described(value)}"))


def _fill_list(target: Any, known: _Field, value: object, path: Path, findings: Findings) -> None:  # noqa: ANN401
    if not isinstance(value, list):
        findings.misfits.append(Misfit(path, f"must be a list, not {_described(value)}"))
        return
    for index, element in enumerate(value):
        if known.is_message:
            _fill_message(target.add(), element, (*path, index), findings)
        else:
            with _misfits((*path, index), findings):
                target.append(known.value(element))


def _fill_map(target: Any, known: _Field, value: object, path: Path, findings: Findings) -> None:  # noqa: ANN401
    if not isinstance(value, Mapping):
        findings.misfits.append(Misfit(path, f"must be a mapping, not {_described(value)}"))
        return
    for key, element in value.items():
        step = f"[{key}]"
        if not isinstance(key, str):
            findings.misfits.append(
                Misfit((*path, step), f"the key must be text, not {_described(key)}: quote it")
            )
            continue
        if element is None and known.descriptor.full_name not in WRITTEN_AS_NUMBERS:
            # Kubernetes reads a label or annotation without a value as the empty text.
            element = ""  # noqa: PLW2901 - the same element, as it is read
        with _misfits((*path, step), findings):
            target[_utf_8(key)] = known.value(element)


def is_repeated(descriptor: FieldDescriptor) -> bool:
    """Whether the field is a list or a map, by the one sign that all supported versions of protobuf have."""
    return isinstance(descriptor.default_value, list)


@contextmanager
def _misfits(path: Path, findings: Findings) -> Iterator[None]:
    """Turns the UnfitError of one value into a misfit, so that the rest is still looked at."""
    try:
        yield
    except UnfitError as error:
        findings.misfits.append(Misfit(path, str(error)))


@cache
def _fields(descriptor: Descriptor) -> Mapping[str, _Field]:
    return {each.json_name: _field(each) for each in descriptor.fields}


def _field(descriptor: FieldDescriptor) -> _Field:
    message = descriptor.message_type
    is_map = message is not None and message.GetOptions().map_entry
    scalar = message.fields_by_name["value"] if message is not None and is_map else descriptor
    return _Field(
        name=descriptor.name,
        descriptor=descriptor,
        is_map=is_map,
        is_list=is_repeated(descriptor) and not is_map,
        is_message=message is not None and not is_map,
        value=_scalar(descriptor.full_name, scalar),
    )


def _scalar(full_name: str, descriptor: FieldDescriptor) -> Callable[[object], object]:
    """The function from a document's value to a scalar of the field; it raises UnfitError."""
    if full_name in QUANTITIES:
        return _quantity
    if full_name in INT_OR_STRINGS:
        return _int_or_string
    if descriptor.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _text
    if descriptor.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool
    bits = INT_BITS.get(descriptor.cpp_type)
    return (lambda value: _int(value, bits)) if bits else _not_in_manifests


def _not_in_manifests(value: object) -> object:
    raise UnfitError(f"cannot be given in a manifest, {_described(value)} neither")


def _quantity(value: object) -> str:
    if isinstance(value, float):
        value = Decimal(
            repr(value)
        )  # of a program that builds its manifests; documents are read without floats
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}" if abs(value.adjusted()) < LONGEST_PLAIN_EXPONENT else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return _utf_8(value)
    raise UnfitError(f"must be a quantity, not {_described(value)}")


def _int_or_string(value: object) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return _utf_8(str(value))
    raise UnfitError(f"must be a whole number or a percentage, not {_described(value)}")


def _text(value: object) -> str:
    if isinstance(value, str):
        return _utf_8(value)
    advice = ": quote it" if isinstance(value, int | Decimal) else ""
    raise UnfitError(f"must be text, not {_described(value)}{advice}")


def _utf_8(text: str) -> str:
    """The text, which an escape in JSON can give half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnfitError("must be text of whole characters, without a lone surrogate") from None
    return text


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UnfitError(f"must be true or false, not {_described(value)}")


def _int(value: object, bits: int) -> int:
    """Whole numbers; those of 64 bits as text too, which is how JSON carries them."""
    if isinstance(value, str) and bits == INT_BITS[FieldDescriptor.CPPTYPE_INT64]:
        try:
            value = int(value)
        except ValueError:
            raise UnfitError(f"must be a whole number, not {_described(value)}") from None
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnfitError(f"must be a whole number, not {_described(value)}")
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise UnfitError(f"must fit in {bits} bits, {value} does not")
    return value


def _time(value: object) -> str:
    text = _text(value)
    try:
        Timestamp().FromJsonString(text)
    except ValueError:
        raise UnfitError(f"must be a time such as 2026-01-31T12:00:00Z, not {text!r}") from None
    return text


def _described(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= LONGEST_PLAIN_EXPONENT else "a long text"
    if isinstance(value, int | float | Decimal):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a mapping"
