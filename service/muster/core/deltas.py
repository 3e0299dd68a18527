"""The changes that keep a snapshot and its replicas up to date: small values that cross process borders.

Replicas that were fed the same deltas in the same order are equal. Pods come in columns, so that ten thousand of
them cost one call.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.signature import Signature
from muster.model.node import Node


@dataclass(frozen=True, slots=True)
class NodePut:
    """A node was added or changed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A node is gone. Pods bound to it are remembered, and count again when it comes back."""

    name: str


@dataclass(frozen=True, slots=True)
class SignaturesAdded:
    """The next entries of the signature table, in order (SignatureTable.take_new)."""

    signatures: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class SignaturesKept:
    """All other signatures are given up. `indexes`, ascending, are those from before: each one's place is its new index.

    Every signature of a bound pod must be among them.
    """

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PodsBound:
    """Pods run on nodes: columns of ordinals, signature indexes and node names; the node need not be known yet.

    A pod that was bound already moves. `leaving` marks all of them as leaving.
    """

    ids: tuple[int, ...]
    signatures: tuple[int, ...]
    node_names: tuple[str, ...]
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class PodsUnbound:
    """Pods use no room any more: gone, finished or unbound. Unknown ones are ignored."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PodsLeaving:
    """Bound pods got a deletion mark: they use room and no longer count in spread. Unknown ones are ignored."""

    ids: tuple[int, ...]


Delta = NodePut | NodeRemoved | SignaturesAdded | SignaturesKept | PodsBound | PodsUnbound | PodsLeaving
