"""The bytes of a message that was decoded, without its name and one more text: the next may differ from it in these alone.

Equal bytes mean equal messages, so that nothing else need be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

_SHORT = 127
"""A length up to here takes one byte on the wire."""


class Sample:
    """Matches messages of the same length, with texts as long as its own."""

    __slots__ = (
        "_head",
        "_middle",
        "_name_end",
        "_size",
        "_start",
        "_tail",
        "_text",
        "_text_at",
        "_text_end",
    )

    def __init__(self, head: bytes, name_size: int, middle: bytes, text: bytes, tail: bytes) -> None:
        self._head, self._middle, self._text, self._tail = head, middle, text, tail
        self._start, self._name_end = len(head), len(head) + name_size
        self._text_at = self._name_end + len(middle)
        self._text_end = self._text_at + len(text)
        self._size = self._text_end + len(tail)

    @classmethod
    def of(cls, sent: bytes, name: str, text: str) -> Sample | None:
        """The message's sample; None if it is not to be told where its name is. `text`: another field, "" for none.

        An object's name is the first field of its first field: a tag and a length stand before each of them. The other
        text is where its bytes are behind that, if they are in one place alone; else it is as fixed as all else.
        """
        written = name.encode()
        if not name or len(written) > _SHORT:
            return None
        at = 4 if sent[1] <= _SHORT else 5
        end = at + len(written)
        if sent[at - 1] != len(written) or sent[at:end] != written:
            return None
        sought = text.encode()
        found = sent.find(sought, end)
        if not text or found < 0 or sent.rfind(sought, end) != found:
            return cls(sent[:at], len(written), b"", b"", sent[end:])
        return cls(sent[:at], len(written), sent[end:found], sought, sent[found + len(sought) :])

    def texts(self, sent: bytes) -> tuple[str, str] | None:
        """The name and the other text of a message like the sample's, which are as long; None if it is not like it.

        The other text is "" where it is that of the message before.
        """
        if len(sent) != self._size or not sent.startswith(self._head) or not sent.endswith(self._tail):
            return None
        name = sent[self._start : self._name_end].decode()
        if self._text:
            if not sent.startswith(self._middle, self._name_end):
                return None
            text = sent[self._text_at : self._text_end]
            if text != self._text:
                self._text = text
                return name, text.decode()
        return name, ""

    def names(self, sent: Iterable[bytes]) -> list[str]:
        """Those of the first messages, for as long as they differ from the last one in their names alone."""
        size, head, start, end = self._size, self._head, self._start, self._name_end
        rest = self._middle + self._text + self._tail
        found: list[str] = []
        for each in sent:
            if len(each) != size or not each.startswith(head) or not each.endswith(rest):
                break
            found.append(each[start:end].decode())
        return found
