"""What a browser asks, read from the query string of a request; every fault is told at once, as the API does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from muster.engine.errors import InvalidArgumentError
from muster.model.meta import ObjectKey
from muster.rpc.request_checks import UNIT_KINDS, RequestFaults
from muster.v1.meta_pb2 import ObjectRef
from muster.validation.violations import INVALID

MOST_VALUES = 16


class Query:
    """The parameters of one request. Raises InvalidArgumentError from `refuse`, and for a string with too many."""

    def __init__(self, query_string: str) -> None:
        try:
            self._values: Mapping[str, Sequence[str]] = parse_qs(
                query_string, keep_blank_values=True, max_num_fields=64, errors="replace"
            )
        except ValueError as error:
            raise InvalidArgumentError("INVALID_REQUEST", f"the query cannot be read: {error}") from error
        self.faults = RequestFaults()
        self.cluster = self.faults.cluster(self.text("cluster"))

    def text(self, name: str) -> str:
        """The last value of a parameter, "" without one."""
        return self._values.get(name, [""])[-1]

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be repeated."""
        return tuple(self._values.get(name, ())[:MOST_VALUES])

    def has(self, name: str) -> bool:
        return bool(self.text(name))

    def number(self, name: str, default: int, most: int) -> int:
        """A number from 1 to `most`."""
        text = self.text(name) or str(default)
        if not (
            text.isascii() and text.isdigit() and len(text) < len(str(most)) + 1 and 1 <= int(text) <= most
        ):
            self.faults.add(name, INVALID, f"1 to {most}, not {text[:20]!r}")
            return default
        return int(text)

    def enum_values(self, name: str, known: Mapping[str, int]) -> list[int]:
        """Numbers of the named values of an enum."""
        texts = self.texts(name)
        for text in texts:
            if text not in known:
                self.faults.add(name, INVALID, f"{text[:80]!r} is not one of {', '.join(known)}")
        return [known[text] for text in texts if text in known]

    def ref(self) -> ObjectRef:
        """The object that `kind`, `namespace` and `name` name."""
        return ObjectRef(kind=self.text("kind"), namespace=self.text("namespace"), name=self.text("name"))

    def key(self) -> ObjectKey | None:
        """As `ref`, checked; None if no kind is given."""
        if not self.has("kind"):
            return None
        return self.faults.ref(self.ref(), "unit", present=True, allowed=UNIT_KINDS)

    def refuse(self) -> None:
        """Raise InvalidArgumentError if anything is wrong."""
        self.faults.refuse()
