"""A call whose pods are taken in runs does what it does when they are taken one by one."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from muster.engine.api import ApplyCall, ObjectRefusal
from muster.engine.applying import ApplyPlan, answer_of, stateless_faults
from muster.engine.errors import Refusal
from muster.engine.mutation import Mutation
from muster.engine.pod_runs import LEAST_PODS, LikePods, pod_runs
from muster.model.group import PodGroup
from muster.model.meta import OwnerReference
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch, PodSpec
from muster.model.priority import PriorityClass
from muster.model.variations import varied
from muster.validation.objects import Rules
from muster.validation.violations import INVALID, Violation
from tests.engine.small_cluster import SmallCluster, pod, pod_group
from tests.fakes.ids import FakeIds

Sent = Sequence[ClusterObject | PodBatch | None]

TEMPLATE = Pod(name="pod-0", group="gang")
RUN = [replace(TEMPLATE, name=f"pod-{number}") for number in range(LEAST_PODS)]
OTHERS = [replace(each, group="other", name=f"other-{each.name}") for each in RUN]
GANG = pod_group("gang")
OWNER = OwnerReference(api_version="v1", kind="Pod", name="pod-1", uid="u")


def changed(place: int, **fields: object) -> list[Pod]:
    """The run with one pod of it that differs."""
    return [*RUN[:place], varied(RUN[place], **fields), *RUN[place + 1 :]]


MEMBER = replace(TEMPLATE, spec=PodSpec(scheduler_name="default-scheduler"))


def small_gang(number: int) -> list[ClusterObject]:
    name = f"gang-{number}"
    pods = (replace(MEMBER, name=f"{number}-{pod}", group=name) for pod in range(2))
    return [PodGroup(name=name, spec=GANG.spec), *pods]


ODD = {"odd": "yes"}
GANGS = [each for number in range(2 * LEAST_PODS) for each in small_gang(number)]

SENT: dict[str, Sent] = {
    "small gangs": GANGS,
    "small gangs that are short of members": [
        replace(each, spec=pod_group("", minimum=3).spec) if isinstance(each, PodGroup) else each
        for each in GANGS
    ],
    "small gangs without a parent": [
        replace(each, spec=pod_group("", parent="root").spec) if isinstance(each, PodGroup) else each
        for each in GANGS
    ],
    "small gangs of two kinds": [
        replace(each, labels=ODD) if place % 2 else each for place, each in enumerate(GANGS)
    ],
    "small gangs and others between": [
        *GANGS[:4],
        Pod(name="alone"),
        *GANGS[4:9],
        PriorityClass(name="p", value=1),
        *GANGS[9:],
    ],
    "a pod of a gang by itself before": [Pod(name="3-1", labels={"a": "b"}), *GANGS],
    "a pod of a gang by itself behind": [*GANGS, Pod(name="3-1", labels={"a": "b"})],
    "a batch that has a pod of a gang": [*GANGS, PodBatch(replace(TEMPLATE, name=""), ("1-0", "x"))],
    "a gang twice": [*GANGS, *GANGS[3:6]],
    "a wrong group": [*GANGS, *(replace(each, group="Odd_") for each in RUN)],
    "a group that is stale": [*GANGS, PodGroup(name="stale", resource_version=3)],
    "a gang": [GANG, *RUN],
    "two gangs": [*RUN, *OTHERS],
    "an object between": [*RUN, GANG, *OTHERS],
    "one that was refused": [None, *RUN],
    "a wrong name": changed(3, name="Wrong_"),
    "wrong in all": [replace(each, status=replace(each.status, phase="Odd")) for each in RUN],
    "a name twice": [*RUN, RUN[3], *OTHERS],
    "a name twice in a run": changed(3, name="pod-5"),
    "a run twice": [*RUN, GANG, *RUN],
    "its batch before": [PodBatch(replace(TEMPLATE, name=""), ("pod-1", "x")), *RUN],
    "a uid": changed(4, uid="uid-4"),
    "a revision": changed(4, resource_version=1),
    "owners": [replace(each, owner_references=(OWNER,)) for each in RUN],
    "an unknown priority": [
        replace(each, spec=replace(each.spec, priority_class_name="none")) for each in RUN
    ],
    "a priority that comes with it": [
        PriorityClass(name="high", value=7),
        *(replace(each, spec=replace(TEMPLATE.spec, priority_class_name="high")) for each in RUN),
    ],
}


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
@pytest.mark.parametrize("stored", [(), (pod("pod-7"),)], ids=["new", "one is stored"])
def test_runs_do_what_single_pods_do(sent: Sent, stored: tuple[Pod, ...]) -> None:
    assert outcome(sent, stored, in_runs=True) == outcome(sent, stored, in_runs=False)


def test_pods_that_share_all_but_names_and_groups_are_alike_and_those_of_one_group_a_run() -> None:
    assert pod_runs([GANG, *RUN[:3], GANG, *RUN[3:], *OTHERS]) == [
        LikePods([*RUN, *OTHERS], {1: RUN[:3], 5: RUN[3:], 2 + LEAST_PODS: OTHERS})
    ]


def test_pods_of_two_kinds_are_alike_kind_by_kind() -> None:
    labels = {"kind": "other"}
    others = [varied(each, labels=labels) for each in OTHERS]
    mixed = [each for pair in zip(RUN, others, strict=True) for each in pair]

    assert pod_runs(mixed) == [
        LikePods(RUN, {2 * place: [each] for place, each in enumerate(RUN)}),
        LikePods(others, {2 * place + 1: [each] for place, each in enumerate(others)}),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        RUN[:-1],
        changed(2, gates=("a/b",)),
        changed(2, node_name="node"),
        changed(2, labels={"a": "b"}),
        changed(2, namespace="apart"),
        [replace(each, uid="u") for each in RUN],
    ],
    ids=["few", "gates", "node", "labels", "namespace", "uids"],
)
def test_others_are_none(sent: Sent) -> None:
    assert not pod_runs(sent)


def outcome(sent: Sent, stored: Sequence[Pod], *, in_runs: bool) -> tuple[object, ...]:
    """What the call is answered, or refused for, and what it writes."""
    small = SmallCluster(*stored)
    paths = [f"objects[{index}]." for index in range(len(sent))]
    refusals = [
        ObjectRefusal(index, (Violation("", INVALID, "is none"),))
        for index, each in enumerate(sent)
        if each is None
    ]
    call = ApplyCall("default", sent, paths, refusals, runs=pod_runs(sent) if in_runs else ())
    faults = asyncio.run(stateless_faults(call, Rules()))
    mutation = Mutation(small.cluster, small.now_us)
    plan = ApplyPlan(small.cluster, call, small.now_us, FakeIds())
    try:
        admitted = asyncio.run(plan.admit(faults))
    except Refusal as refusal:
        return type(refusal), vars(refusal)
    plan.write(admitted, mutation)
    mutation.finish()
    writes = small.cluster.writes()
    return answer_of(call, admitted, mutation.revision), writes.puts, writes.entries
