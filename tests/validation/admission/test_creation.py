from dataclasses import replace

import pytest

from muster.model.disruption import DisruptionStatus
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import ORDINAL_BITS, Condition
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from muster.model.priority import PriorityClass
from muster.validation.admission import Conflict, SpecMemo, admit
from tests.validation.admission.applying import HIGH, USUAL, admitted, context, created, refused, respec
from tests.validation.examples import ALL, BUDGET, CLASS, COMPOSITE, NODE, POD, POD_GROUP, SINGLE, WORKLOAD
from tests.validation.examples import with_group_spec as with_spec

KINDS = [NODE, POD, POD_GROUP, COMPOSITE, WORKLOAD, CLASS, BUDGET]
CONDITIONS = (Condition("PodScheduled", "True"),)

each_kind = pytest.mark.parametrize("sent", KINDS, ids=lambda each: type(each).__name__)
each_group = pytest.mark.parametrize("group", [POD_GROUP, COMPOSITE], ids=lambda each: type(each).__name__)


@each_kind
def test_a_new_object_gets_what_the_server_owns(sent: ClusterObject) -> None:
    stored = created(replace(sent, generation=7, creation_us=1, deletion_us=1, deletion_grace_seconds=1))

    assert (stored.uid, stored.resource_version, stored.generation) == ("made", 5, 1)
    assert (stored.creation_us, stored.deletion_us, stored.deletion_grace_seconds) == (1_000, None, None)


@each_kind
def test_a_new_object_keeps_the_uid_and_metadata_that_it_brings(sent: ClusterObject) -> None:
    stored = created(replace(sent, uid="mine", labels={"a": "b"}, finalizers=("x/y",)))

    assert (stored.uid, stored.labels, stored.finalizers) == ("mine", {"a": "b"}, ("x/y",))


def test_objects_of_one_call_are_ordered_by_revision_and_place() -> None:
    call = context(revision=3)

    ordinals = [admitted(each, admit(each, None, call)).ordinal for each in (NODE, POD, POD_GROUP)]

    assert ordinals == [3 << ORDINAL_BITS, (3 << ORDINAL_BITS) + 1, (3 << ORDINAL_BITS) + 2]


def test_namespaced_objects_fall_into_the_default_namespace() -> None:
    assert created(replace(POD, namespace="")).namespace == "default"
    assert created(replace(POD_GROUP, namespace="")).namespace == "default"
    assert created(replace(POD, namespace="team")).namespace == "team"


def test_cluster_scoped_objects_have_no_namespace() -> None:
    assert created(NODE).namespace == ""


@each_kind
def test_a_revision_of_an_object_that_does_not_exist_is_a_conflict(sent: ClusterObject) -> None:
    answer = admit(replace(sent, resource_version=4), None, context())

    assert isinstance(answer, Conflict)
    assert answer.type == "RESOURCE_VERSION_MISMATCH"


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        pytest.param({"cpu": "8", "pods": "20"}, {}, {"cpu": "8", "pods": "20"}, id="from capacity"),
        pytest.param({"cpu": "8"}, {}, {"cpu": "8", "pods": "110"}, id="from capacity without pods"),
        pytest.param({"cpu": "8"}, {"cpu": "7"}, {"cpu": "7", "pods": "110"}, id="sent without pods"),
        pytest.param({}, {"cpu": "7", "pods": "5"}, {"cpu": "7", "pods": "5"}, id="sent"),
        pytest.param({}, {}, {"pods": "110"}, id="nothing sent"),
    ],
)
def test_a_new_node_gets_allocatable_amounts(
    capacity: dict[str, str], allocatable: dict[str, str], expected: dict[str, str]
) -> None:
    stored = created(replace(NODE, capacity=capacity, allocatable=allocatable))

    assert stored.allocatable == expected
    assert stored.capacity == capacity


def test_status_that_the_server_owns_is_ignored() -> None:
    assert created(replace(NODE, conditions=CONDITIONS)).conditions == ()
    assert created(replace(POD_GROUP, conditions=CONDITIONS)).conditions == ()
    assert created(replace(BUDGET, status=DisruptionStatus(1, 2, 3, 4))).status == DisruptionStatus()


def test_a_new_pod_keeps_the_status_that_its_client_owns() -> None:
    sent = PodStatus("Running", CONDITIONS, "node-2", 17, "Started", "up")

    assert created(replace(POD, status=sent)).status == PodStatus("Running", (), "", 17, "Started", "up")


def test_a_new_pod_without_a_phase_is_pending() -> None:
    assert created(replace(POD, status=PodStatus(phase=""))).status == PodStatus("Pending")


@each_group
def test_a_new_group_is_disrupted_singly_unless_it_says_otherwise(
    group: PodGroup | CompositePodGroup,
) -> None:
    assert created(group).spec.disruption_mode == SINGLE
    assert created(with_spec(group, disruption_mode=ALL)).spec.disruption_mode == ALL


