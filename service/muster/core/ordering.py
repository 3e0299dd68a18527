"""In which order the pods of a leaf group are placed (semantics 5.1): every sort key of placement is here."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import PendingPods, Unit

_IMPOSSIBLE = Fraction(2**80)
"""Above any share of an amount that a node offers."""


class Batch(NamedTuple):
    """Pods of one leaf that are equal in all that placement reads. excluded: nodes they must not be bound to."""

    signature: int
    pods: tuple[int, ...]
    excluded: frozenset[str] = frozenset()


def batches_of(snapshot: Snapshot, unit: Unit, pending: PendingPods) -> list[Batch]:
    """A leaf's pods in the order in which they are placed.

    Signatures by pod priority, then hardest first, then creation of their first pod; pods by creation. Pods have
    their own batch where a client reported failed bindings.
    """
    if not unit.excluded_nodes and len(set(pending.signatures)) == 1:
        return [Batch(pending.signatures[0], pending.ids)]
    by_signature: dict[int, list[int]] = {}
    for pod, signature in zip(pending.ids, pending.signatures, strict=True):
        by_signature.setdefault(signature, []).append(pod)
    signatures = list(by_signature)
    if len(signatures) > 1:
        signatures.sort(
            key=lambda index: _order(snapshot, snapshot.signatures[index], by_signature[index][0])
        )
    return [batch for index in signatures for batch in _runs(index, by_signature[index], unit.excluded_nodes)]


def hardness(snapshot: Snapshot, signature: Signature) -> Fraction:
    """The largest share that a request has of the largest allocatable amount of one node of the cluster."""
    nodes = snapshot.nodes
    shares = [Fraction(0)]
    for resource, amount in signature.requests.items():
        largest = int(nodes.allocatable[nodes.row(resource)].max())
        shares.append(Fraction(amount, largest) if largest else _IMPOSSIBLE)
    return max(shares)


def _order(snapshot: Snapshot, signature: Signature, first_pod: int) -> tuple[int, Fraction, int]:
    return -signature.priority, -hardness(snapshot, signature), first_pod


def _runs(signature: int, pods: list[int], excluded_nodes: dict[int, frozenset[str]]) -> list[Batch]:
    """Successive pods with the same excluded nodes as one batch each."""
    if not excluded_nodes:
        return [Batch(signature, tuple(pods))]
    nowhere: frozenset[str] = frozenset()
    runs: list[Batch] = []
    start = 0
    for end in range(1, len(pods) + 1):
        excluded = excluded_nodes.get(pods[start], nowhere)
        if end == len(pods) or excluded_nodes.get(pods[end], nowhere) != excluded:
            runs.append(Batch(signature, tuple(pods[start:end]), excluded))
            start = end
    return runs
