"""Delete as one revision: what goes now, what is only marked, and what happens to what the objects own (semantics 7).

First every ref is checked, and one refusal names all that stand in the way. Then a plan says, without changing
anything, which objects go at once: all wanted ones but those that a grace period, a finalizer, a member or a blocking
dependent holds. A dry run stops there. Later removals (grace ended, last member gone) are `settlement`'s and `end_grace`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from muster.engine.api import DeleteCall, DeleteOutcome, DeleteRef, Propagation
from muster.engine.cluster_state import ClusterState
from muster.engine.conditions import TRUE
from muster.engine.errors import ConflictError, InvalidArgumentError, NotFoundError, Precondition
from muster.engine.hierarchy import Rings, keys_below
from muster.engine.mutation import Mutation
from muster.engine.settlement import (
    FOREGROUND_DELETION,
    blocks,
    is_protected,
    keys_above,
    owner_key_of,
    settle_deletions,
)
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import GROUP_KINDS, PRIORITY_CLASS, ObjectKey, OwnerReference
from muster.model.objects import ClusterObject
from muster.model.pod import DISRUPTION_TARGET, Pod
from muster.model.priority import SYSTEM_CLASSES
from muster.model.variations import varied
from muster.validation.violations import INVALID, Violation

SECOND_US = 1_000_000
_SYSTEM_CLASSES = frozenset(each.key for each in SYSTEM_CLASSES)


def delete(mutation: Mutation, call: DeleteCall, *, clients_evict: bool) -> tuple[DeleteOutcome, ...]:
    """Delete the refs in a fresh mutation; an outcome for each, judged after all of them. Nothing changes in a dry run.

    Raises InvalidArgumentError (built-in classes), NotFoundError, ConflictError; each names every object concerned.
    """
    _check(mutation.state, call)
    existing = [ref.key for ref in call.refs if mutation.state.get(ref.key) is not None]
    rules = _Rules(call.propagation, call.grace_period_seconds, call.force, clients_evict)
    plan = _Plan(mutation, rules, existing)
    left = plan.left()
    if not call.validate_only:
        plan.write()
        settle_deletions(mutation)
        left = {key for key in existing if mutation.state.get(key) is not None}
    known = set(existing)
    return tuple(_outcome(ref.key, known, left) for ref in call.refs)


def end_grace(mutation: Mutation, *, clients_evict: bool = False) -> None:
    """Remove all leaving pods whose grace has ended, with what they own. With `clients_evict`, evicted ones stay.

    A pod that something else holds is not looked at again until it is written.
    """
    leaving = mutation.cluster.leaving_until
    due = {ordinal for ordinal, until_us in leaving.items() if until_us <= mutation.now_us}
    if not due:
        return
    known = mutation.cluster.disruption.leaving
    ended = [known[ordinal] for ordinal in sorted(due) if ordinal in known]
    for ordinal in due:
        del leaving[ordinal]
    free = [pod.key for pod in ended if not pod.finalizers and not (clients_evict and is_evicted(pod))]
    remove_pods(mutation, free, clients_evict=clients_evict)


def remove_pods(mutation: Mutation, keys: Iterable[ObjectKey], *, clients_evict: bool) -> None:
    """Remove pods that are known to be gone, whatever held them, and delete what they own. All must exist."""
    pods = list(keys)
    if pods:
        rules = _Rules(clients_evict=clients_evict)
        _Plan(mutation, rules, pods, at_once=frozenset(pods)).write()


def evict_pods(mutation: Mutation, keys: Iterable[ObjectKey], *, clients_evict: bool) -> None:
    """Remove pods that say they are evicted, with what they own, or mark those that have a grace or that clients remove."""
    _Plan(mutation, _Rules(clients_evict=clients_evict), keys).write()


def is_evicted(pod: Pod) -> bool:
    """Whether preemption took the pod."""
    return any(each.type == DISRUPTION_TARGET and each.status == TRUE for each in pod.status.conditions)


def _check(state: ClusterState, call: DeleteCall) -> None:
    built_in = [
        Violation(f"refs[{index}].ref", INVALID, f"{ref.key} is built in and cannot be deleted")
        for index, ref in enumerate(call.refs)
        if ref.key.kind == PRIORITY_CLASS and ref.key in _SYSTEM_CLASSES
    ]
    if built_in:
        raise InvalidArgumentError("INVALID_REQUEST", built_in[0].description, built_in)
    missing = [ref.key for ref in call.refs if state.get(ref.key) is None]
    if missing and not call.allow_missing:
        text = f"{len(missing)} object(s) do not exist, the first: {missing[0]}; nothing was deleted"
        raise NotFoundError("OBJECT_NOT_FOUND", text, [(key.kind, _resource_name(key)) for key in missing])
    conflicts = [found for ref in call.refs if (found := _conflict(state, ref)) is not None]
    if conflicts:
        first = conflicts[0]
        text = f"{len(conflicts)} object(s) stand in the way, the first: {first.subject} {first.description}"
        raise ConflictError(first.type, text, conflicts)


def _resource_name(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def _conflict(state: ClusterState, ref: DeleteRef) -> Precondition | None:
    stored = state.get(ref.key)
    if stored is None:
        return None
    if ref.uid and ref.uid != stored.uid:
        return Precondition("UID_MISMATCH", str(ref.key), f"has the uid {stored.uid}, not {ref.uid}")
    if ref.resource_version and ref.resource_version != stored.resource_version:
        text = f"is at revision {stored.resource_version}, not {ref.resource_version}"
        return Precondition("RESOURCE_VERSION_MISMATCH", str(ref.key), text)
    return None


def _outcome(key: ObjectKey, known: set[ObjectKey], left: set[ObjectKey]) -> DeleteOutcome:
    if key not in known:
        return DeleteOutcome.MISSING
    return DeleteOutcome.MARKED if key in left else DeleteOutcome.DELETED


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one deletion goes by. `grace_seconds` None: each pod's own."""

    propagation: Propagation = Propagation.BACKGROUND
    grace_seconds: int | None = None
    force: bool = False
    clients_evict: bool = False

    def grace_of(self, pod: Pod) -> int:
        """Seconds that the pod may still use its room."""
        if not pod.node_name or pod.is_terminal:
            return 0
        asked = self.grace_seconds
        return (pod.spec.termination_grace_period_seconds or 0) if asked is None else asked

    def keeps(self, pod: Pod) -> bool:
        """Whether the pod stays for its grace, or until its client reports it gone."""
        if self.grace_of(pod):
            return True
        uses_room = bool(pod.node_name) and not pod.is_terminal
        return self.clients_evict and uses_room and is_evicted(pod) and not self.force


