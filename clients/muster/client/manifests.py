"""Kubernetes manifests to Muster's objects: the front of the modules named `manifest_*`.

Decides how whole sets of documents are read and reported. Faults carry the paths that the server would give them
(`objects[3].podGroup.spec...`), all in one error; fields that Muster does not read are dropped and counted, one entry
a kind and path. What the values mean is the server's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from google.protobuf.message import Message

from muster.client.manifest_documents import Document, Source, documents, sources
from muster.client.manifest_fields import Findings, Path, fill, shown
from muster.client.manifest_kinds import FIELDS, in_present_words, refusal
from muster.v1.object_pb2 import Object

# Metadata of the API server that the objects came from; it means nothing to another one.
ALWAYS_LEFT_OUT = frozenset({"managedFields", "selfLink"})
VERSIONS = frozenset({"resourceVersion", "generation"})

# Fields without a place in Muster's model by which Kubernetes would rule out nodes.
PLACEMENT_FIELDS = frozenset(
    {
        "Pod spec.os",
        "Pod spec.resourceClaims",
        "Pod spec.runtimeClassName",
        "Pod spec.volumes",
        "Pod spec.containers[].resources.claims",
        "Pod spec.initContainers[].resources.claims",
        "Pod spec.resources.claims",
        "PodGroup spec.resourceClaims",
    }
)
# Volumes that are made on the node itself, so that any node will do.
NODE_LOCAL_VOLUMES = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "hostPath", "image", "projected", "secret"}
)


@dataclass(frozen=True, slots=True)
class ManifestFault:
    """One thing wrong with the manifests; `field` is the path in the request that they would become."""

    field: str
    description: str
    origin: str

    def __str__(self) -> str:
        return f"{self.field} ({self.origin}): {self.description}"


class ManifestError(ValueError):
    """Manifests that cannot become objects; `faults` has every reason."""

    def __init__(self, faults: Iterable[ManifestFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True, slots=True)
class DroppedField:
    """A field that Muster does not read: where it stood first, in how many places, and whether it matters."""

    kind: str
    path: str
    count: int
    decides_placement: bool
    first: ManifestFault

    def __str__(self) -> str:
        remark = " (this would change where the pod may run)" if self.decides_placement else ""
        return f"{self.kind} {self.path}: {self.count} left out{remark}"


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects in the order of the documents, where each came from, and what was dropped on the way."""

    objects: tuple[Object, ...]
    origins: tuple[str, ...]
    dropped: tuple[DroppedField, ...]

    def require_nothing_dropped(self) -> None:
        """Raises ManifestError with a fault for each kind and path that was dropped."""
        if self.dropped:
            raise ManifestError(each.first for each in self.dropped)


def read_paths(paths: Iterable[str], *, match_version: bool = False) -> Manifests:
    """Reads files, folders and "-". Raises OSError, DocumentError and ManifestError."""
    return read_manifests(sources(paths), match_version=match_version)


def read_manifests(texts: Iterable[Source], *, match_version: bool = False) -> Manifests:
    """Reads texts. `match_version` keeps `resourceVersion`, so that Apply refuses what has changed since.

    Raises DocumentError if a text cannot be parsed and ManifestError with all faults of all documents.
    """
    left_out = ALWAYS_LEFT_OUT if match_version else ALWAYS_LEFT_OUT | VERSIONS
    reading = _Reading(left_out)
    for text in texts:
        for document in documents(text):
            reading.add(document)
    return reading.result()


def object_of(document: Mapping[str, object]) -> Object:
    """One parsed document as an object. Raises ManifestError; unknown fields are faults here too."""
    reading = _Reading(ALWAYS_LEFT_OUT | VERSIONS)
    reading.add(Document(document, "document"))
    manifests = reading.result()
    manifests.require_nothing_dropped()
    return manifests.objects[0]


class _Reading:
    """The state of one reading: objects so far, faults and dropped fields by kind and path."""

    def __init__(self, left_out: frozenset[str]) -> None:
        self._left_out = left_out
        self._objects: list[Object] = []
        self._origins: list[str] = []
        self._faults: list[ManifestFault] = []
        self._dropped: dict[tuple[str, str], DroppedField] = {}

    def add(self, document: Document) -> None:
        """Read one document as the next object; what is wrong with it is kept, not raised."""
        place = f"objects[{len(self._objects)}]"
        result = Object()
        self._objects.append(result)
        self._origins.append(document.origin)
        content = document.content
        if not isinstance(content, Mapping):
            self._faults.append(
                ManifestFault(place, "must be a mapping with apiVersion and kind", document.origin)
            )
            return
        if refused := refusal(content):
            field, reason = refused
            self._faults.append(ManifestFault(f"{place}.{field}", f"{field} {reason}", document.origin))
            return
        kind = str(content["kind"])
        findings = Findings()
        target: Message = getattr(result, FIELDS[kind])
        target.SetInParent()
        fill(target, self._body(in_present_words(content)), (), findings)
        self._record(kind, f"{place}.{_json_name(kind)}", findings, document)

    def result(self) -> Manifests:
        if self._faults:
            raise ManifestError(self._faults)
        return Manifests(tuple(self._objects), tuple(self._origins), tuple(self._dropped.values()))

    def _body(self, content: Mapping[object, object]) -> dict[object, object]:
        body = {key: value for key, value in content.items() if key not in {"apiVersion", "kind"}}
        metadata = body.get("metadata")
        if isinstance(metadata, Mapping):
            body["metadata"] = {key: value for key, value in metadata.items() if key not in self._left_out}
        return body

    def _record(self, kind: str, place: str, findings: Findings, document: Document) -> None:
        for misfit in findings.misfits:
            fault = ManifestFault(f"{place}.{shown(misfit.path)}", misfit.description, document.origin)
            self._faults.append(fault)
        for path in findings.unknown:
            self._drop(kind, path, place, document)

    def _drop(self, kind: str, path: Path, place: str, document: Document) -> None:
        general = _general(path)
        known = self._dropped.get((kind, general))
        if known is None:
            first = ManifestFault(
                f"{place}.{shown(path)}", "is not a field that Muster reads", document.origin
            )
            known = DroppedField(kind, general, 0, decides_placement=False, first=first)
        decides = known.decides_placement or _decides_placement(f"{kind} {general}", path, document.content)
        self._dropped[kind, general] = replace(known, count=known.count + 1, decides_placement=decides)


def _json_name(kind: str) -> str:
    return str(Object.DESCRIPTOR.fields_by_name[FIELDS[kind]].json_name)


def _general(path: Path) -> str:
    """The path without positions: `spec.containers[].image`."""
    return shown(tuple("[]" if isinstance(step, int) else step for step in path))


def _decides_placement(named: str, path: Path, content: object) -> bool:
    if named not in PLACEMENT_FIELDS:
        return False
    volumes = _value_at(path, content)
    if not named.endswith(".volumes") or not isinstance(volumes, list):
        return True
    return any(
        set(volume) - NODE_LOCAL_VOLUMES - {"name"} for volume in volumes if isinstance(volume, Mapping)
    )


def _value_at(path: Path, content: object) -> object:
    for step in path:
        if isinstance(content, Mapping) or (isinstance(content, list) and isinstance(step, int)):
            content = content[step]  # type: ignore[index]
    return content
