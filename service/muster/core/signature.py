"""What filters and scores read of a pod, as one value for all pods that are equal to them (KEP-4671: equal pods).

A snapshot and all its replicas speak of signatures by index. The table that gives indexes out lives where pods
come in; new entries reach each replica in a delta before the first pod that uses them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache

from muster.model.pod import Pod, PodSpec
from muster.model.resources import Amounts, pod_requests
from muster.model.variations import variation


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """One kind of pod. `index` is its place in the table; equal `shape` means equal spec, whatever the labels.

    requests: amounts above zero, in base units (`model.resources`), with the pod slot; one value for all of a shape.
    """

    index: int
    shape: int
    namespace: str
    labels: dict[str, str]
    spec: PodSpec
    requests: Amounts = field(repr=False)

    @property
    def priority(self) -> int:
        return self.spec.priority or 0


_renumbered = variation(Signature, "index", "shape")


def renumbered(signatures: Iterable[Signature]) -> list[Signature]:
    """The signatures as a table would number them that had been made of these alone, in this order."""
    shapes: dict[int, int] = {}
    return [
        _renumbered(signature, index, shapes.setdefault(signature.shape, len(shapes)))
        for index, signature in enumerate(signatures)
    ]


class SignatureTable:
    """Gives each distinct (namespace, labels, spec) an index. Indexes are never given twice by one table.

    What is known by identity keeps its specs and labels alive, though their pods may be gone; so it is begun anew once it
    is full, at a few megabytes.
    """

    _MOST_IDENTITIES = 16_384

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self._by_content: dict[Hashable, int] = {}
        self._by_identity: dict[tuple[int, int, str], tuple[PodSpec, dict[str, str], int]] = {}
        self._shapes: dict[Hashable, int] = {}
        self._shape_by_identity: dict[int, tuple[PodSpec, int]] = {}
        self._requests: dict[int, Amounts] = {}
        self._taken = 0

    def __len__(self) -> int:
        return len(self.signatures)

    def __getitem__(self, index: int) -> Signature:
        return self.signatures[index]

    def intern(self, pod: Pod) -> int:
        """The index of the pod's signature; quick when spec and labels, or the spec alone, have been seen as objects.

        Raises ValueError on a bad quantity.
        """
        identity = (id(pod.spec), id(pod.labels), pod.namespace)
        known = self._by_identity.get(identity)
        if known is not None:
            return known[2]
        index = self._index_of(pod)
        if len(self._by_identity) >= self._MOST_IDENTITIES:
            self._by_identity.clear()
        # With what has the ids, so that none of them is used again.
        self._by_identity[identity] = (pod.spec, pod.labels, index)
        return index

    def _index_of(self, pod: Pod) -> int:
        shape = self._shape_of(pod.spec)
        content = (pod.namespace, shape, frozenset(pod.labels.items()))
        index = self._by_content.get(content)
        if index is None:
            index = self._add(pod, shape)
            self._by_content[content] = index
        return index

    def take_new(self) -> tuple[Signature, ...]:
        """The signatures made since the last call: what a SignaturesAdded delta must carry."""
        new = tuple(self.signatures[self._taken :])
        self._taken = len(self.signatures)
        return new

    def adopt(self, signatures: Iterable[Signature]) -> None:
        """Take entries that another table gave out next, in their order, so that both speak of the same indexes.

        Entries that are here already are passed over. Raises ValueError for one that is not the next.
        """
        for signature in signatures:
            if signature.index < len(self.signatures):
                continue
            if signature.index > len(self.signatures):
                raise ValueError(f"signature {signature.index} is not the next one ({len(self.signatures)})")
            self.signatures.append(signature)
            if signature.shape >= len(self._shapes):
                self._shapes.setdefault(content_of(signature.spec), signature.shape)
                self._requests[signature.shape] = signature.requests
            content = (signature.namespace, signature.shape, frozenset(signature.labels.items()))
            self._by_content[content] = signature.index

    def _add(self, pod: Pod, shape: int) -> int:
        index = len(self.signatures)
        requests = self._requests.get(shape)
        if requests is None:
            requests = {resource: amount for resource, amount in pod_requests(pod.spec).items() if amount}
            self._requests[shape] = requests
        self.signatures.append(Signature(index, shape, pod.namespace, pod.labels, pod.spec, requests))
        return index

    def _shape_of(self, spec: PodSpec) -> int:
        """Specs are shared more widely than labels, so identity answers here too; the entry keeps the object alive."""
        known = self._shape_by_identity.get(id(spec))
        if known is not None:
            return known[1]
        shape = self._shapes.setdefault(content_of(spec), len(self._shapes))
        if len(self._shape_by_identity) >= self._MOST_IDENTITIES:
            self._shape_by_identity.clear()
        self._shape_by_identity[id(spec)] = (spec, shape)
        return shape


def content_of(value: object) -> Hashable:
    """A hashable stand-in for a model value: equal for equal content, whatever the order of mappings."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return frozenset((key, content_of(item)) for key, item in value.items())
    if isinstance(value, tuple):
        return tuple(content_of(item) for item in value)
    names = _field_names(type(value))  # type: ignore[arg-type]  # Takes the __hash__ of objects for that of types.
    return (type(value).__name__, *(content_of(getattr(value, name)) for name in names)) if names else value


@lru_cache(maxsize=256)
def _field_names(of_type: type) -> tuple[str, ...]:
    """The fields of a dataclass; nothing for other types."""
    return tuple(item.name for item in fields(of_type)) if is_dataclass(of_type) else ()
