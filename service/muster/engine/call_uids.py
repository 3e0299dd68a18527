"""Uids that callers choose: no two objects of one call may have the same.

Among all that is stored they are not looked for, as no table finds an object by its uid: there it is the caller's to see to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.validation.objects import name_in_texts, subject_of
from muster.validation.violations import DUPLICATE, Violation


def repeated_uids(
    objects: Sequence[ClusterObject | PodBatch | None],
) -> Iterator[tuple[int, list[Violation]]]:
    """The places of objects with uids that stand in the call before, and a fault for each such uid."""
    given = _given(objects)
    if len(set(given)) == len(given):
        return
    seen: set[str] = set()
    for index, sent in enumerate(objects):
        if sent is not None and (faults := list(_repeated(sent, seen))):
            yield index, name_in_texts(subject_of(sent), faults)


def _given(objects: Iterable[ClusterObject | PodBatch | None]) -> list[str]:
    """Mostly none, or all different."""
    uids: list[str] = []
    for sent in objects:
        if isinstance(sent, PodBatch):
            uids += filter(None, sent.uids)
        elif sent is not None and sent.uid:
            uids.append(sent.uid)
    return uids


def _repeated(sent: ClusterObject | PodBatch, seen: set[str]) -> Iterator[Violation]:
    is_batch = isinstance(sent, PodBatch)
    for place, uid in enumerate(sent.uids if isinstance(sent, PodBatch) else (sent.uid,)):
        if uid in seen:
            field = f"uids[{place}]" if is_batch else "metadata.uid"
            yield Violation(field, DUPLICATE, f"must be unique in the call, {uid[:80]!r} is not")
        if uid:
            seen.add(uid)
