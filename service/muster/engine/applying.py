"""Apply as one revision: every object is admitted or the call is refused whole, with all faults and conflicts named.

Stateless faults come from `validation.validate`, looked for before; here are those that need the cluster: what is
immutable, stale, being deleted, given twice in the call, or its own owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeGuard

from muster.engine.api import AppliedObject, ApplyAnswer, ApplyCall
from muster.engine.call_objects import CallObjects
from muster.engine.call_uids import repeated_uids
from muster.engine.cluster import Cluster
from muster.engine.conditions import PodConditions
from muster.engine.errors import ConflictError, FailedPreconditionError, InvalidArgumentError, Precondition
from muster.engine.mutation import Mutation
from muster.engine.ports import Ids
from muster.engine.slices import Slices
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.priority import PriorityClass
from muster.model.variations import varied
from muster.validation.admission import (
    AdmissionContext,
    Admitted,
    Answer,
    Conflict,
    NewPods,
    Outcome,
    PriorityClasses,
    Rejected,
    admit,
    admit_batch,
    create_batch,
    create_group,
    create_pod,
    create_run,
    new_pod,
)
from muster.validation.objects import Rules, key_of, validate
from muster.validation.violations import DUPLICATE, INVALID, Violation

_applied: Callable[[tuple[object, ...]], AppliedObject] = partial(tuple.__new__, AppliedObject)

Accepted = list[Admitted] | NewPods
"""What one object of a call becomes: several if it is a batch, none if it was refused. Or what the pods of a run become."""

_NewRun = tuple[Pod, Sequence[Pod]]
"""What new pods are to be made of, and the pods."""

_MARKED = ("OBJECT_DELETING",)


class ApplyPlan:
    """The admission of one call to the next revision of a cluster. Nothing changes before `write`."""

    def __init__(self, cluster: Cluster, call: ApplyCall, now_us: int, ids: Ids) -> None:
        self.cluster = cluster
        self.revision = cluster.state.revision + 1
        self._known_pod = cluster.state.pod
        self._call = call
        self._types = set(map(type, call.objects))
        self._seen = CallObjects()
        self._conditions = PodConditions(now_us)
        self._faults: list[Violation] = []
        self._conflicts: list[Conflict] = []
        self._context = AdmissionContext(
            revision=self.revision,
            time_us=now_us,
            make_uid=ids.uid,
            make_uids=ids.uids,
            classes=self._classes(),
            memo=cluster.spec_memo,
        )

    async def admit(self, stateless: Mapping[int, list[Violation]]) -> list[Accepted]:
        """What each object of the call becomes. Raises the refusal that names every fault, or every conflict.

        Gives way to others now and then, and is worth nothing if the cluster has another revision after that.
        """
        admitted, slices = list[Accepted](), Slices()
        objects, runs, index = self._call.objects, self._new_runs() if not stateless else {}, 0
        while index < len(objects):
            run = runs.get(index)
            if run is not None and not self._seen.has_apart(run[0].namespace, run[1]):
                pods = self._create_run(*run)
                admitted.append(NewPods(pods))
                index += len(pods)
                continue
            if index in stateless:
                admitted.append(self._admit_one(index, objects[index], stateless[index]))
            else:
                admitted.append(self._admit_right(index, objects[index]))
            index += 1
            if slices.is_over:
                await slices.give_way()
        self._check_resources()
        if self._faults:
            first = self._faults[0]
            text = (
                f"{len(self._faults)} fault(s) in the objects, first {first.field}: {first.description}; "
                "nothing was stored"
            )
            raise InvalidArgumentError("INVALID_OBJECTS", text, self._faults)
        if self._conflicts:
            raise _refusal(self._conflicts)
        return admitted

    def write(self, admitted: list[Accepted], mutation: Mutation) -> None:
        """Put every object that differs from what is stored; at once new groups and pods that follow each other and want a node."""
        came = list[Pod | AnyGroup]()
        for answers in admitted:
            if isinstance(answers, NewPods) and not answers.pods[0].node_name:
                came += answers.pods
                continue
            for item, outcome in _each(answers):
                if outcome is Outcome.CREATED and _waits(item):
                    came.append(item)
                elif outcome is not Outcome.UNCHANGED:
                    if came:
                        mutation.add(came)
                        came = []
                    mutation.put(item)
        if came:
            mutation.add(came)

    def _admit_right(self, index: int, sent: ClusterObject | PodBatch | None) -> Accepted:
        """An object in which validation found no fault. Most are new pods, which have a shorter way."""
        if type(sent) is Pod:
            return self._admit_new_pod(index, sent)
        if type(sent) is PodBatch:
            return self._admit_new_batch(index, sent)
        if isinstance(sent, PodGroup | CompositePodGroup):
            return self._admit_new_group(index, sent)
        return self._admit_one(index, sent, [])

    def _admit_new_pod(self, index: int, sent: Pod) -> list[Admitted]:
        """As `_admit_one`, straight to the point where a right pod does not exist yet, as most in large calls."""
        known = self._known_pod(sent.namespace or DEFAULT_NAMESPACE, sent.name)
        if known is None and not sent.resource_version:
            created = create_pod(sent, sent.name, sent.uid, self._context)
            if isinstance(created, Pod):
                self._check_in_call(index, created, is_batch=False)
                return [Admitted(created, Outcome.CREATED)]
        return self._admit_one(index, sent, [])

    def _new_runs(self) -> dict[int, _NewRun]:
        """By their places, runs of pods of which none exists, or has the name of another in a run."""
        found: dict[int, _NewRun] = {}
        taken = defaultdict[str, set[str]](set)
        for like in self._call.runs:
            names = [pod.name for pod in like.pods]
            sample = new_pod(like.pods[0], self._context)
            if not isinstance(sample, Pod) or self.cluster.state.has_any_pod(sample.namespace, names):
                continue
            others = taken[sample.namespace]
            if len(set(names)) == len(names) and others.isdisjoint(names):
                others.update(names)
                found.update((place, (sample, run)) for place, run in like.runs.items())
        return found

    def _create_run(self, sample: Pod, run: Sequence[Pod]) -> list[Pod]:
        """As `_admit_new_pod` of each, in columns."""
        created = create_run(sample, [pod.name for pod in run], run[0].group, self._context)
        self._seen.add_run(created)
        return created

    def _admit_new_group(self, index: int, sent: AnyGroup) -> list[Admitted]:
        """As `_admit_one`, straight to the point where a right group does not exist yet."""
        known = self.cluster.state.objects[POD_GROUP if type(sent) is PodGroup else COMPOSITE_POD_GROUP]
        if not sent.resource_version and (sent.namespace or DEFAULT_NAMESPACE, sent.name) not in known:
            created = create_group(sent, self._context)
            if not isinstance(created, tuple):
                self._check_in_call(index, created, is_batch=False)
                return [Admitted(created, Outcome.CREATED)]
        return self._admit_one(index, sent, [])

    def _admit_new_batch(self, index: int, sent: PodBatch) -> Accepted:
        """As `_admit_one`, for a right batch, in columns if its pods are new and say no owner, as mostly."""
        names, namespace = sent.names, sent.template.namespace or DEFAULT_NAMESPACE
        is_owned = bool(sent.template.owner_references)
        if is_owned or self._stands_for_any(namespace, names):
            return self._admit_one(index, sent, [])
        created = create_batch(sent, self._context)
        if created is None:
            return self._admit_one(index, sent, [])
        self._seen.add_batch(created.pods)
        return created

    def _stands_for_any(self, namespace: str, names: Sequence[str]) -> bool:
        """Whether one of the pods exists, or stands in the call already."""
        return self.cluster.state.has_any_pod(namespace, names) or self._seen.has_any_pod(namespace, names)

    def _admit_one(
        self, index: int, sent: ClusterObject | PodBatch | None, faults: list[Violation]
    ) -> list[Admitted]:
        paths = self._call.paths
        if faults:
            self._faults.extend(fault._replace(field=paths[index] + fault.field) for fault in faults)
        if sent is None:
            refused = (each.violations for each in self._call.refusals if each.index == index)
            self._faults.extend(chain.from_iterable(refused))
            return []
        is_batch = isinstance(sent, PodBatch)
        answers = (
            admit_batch(sent, self._find, self._context)
            if isinstance(sent, PodBatch)
            else (self._admit_object(sent),)
        )
        admitted: list[Admitted] = []
        for answer in answers:
            if isinstance(answer, Admitted):
                self._check_in_call(index, answer.object, is_batch=is_batch)
                admitted.append(answer)
            elif isinstance(answer, Conflict):
                self._conflicts.append(answer)
            else:
                self._reject(paths[index], answer, faults)
        return admitted

    def _reject(self, path: str, answer: Rejected, known: list[Violation]) -> None:
        """Name what admission found, but for fields of which validation says already what is wrong."""
        fields = {fault.field for fault in known}
        self._faults.extend(
            fault._replace(field=path + fault.field)
            for fault in answer.violations
            if fault.field not in fields
        )

    def _admit_object(self, sent: ClusterObject) -> Answer:
        key = key_of(sent)
        stored = self._find(key)
        if stored is not None and stored.deletion_us is not None:
            return self._admit_marked(sent, stored)
        answer = admit(sent, stored, self._context)
        if isinstance(stored, Pod) and not stored.node_name and isinstance(answer, Admitted):
            return answer._replace(object=self._told_of_its_node(answer.object))
        return answer

    def _told_of_its_node(self, pod: ClusterObject) -> ClusterObject:
        """A pod that waited here; if another has bound it now, it says no more what it waits for."""
        if not isinstance(pod, Pod) or not pod.node_name or not pod.status.conditions:
            return pod
        conditions = self._conditions
        status = conditions.without_nomination(conditions.scheduled(pod.status, pod.generation))
        return varied(pod, status=status)

    def _admit_marked(self, sent: ClusterObject, stored: ClusterObject) -> Answer:
        """An object with a deletion mark takes no change but the removal of finalizers, which hold it back."""
        unmarked = replace(stored, deletion_us=None, deletion_grace_seconds=None)
        answer = admit(sent, unmarked, self._context)
        if isinstance(answer, Admitted) and set(answer.object.finalizers) < set(stored.finalizers):
            same = replace(
                answer.object, finalizers=stored.finalizers, resource_version=stored.resource_version
            )
            if same == unmarked:
                kept = replace(stored, finalizers=answer.object.finalizers, resource_version=self.revision)
                return Admitted(kept, answer.outcome)
        return admit(sent, stored, self._context)

    def _check_in_call(self, index: int, item: ClusterObject, *, is_batch: bool) -> None:
        key = item.key
        if self._seen.add(key, item) is not None:
            field = f"{self._call.paths[index]}{'names' if is_batch else 'metadata.name'}"
            self._faults.append(Violation(field, DUPLICATE, f"{key} stands in this call twice"))
        if item.owner_references and self._owns_itself(item):
            field = f"{self._call.paths[index]}{'template.' if is_batch else ''}metadata.ownerReferences"
            self._faults.append(Violation(field, INVALID, f"{key} would own itself through its owners"))

    def _check_resources(self) -> None:
        """Whether the nodes of the call leave the resources of the cluster few enough."""
        if Node in self._types:
            each = zip(self._call.paths, self._call.objects, strict=True)
            nodes = [(path, sent) for path, sent in each if isinstance(sent, Node)]
            self._faults += self.cluster.state.offered_resources.faults(nodes)

    def _owns_itself(self, item: ClusterObject) -> bool:
        """Whether climbing owner references, with this call's objects in place, comes back to the object."""
        start = item.key
        stack, seen = [item], {start}
        while stack:
            for reference in stack.pop().owner_references:
                for namespace in {item.namespace, ""}:
                    key = ObjectKey(reference.kind, namespace, reference.name)
                    if key == start:
                        return True
                    owner = self._seen.get(key) or self._stored_owner(key)
                    if owner is not None and key not in seen and reference.uid in ("", owner.uid):
                        seen.add(key)
                        stack.append(owner)
        return False

    def _stored_owner(self, key: ObjectKey) -> ClusterObject | None:
        return self.cluster.state.get(key) if key.kind in self.cluster.state.objects else None

    def _find(self, key: ObjectKey) -> ClusterObject | None:
        return self.cluster.state.get(key)

    def _classes(self) -> PriorityClasses:
        classes, objects = self.cluster.priority_classes, self._call.objects
        is_any = PriorityClass in self._types
        written = [sent for sent in objects if isinstance(sent, PriorityClass)] if is_any else []
        return classes.with_written(written) if written else classes


