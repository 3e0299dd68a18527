"""How large a YAML text is once its aliases are written out: a few lines of them can stand for more than any memory.

Decides only that; what the text means is `manifest_documents`'. Nodes are measured before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import yaml

# About what a value takes beside its text, once it is a message's.
VALUE_BYTES = 32
# What aliases may come to: so much at any rate, and so many times what is written.
LARGEST_ANYWAY_BYTES = 64 << 20
MOST_TIMES = 10


class Measure:
    """Adds up the documents of one text, so that many small ones are no way around the limit."""

    def __init__(self) -> None:
        self._written = 0
        self._meant = 0

    def add(self, document: yaml.Node) -> None:
        """Raises YAMLError for a document that holds itself, or with which aliases come to too much."""
        sizes: dict[yaml.Node, int] = {}
        self._meant += self._size(document, sizes)
        if self._meant > max(LARGEST_ANYWAY_BYTES, MOST_TIMES * self._written):
            raise _error("its aliases stand for too much", document)

    def _size(self, node: yaml.Node, sizes: dict[yaml.Node, int]) -> int:
        """The size of a node with all that is below it; `sizes` has 0 for those that are being measured."""
        known = sizes.get(node)
        if known == 0:
            raise _error("an alias stands inside of what it stands for", node)
        if known is not None:
            return known
        sizes[node] = 0
        own = VALUE_BYTES + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        self._written += own
        size = own + sum(self._size(part, sizes) for part in _parts(node))
        sizes[node] = size
        return size


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return chain.from_iterable(node.value)
    return iter(node.value if isinstance(node, yaml.SequenceNode) else ())


def _error(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