def _prioritised(
    sent: ClusterObject, name: str, number: int | None, policy: str | None
) -> Pod | PodGroup | CompositePodGroup:
    assert isinstance(sent, Pod | PodGroup | CompositePodGroup)
    fields = {"priority_class_name": name, "priority": number, "preemption_policy": policy}
    return respec(sent, **fields) if isinstance(sent, Pod) else with_spec(sent, **fields)


each_prioritised = pytest.mark.parametrize(
    "kind", [POD, POD_GROUP, COMPOSITE], ids=lambda each: type(each).__name__
)


@each_prioritised
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(("high", None, None), ("high", 1000, "Never"), id="class"),
        pytest.param(("high", 1000, None), ("high", 1000, "Never"), id="class and its number"),
        pytest.param(
            ("high", None, "PreemptLowerPriority"), ("high", 1000, "PreemptLowerPriority"), id="own policy"
        ),
        pytest.param(("", -3, None), ("", -3, "PreemptLowerPriority"), id="number"),
        pytest.param(("", -3, "Never"), ("", -3, "Never"), id="number and policy"),
        pytest.param(("gone", 4, None), ("gone", 4, "PreemptLowerPriority"), id="unknown class and number"),
        pytest.param(("", None, None), ("usual", 7, "PreemptLowerPriority"), id="global default"),
        pytest.param(
            ("system-node-critical", None, None),
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="built-in class",
        ),
    ],
)
def test_priority_is_resolved_at_creation(
    kind: ClusterObject, asked: tuple[str, int | None, str | None], expected: tuple[str, int, str]
) -> None:
    spec = created(_prioritised(kind, *asked), HIGH, USUAL).spec

    assert (spec.priority_class_name, spec.priority, spec.preemption_policy) == expected


@each_prioritised
def test_without_a_global_default_the_priority_is_zero(kind: ClusterObject) -> None:
    spec = created(_prioritised(kind, "", None, None), HIGH).spec

    assert (spec.priority_class_name, spec.priority, spec.preemption_policy) == (
        "",
        0,
        "PreemptLowerPriority",
    )


@each_prioritised
@pytest.mark.parametrize(
    ("name", "number", "field"),
    [
        pytest.param("gone", None, "spec.priorityClassName", id="unknown class alone"),
        pytest.param("high", 999, "spec.priority", id="class and another number"),
    ],
)
def test_a_priority_that_cannot_be_resolved_is_refused(
    kind: ClusterObject, name: str, number: int | None, field: str
) -> None:
    answer = admit(_prioritised(kind, name, number, None), None, context(HIGH, USUAL))

    assert refused(answer) == [(field, "INVALID")]


def test_classes_of_templates_are_not_resolved() -> None:
    assert created(WORKLOAD).spec == WORKLOAD.spec


def test_a_new_class_preempts_unless_it_says_otherwise() -> None:
    assert created(CLASS).preemption_policy == "PreemptLowerPriority"
    assert created(replace(CLASS, preemption_policy="Never")).preemption_policy == "Never"


def test_two_classes_cannot_be_the_global_default() -> None:
    sent = replace(CLASS, global_default=True)

    answer = admit(sent, None, context(USUAL, sent))

    assert refused(answer) == [("globalDefault", "INVALID")]


def test_the_default_may_pass_from_one_class_to_another_in_one_call() -> None:
    sent = replace(CLASS, global_default=True)
    classes = context(USUAL).classes.with_written([replace(USUAL, global_default=False), sent])

    answer = admit(sent, None, replace(context(), classes=classes))

    assert admitted(sent, answer).global_default


def test_a_class_of_the_same_call_resolves_a_priority() -> None:
    classes = context().classes.with_written([HIGH])

    answer = admit(respec(POD, priority_class_name="high"), None, replace(context(), classes=classes))

    assert admitted(POD, answer).spec.priority == 1000


def test_a_refusal_names_the_object() -> None:
    answer = admit(respec(POD, priority_class_name="gone"), None, context())

    assert not isinstance(answer, Conflict)
    assert "Pod default/p-0: " in str(answer)


def test_pods_of_one_spec_share_the_resolved_one_over_calls() -> None:
    memo = SpecMemo()

    first = admit(POD, None, context(HIGH, memo=memo))
    second = admit(replace(POD, name="p-1"), None, context(memo=memo))

    assert admitted(POD, first).spec is admitted(POD, second).spec
    assert admitted(POD, first).labels is POD.labels


def test_a_new_class_is_seen_by_pods_of_a_spec_that_was_resolved_before() -> None:
    memo = SpecMemo()
    default = PriorityClass(name="d", value=3, global_default=True)
    admit(POD, None, context(memo=memo))

    later = admit(POD, None, context(default, memo=memo))

    assert admitted(POD, later).spec.priority == 3
