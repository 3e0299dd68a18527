"""How an object that a client sent becomes the one that is stored: creation with defaults, or whole-object update.

On an existing object the caller's metadata and spec replace the stored ones; what the server filled in or owns and
the caller left out stays. Pure: the caller of `admit` finds the stored object, supplies revision, time and uids, stores
the result, and refuses the whole call if one object is refused. A wrong object is admitted as it is, so that its
conflicts are found in the same pass as the faults that `validate` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.model.group import Group
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.variations import variation, varied
from muster.validation.admission.context import SERVER_OWNED, AdmissionContext
from muster.validation.admission.groups import create_group
from muster.validation.admission.kinds import KINDS, SIMPLE_KINDS
from muster.validation.admission.pods import create_pod, create_pods, merge_pod
from muster.validation.admission.results import Admitted, Answer, Conflict, Faults, NewPods, Outcome, Rejected
from muster.validation.objects import key_of, name_in_texts

_POD_SPEC_FIELDS = ("spec", "gates", "node_name")

_individual = variation(Pod, "name", "uid")


def admit(sent: ClusterObject, stored: ClusterObject | None, context: AdmissionContext) -> Answer:
    """What applying `sent` over `stored` (None: there is no such object) gives. Mutates the context's counters alone.

    `stored` is what the cluster holds under `key_of(sent)`, earlier objects of the same call included.
    """
    if stored is None:
        return _create(sent, context)
    conflict = _conflict(sent, stored)
    if conflict is not None:
        return conflict
    if isinstance(sent, Pod) and isinstance(stored, Pod):
        merged: Pod | Faults = merge_pod(sent, stored, context)
        return _updated(sent, stored, merged, _POD_SPEC_FIELDS, context)
    kind = KINDS[type(sent)]
    fields = kind.merge(sent, stored, context.classes)
    if isinstance(fields, tuple):
        return _rejected(sent, fields)
    changed = _with(stored, sent, fields)
    return _updated(sent, stored, stored if changed == stored else changed, kind.spec_fields, context)


def admit_batch(
    batch: PodBatch, find: Callable[[ObjectKey], ClusterObject | None], context: AdmissionContext
) -> list[Answer]:
    """What applying each pod of a batch gives, in the order of names; faults have paths relative to the batch."""
    uids = batch.uids if len(batch.uids) == len(batch.names) else ("",) * len(batch.names)
    kind, namespace, _ = key_of(batch.template)
    found = [find(ObjectKey(kind, namespace, name)) for name in batch.names]
    answers: list[Answer] = []
    for name, uid, stored in zip(batch.names, uids, found, strict=True):
        if stored is None:
            answer = _created_pod(batch.template, name, uid, context)
        else:
            answer = admit(_individual(batch.template, name, uid), stored, context)
        answers.append(_within_batch(answer) if isinstance(answer, Rejected) else answer)
    return answers


def create_batch(batch: PodBatch, context: AdmissionContext) -> NewPods | None:
    """What applying a right batch gives of which no pod exists; None if they may not be made, of which `admit_batch` says why."""
    created = create_pods(batch.template, batch.names, batch.uids or ("",) * len(batch.names), context)
    return NewPods(created) if isinstance(created, list) else None


def _create(sent: ClusterObject, context: AdmissionContext) -> Answer:
    if sent.resource_version:
        text = f"has no revision {sent.resource_version}: it does not exist"
        return Conflict("RESOURCE_VERSION_MISMATCH", str(key_of(sent)), text)
    if isinstance(sent, Pod):
        return _created_pod(sent, sent.name, sent.uid, context)
    if isinstance(sent, Group):
        group = create_group(sent, context)
        return _rejected(sent, group) if isinstance(group, tuple) else Admitted(group, Outcome.CREATED)
    fields = SIMPLE_KINDS[type(sent)].create(sent, context)
    if isinstance(fields, tuple):
        return _rejected(sent, fields)
    uid = sent.uid or context.make_uid()
    own = context.of_new(key_of(sent).namespace, uid, context.next_ordinal())
    created = varied(sent, **dict(zip(SERVER_OWNED, own, strict=True)), **fields)
    return Admitted(created, Outcome.CREATED)


def _created_pod(sent: Pod, name: str, uid: str, context: AdmissionContext) -> Answer:
    created = create_pod(sent, name, uid, context)
    if isinstance(created, tuple):
        return _rejected(_individual(sent, name, uid), created)
    return Admitted(created, Outcome.CREATED)


def _conflict(sent: ClusterObject, stored: ClusterObject) -> Conflict | None:
    subject = str(stored.key)
    if sent.uid and sent.uid != stored.uid:
        return Conflict("UID_MISMATCH", subject, f"has the uid {stored.uid}, not {sent.uid}")
    if sent.resource_version and sent.resource_version != stored.resource_version:
        text = f"is at revision {stored.resource_version}, not {sent.resource_version}"
        return Conflict("RESOURCE_VERSION_MISMATCH", subject, text)
    if stored.deletion_us is not None:
        return Conflict("OBJECT_DELETING", subject, "is being deleted")
    return None


def _with(stored: ClusterObject, sent: ClusterObject, fields: dict[str, Any]) -> ClusterObject:
    return varied(
        stored,
        labels=sent.labels,
        annotations=sent.annotations,
        owner_references=sent.owner_references,
        finalizers=sent.finalizers,
        **fields,
    )


def _updated(
    sent: ClusterObject,
    stored: ClusterObject,
    merged: ClusterObject | Faults,
    spec_fields: tuple[str, ...],
    context: AdmissionContext,
) -> Answer:
    """`merged`: the stored object itself if nothing differs."""
    if isinstance(merged, tuple):
        return _rejected(sent, merged)
    if merged is stored:
        return Admitted(stored, Outcome.UNCHANGED)
    has_new_spec = any(getattr(merged, field) != getattr(stored, field) for field in spec_fields)
    updated = varied(
        merged,
        resource_version=context.revision,
        generation=stored.generation + 1 if has_new_spec else stored.generation,
    )
    return Admitted(updated, Outcome.UPDATED)


def _rejected(sent: ClusterObject, faults: Faults) -> Rejected:
    return Rejected(tuple(name_in_texts(str(key_of(sent)), faults)))


def _within_batch(rejected: Rejected) -> Rejected:
    return Rejected(tuple(fault._replace(field=f"template.{fault.field}") for fault in rejected.violations))