def _waits(item: ClusterObject) -> TypeGuard[Pod | AnyGroup]:
    """Whether nothing else is concerned by the object, if it is new: a group, or a pod without a node."""
    return not item.node_name if isinstance(item, Pod) else isinstance(item, PodGroup | CompositePodGroup)


def _each(answers: Accepted) -> list[Admitted]:
    if isinstance(answers, NewPods):
        return [Admitted(pod, Outcome.CREATED) for pod in answers.pods]
    return answers


def answer_of(call: ApplyCall, admitted: list[Accepted], revision: int) -> ApplyAnswer:
    """The answer in request order; a batch counts, and its outcome is the strongest of its pods'."""
    results: list[AppliedObject] = []
    for answers in admitted:
        if type(call.objects[len(results)]) is PodBatch:
            results.append(_batch_result(answers))
        elif isinstance(answers, NewPods):
            results += map(_created, answers.pods)
        else:
            results.append(_result(answers[0]))
    return ApplyAnswer(revision, tuple(results))


def _created(pod: Pod) -> AppliedObject:
    return _applied((Outcome.CREATED, pod.uid, pod.resource_version, 0, 0, 0))


def _result(answer: Admitted) -> AppliedObject:
    return AppliedObject(answer.outcome, answer.object.uid, answer.object.resource_version)


