"""Copies of frozen records with some fields replaced, for where a call makes thousands of them.

`dataclasses.replace` sets each field of a frozen record through `object.__setattr__` and takes about 10 us for a
Pod. Here the new record is filled while it is of a class with the same slots that is not frozen, and then becomes
one of its own class: about 1 us. Records stay frozen for everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from muster.model.meta import KubernetesObject, ObjectKey

Record = TypeVar("Record")
_known: dict[tuple[object, ...], Callable[..., Any]] = {}


def varied(record: Record, **changed: object) -> Record:
    """The frozen record with these fields replaced: `dataclasses.replace`, several times as quick.

    Raises ValueError for a name that is no field. Only for records with slots and without `__post_init__`.
    """
    shape = (type(record), *changed)
    vary = _known.get(shape)
    if vary is None:
        vary = _known[shape] = variation(type(record), *changed)
    made: Record = vary(record, *changed.values())
    return made


def variation(cls: type[Record], *changed: str, kind: str = "") -> Callable[..., Record]:
    """A function `(record, *values)` that returns the record with the fields `changed` set to the values, in that order.

    kind: that of namespaced objects which get a name here: each has its key from the start then. Raises ValueError for
    a name that is no field. The record must be of exactly that class.
    """
    names = _names_of(cls, changed)
    sources = [name if name in changed else f"record.{name}" for name in names]
    body = [f"    made.{name} = {source}" for name, source in zip(names, sources, strict=True)]
    if issubclass(cls, KubernetesObject) and not {"name", "namespace"}.intersection(changed):
        body.append("    made._key = record.key")
    elif kind:
        where = ", ".join(name if name in changed else f"record.{name}" for name in ("namespace", "name"))
        body.append(f"    made._key = key(ObjectKey, ({kind!r}, {where}))")
    head = [f"def vary({', '.join(['record', *changed])}):", "    made = new(draft)"]
    vary: Callable[..., Record] = _function(
        cls, [*head, *body, "    made.__class__ = cls", "    return made"]
    )
    return vary


def variations(cls: type[Record], *changed: str, kind: str = "") -> Callable[..., list[Record]]:
    """A function `(record, *columns)` that returns as many records as the columns, equally long, have values.

    Each is what `variation` makes with one value of each column. Its name must be among the fields `changed`.
    """
    kept = [name for name in _names_of(cls, changed) if name not in changed]
    where = ", ".join(name if name in changed else f"kept_{name}" for name in ("namespace", "name"))
    lines = [f"def vary(record, {_columns(changed)}):"]
    lines += [f"    kept_{name} = record.{name}" for name in kept]
    lines += ["    found = []", f"    for {', '.join(changed)}, in zip({_columns(changed)}, strict=True):"]
    lines += _made(changed, {name: f"kept_{name}" for name in kept})
    if kind:
        lines += [f"        made._key = key(ObjectKey, ({kind!r}, {where}))"]
    return _of_each(cls, lines)


def varied_all(cls: type[Record], *changed: str) -> Callable[..., list[Record]]:
    """A function `(records, *columns)` that returns each record with the fields `changed` set to its value of each column.

    Only for objects that keep their name and namespace, and for columns as long as the records are many.
    """
    kept = [name for name in _names_of(cls, changed) if name not in changed]
    lines = [f"def vary(records, {_columns(changed)}):", "    found = []"]
    lines += ["    try:", "        keys = [record._key for record in records]"]
    lines += ["    except AttributeError:", "        keys = [record.key for record in records]"]
    lines += [
        f"    for record, kept_key, {', '.join(changed)} in zip(records, keys, {_columns(changed)}, strict=True):"
    ]
    lines += _made(changed, {name: f"record.{name}" for name in kept})
    lines += ["        made._key = kept_key"]
    return _of_each(cls, lines)


def alike(cls: type[Record], *names: str) -> Callable[[Sequence[Record]], bool]:
    """A function that tells whether records, at least one, have the very same object in each of these fields."""
    _names_of(cls, names)
    lines = ["def are_alike(records):", "    first = records[0]"]
    lines += [f"    first_{name} = first.{name}" for name in names]
    differs = " or ".join(f"record.{name} is not first_{name}" for name in names)
    lines += [
        "    for record in records:",
        f"        if {differs}:",
        "            return False",
        "    return True",
    ]
    are_alike: Callable[[Sequence[Record]], bool] = _function(cls, lines)
    return are_alike


def _columns(changed: Sequence[str]) -> str:
    return ", ".join(f"{name}_column" for name in changed)


def _made(changed: Sequence[str], kept: dict[str, str]) -> list[str]:
    """Lines of a loop that begin a record, of which the fields `changed` are named so, and the others come from `kept`."""
    sources = {name: name for name in changed} | kept
    return ["        made = new(draft)", *(f"        made.{name} = {at}" for name, at in sources.items())]


def _of_each(cls: type[Record], lines: Sequence[str]) -> Callable[..., list[Record]]:
    """The function of these lines, which leave it to make the record one of its class and to collect it, in their loop."""
    ending = ["        made.__class__ = cls", "        found.append(made)", "    return found"]
    vary: Callable[..., list[Record]] = _function(cls, [*lines, *ending])
    return vary


def _function(cls: type[Any], lines: Sequence[str]) -> Callable[..., Any]:
    """The function that these lines define, which may name what makes records of the class, and keys.

    Unrolled source, as dataclasses make it too: a loop over the fields takes three times as long.
    """
    known = {"new": object.__new__, "draft": _draft_of(cls), "cls": cls, "key": tuple.__new__}
    namespace: dict[str, Any] = known | {"ObjectKey": ObjectKey}
    names = set(namespace)
    exec("\n".join(lines), namespace)  # noqa: S102
    (defined,) = namespace.keys() - names - {"__builtins__"}
    function: Callable[..., Any] = namespace[defined]
    return function


def _names_of(cls: type[Any], changed: tuple[str, ...]) -> list[str]:
    """The fields of a record. Raises ValueError if one of `changed` is none of them."""
    names = [field.name for field in fields(cls)]
    unknown = set(changed).difference(names)
    if unknown:
        raise ValueError(f"{cls.__name__} has no fields {sorted(unknown)}")
    return names


def _draft_of(cls: type[Any]) -> type:
    """A class with the same layout as `cls` whose fields can be set."""
    slots = {
        "__slots__": cls.__dict__["__slots__"],
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
    }
    return type(f"{cls.__name__}Draft", cls.__bases__, slots)