class _Plan:
    """What becomes of the wanted objects and of all that they own. Only `write` changes anything.

    `at_once` are removed whatever holds them.
    """

    def __init__(
        self,
        mutation: Mutation,
        rules: _Rules,
        wanted: Iterable[ObjectKey],
        at_once: frozenset[ObjectKey] = frozenset(),
    ) -> None:
        self._mutation = mutation
        self._state = mutation.state
        self._rules = rules
        self._at_once = at_once
        self._wanted: dict[ObjectKey, ClusterObject] = {}
        self._marked_before: dict[ObjectKey, ClusterObject] = {}
        self._orphans: dict[ObjectKey, set[str]] = {}
        for key in wanted:
            self._want(key)
        self._find_marked()
        self._gone = self._resolve()

    def left(self) -> set[ObjectKey]:
        """Wanted objects that are only marked."""
        return {key for key in self._wanted if key not in self._gone}

    def write(self) -> None:
        """Strip references of orphans, remove what goes, mark what stays."""
        for key, owners in self._orphans.items():
            if key not in self._gone:
                self._strip(key, owners)
        for key in self._wanted:
            if key in self._gone:
                self._mutation.remove(key)
            else:
                self._mark(key)

    def _want(self, first: ObjectKey) -> None:
        stack = [first]
        while stack:
            key = stack.pop()
            item = self._state.get(key)
            if item is None or key in self._wanted:
                continue
            self._wanted[key] = item
            stack.extend(reversed(list(self._dependents(item))))

    def _find_marked(self) -> None:
        """Groups below that were deleted before: they may go with this call's pods, and then hold their parent no longer."""
        for key in keys_below(self._state, [key for key in self._wanted if key.kind in GROUP_KINDS]):
            group = self._state.group(key)
            if group is not None and group.deletion_us is not None:
                self._marked_before[key] = group

    def _dependents(self, owner: ClusterObject) -> Iterator[ObjectKey]:
        """Dependents that go with the owner; those of an orphaning deletion are noted instead."""
        for key in self._state.dependents(owner.uid):
            dependent = self._state.get(key)
            if dependent is None:
                continue
            if self._rules.propagation is Propagation.ORPHAN:
                self._orphans.setdefault(key, set()).add(owner.uid)
            elif not any(self._stands(dependent, reference) for reference in dependent.owner_references):
                yield key

    def _stands(self, dependent: ClusterObject, reference: OwnerReference) -> bool:
        """Whether an owner is there to stay. One of a kind that is kept elsewhere counts as there."""
        if reference.kind not in self._state.objects:
            return True
        key = owner_key_of(dependent, reference)
        owner = self._state.get(key)
        if owner is None or owner.uid != reference.uid or key in self._wanted:
            return False
        return owner.deletion_us is None

    def _resolve(self) -> dict[ObjectKey, None]:
        """All that nothing outside of what goes holds: so objects that only hold each other go together."""
        gone = dict.fromkeys((*self._marked_before, *self._wanted))
        rings = Rings(self._state, [key for key in gone if key.kind in GROUP_KINDS])
        to_check = gone.copy()
        while to_check:
            # Dependents come after their owners, so that backwards most are looked at once.
            this_time, to_check = reversed(to_check), dict[ObjectKey, None]()
            for key in this_time:
                item = self._wanted.get(key) or self._marked_before.get(key)
                if item is not None and key in gone and self._is_held(key, item, gone, rings):
                    del gone[key]
                    to_check.update(dict.fromkeys(keys_above(self._state, item)))
        return gone

    def _is_held(
        self, key: ObjectKey, item: ClusterObject, gone: dict[ObjectKey, None], rings: Rings
    ) -> bool:
        if key in self._at_once:
            return False
        if isinstance(item, Pod) and self._rules.keeps(item):
            return True
        if self._rules.force and key in self._wanted:
            return False
        if any(each != FOREGROUND_DELETION for each in item.finalizers):
            return True
        if isinstance(item, PodGroup | CompositePodGroup) and is_protected(self._state, item, rings, gone):
            return True
        return self._is_blocked(key, item, gone)

    def _is_blocked(self, key: ObjectKey, item: ClusterObject, gone: dict[ObjectKey, None]) -> bool:
        """Whether a foreground deletion waits for a dependent that is on its way out, but not gone."""
        if key in self._wanted:
            waits = self._rules.propagation is Propagation.FOREGROUND and not self._rules.force
        else:
            waits = FOREGROUND_DELETION in item.finalizers
        return waits and any(self._blocks(each, item.uid, gone) for each in self._state.dependents(item.uid))

    def _blocks(self, key: ObjectKey, owner_uid: str, gone: dict[ObjectKey, None]) -> bool:
        dependent = self._state.get(key)
        if dependent is None or key in gone or not blocks(dependent, owner_uid):
            return False
        return key in self._wanted or dependent.deletion_us is not None

    def _strip(self, key: ObjectKey, owners: set[str]) -> None:
        item = self._state.objects[key.kind][key.namespace, key.name]
        references = tuple(each for each in item.owner_references if each.uid not in owners)
        stripped = replace(item, owner_references=references, resource_version=self._mutation.revision)
        if isinstance(stripped, Pod | PodGroup | CompositePodGroup):
            self._mutation.restate(stripped)
        else:
            self._mutation.put(stripped)

    def _mark(self, key: ObjectKey) -> None:
        """Set the deletion mark, or shorten it; an object that is marked alike already is not written."""
        item = self._state.objects[key.kind][key.namespace, key.name]
        grace = self._rules.grace_of(item) if isinstance(item, Pod) else None
        until_us = self._mutation.now_us + (grace or 0) * SECOND_US
        if item.deletion_us is not None and item.deletion_us <= until_us:
            until_us, grace = item.deletion_us, item.deletion_grace_seconds
        finalizers = tuple(each for each in item.finalizers if each != FOREGROUND_DELETION)
        if self._is_blocked(key, item, self._gone):
            finalizers = (*finalizers, FOREGROUND_DELETION)
        marked = varied(item, deletion_us=until_us, deletion_grace_seconds=grace, finalizers=finalizers)
        if marked != item:
            self._mutation.put(varied(marked, resource_version=self._mutation.revision))