def _batch_result(answers: Accepted) -> AppliedObject:
    if isinstance(answers, NewPods):
        return AppliedObject(Outcome.CREATED, "", answers.pods[0].resource_version, len(answers.pods), 0, 0)
    outcomes = [answer.outcome for answer in answers]
    created, updated = outcomes.count(Outcome.CREATED), outcomes.count(Outcome.UPDATED)
    strongest = Outcome.CREATED if created else Outcome.UPDATED if updated else Outcome.UNCHANGED
    version = max((answer.object.resource_version for answer in answers), default=0)
    return AppliedObject(strongest, "", version, created, updated, len(answers) - created - updated)


def _refusal(conflicts: list[Conflict]) -> ConflictError:
    preconditions = [Precondition(*conflict) for conflict in conflicts]
    marked = [each for each in preconditions if each.type in _MARKED]
    text = f"{len(preconditions)} object(s) stand in the way, the first: {preconditions[0].subject} {preconditions[0].description}"
    if marked and len(marked) == len(preconditions):
        return FailedPreconditionError("OBJECT_DELETING", text, preconditions)
    moved = next(each for each in preconditions if each.type not in _MARKED)
    return ConflictError(moved.type, text, preconditions)


def _places_of_right(call: ApplyCall, rules: Rules) -> set[int]:
    """Of pods in runs in which nothing is wrong."""
    right: set[int] = set()
    for like in call.runs:
        if rules.pods.are_right(like.pods):
            for start, run in like.runs.items():
                right.update(range(start, start + len(run)))
    return right


async def stateless_faults(call: ApplyCall, rules: Rules) -> dict[int, list[Violation]]:
    """What is wrong with each object by itself or beside the others, by its index; gives way to other calls now and then."""
    faults: dict[int, list[Violation]] = {}
    right, slices = _places_of_right(call, rules), Slices()
    for index, sent in enumerate(call.objects):
        if index in right:
            continue
        is_right = not rules.pods.pod_faults(sent) if type(sent) is Pod else sent is None
        if sent is not None and not is_right and (found := validate(sent, rules)):
            faults[index] = found
        if slices.is_over:
            await slices.give_way()
    for index, found in repeated_uids(call.objects):
        faults[index] = faults.get(index, []) + found
    return faults
