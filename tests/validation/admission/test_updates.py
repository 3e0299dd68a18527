from dataclasses import replace
from typing import Any

import pytest

from muster.model.disruption import DisruptionStatus
from muster.model.group import CompositePodGroup, PodGroup, WorkloadReference
from muster.model.meta import Condition, LabelSelector, OwnerReference
from muster.model.node import Taint
from muster.model.objects import ClusterObject
from muster.model.pod import (
    Affinity,
    Container,
    Pod,
    PodStatus,
    Resources,
    Toleration,
    TopologySpreadConstraint,
)
from muster.model.workload import ControllerReference
from muster.validation.admission import Conflict, Outcome, admit
from tests.validation.admission.applying import USUAL, context, created, outcome, refused, respec, updated
from tests.validation.examples import (
    ALL,
    BASIC,
    BUDGET,
    CLASS,
    COMPOSITE,
    NODE,
    POD,
    POD_GROUP,
    WORKLOAD,
    gang,
    leaf,
)
from tests.validation.examples import with_group_spec as with_spec

KINDS = [NODE, POD, POD_GROUP, COMPOSITE, WORKLOAD, CLASS, BUDGET]
CONDITIONS = (Condition("PodScheduled", "True"),)
TOLERATION = Toleration("extra", "Exists")
OWNER = OwnerReference("batch/v1", "Job", "training", "u-1")

each_kind = pytest.mark.parametrize("sent", KINDS, ids=lambda each: type(each).__name__)
each_group = pytest.mark.parametrize("group", [POD_GROUP, COMPOSITE], ids=lambda each: type(each).__name__)


def _over(sent: ClusterObject, stored: ClusterObject) -> list[tuple[str, str]]:
    return refused(admit(sent, stored, context(revision=9)))


@each_kind
def test_the_same_object_again_changes_nothing(sent: ClusterObject) -> None:
    stored = created(sent)

    answer = admit(sent, stored, context(revision=9))

    assert answer == (stored, Outcome.UNCHANGED)


@each_kind
def test_an_object_that_was_read_and_sent_back_changes_nothing(sent: ClusterObject) -> None:
    stored = created(sent)

    assert outcome(replace(stored), stored) is Outcome.UNCHANGED


@each_kind
def test_metadata_is_replaced_and_what_the_server_owns_stays(sent: ClusterObject) -> None:
    stored = created(sent)

    new = updated(
        replace(
            sent,
            labels={"a": "b"},
            annotations={"c": "d"},
            owner_references=(OWNER,),
            finalizers=("x/y",),
        ),
        stored,
    )

    assert (new.labels, new.annotations) == ({"a": "b"}, {"c": "d"})
    assert (new.owner_references, new.finalizers) == ((OWNER,), ("x/y",))
    assert (new.uid, new.ordinal, new.creation_us) == (stored.uid, stored.ordinal, stored.creation_us)
    assert (new.resource_version, new.generation) == (9, 1)


@each_kind
def test_labels_that_are_left_out_are_gone(sent: ClusterObject) -> None:
    stored = created(replace(sent, labels={"a": "b"}))

    assert updated(replace(sent, labels={}), stored).labels == {}


@each_kind
@pytest.mark.parametrize(
    ("fields", "conflict"),
    [
        pytest.param({"uid": "other"}, "UID_MISMATCH", id="another uid"),
        pytest.param({"resource_version": 4}, "RESOURCE_VERSION_MISMATCH", id="an older revision"),
    ],
)
def test_a_precondition_that_does_not_hold_is_a_conflict(
    sent: ClusterObject, fields: dict[str, Any], conflict: str
) -> None:
    stored = created(sent)

    answer = admit(replace(sent, **fields), stored, context())

    assert isinstance(answer, Conflict)
    assert (answer.type, answer.subject) == (conflict, str(stored.key))


@each_kind
def test_preconditions_that_hold_are_no_conflict(sent: ClusterObject) -> None:
    stored = created(sent)

    assert outcome(replace(sent, uid="made", resource_version=5), stored) is Outcome.UNCHANGED


@each_kind
def test_an_object_that_is_being_deleted_takes_no_update(sent: ClusterObject) -> None:
    answer = admit(sent, replace(created(sent), deletion_us=1), context())

    assert isinstance(answer, Conflict)
    assert answer.type == "OBJECT_DELETING"


def test_everything_of_a_node_may_change() -> None:
    sent = replace(
        NODE,
        unschedulable=True,
        taints=(Taint("a", "", "NoExecute"),),
        capacity={"cpu": "16"},
        allocatable={"cpu": "15", "pods": "9"},
    )

    new = updated(sent, created(NODE))

    assert (new.unschedulable, new.taints) == (True, sent.taints)
    assert (new.capacity, new.allocatable) == (sent.capacity, sent.allocatable)
    assert new.generation == 2


def test_amounts_of_a_node_that_are_left_out_stay() -> None:
    stored = created(replace(NODE, allocatable={"cpu": "7", "pods": "9"}))

    assert outcome(replace(NODE, capacity={}, allocatable={}), stored) is Outcome.UNCHANGED


def test_allocatable_amounts_that_came_from_the_capacity_follow_it() -> None:
    new = updated(replace(NODE, capacity={"cpu": "16"}), created(NODE))

    assert new.allocatable == {"cpu": "16", "pods": "110"}


def test_allocatable_amounts_that_were_sent_do_not_follow_the_capacity() -> None:
    stored = created(replace(NODE, allocatable={"cpu": "7", "pods": "9"}))

    new = updated(replace(NODE, capacity={"cpu": "16"}), stored)

    assert new.allocatable == {"cpu": "7", "pods": "9"}


def test_amounts_of_a_node_are_no_spec() -> None:
    assert updated(replace(NODE, capacity={"cpu": "16"}), created(NODE)).generation == 1


def test_conditions_in_a_request_do_not_replace_the_stored_ones() -> None:
    stored = replace(created(POD_GROUP), conditions=CONDITIONS)

    assert outcome(POD_GROUP, stored) is Outcome.UNCHANGED


@each_group
def test_the_minimum_of_a_gang_may_change(group: PodGroup | CompositePodGroup) -> None:
    new = updated(with_spec(group, scheduling_policy=gang(5)), created(group))

    assert new.spec.required_minimum == 5
    assert new.generation == 2


@each_group
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param(
            {"parent_composite_pod_group_name": "x"}, "spec.parentCompositePodGroupName", id="parent"
        ),
        pytest.param({"workload_ref": WorkloadReference("x", "y")}, "spec.workloadRef", id="workload"),
        pytest.param({"scheduling_policy": BASIC}, "spec.schedulingPolicy", id="policy"),
        pytest.param({"topology": ("x/y",)}, "spec.schedulingConstraints.topology", id="topology"),
        pytest.param({"disruption_mode": ALL}, "spec.disruptionMode", id="disruption mode"),
        pytest.param({"priority_class_name": "x"}, "spec.priorityClassName", id="class"),
        pytest.param({"priority": 3}, "spec.priority", id="priority"),
        pytest.param({"preemption_policy": "Never"}, "spec.preemptionPolicy", id="preemption policy"),
    ],
)
def test_all_else_of_a_group_is_immutable(
    group: PodGroup | CompositePodGroup, fields: dict[str, Any], path: str
) -> None:
    assert _over(with_spec(group, **fields), created(group)) == [(path, "IMMUTABLE")]


@pytest.mark.parametrize("sent", [POD, POD_GROUP, COMPOSITE], ids=lambda each: type(each).__name__)
def test_a_priority_is_not_resolved_again(sent: ClusterObject) -> None:
    stored = created(sent)

    assert admit(sent, stored, context(USUAL, revision=9)) == (stored, Outcome.UNCHANGED)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param(
            {"controller_ref": ControllerReference("", "x", "y")}, "spec.controllerRef", id="controller"
        ),
        pytest.param({"pod_group_templates": (leaf("x"),)}, "spec.podGroupTemplates", id="leaves"),
        pytest.param(
            {"composite_pod_group_templates": ()}, "spec.compositePodGroupTemplates", id="composites"
        ),
    ],
)
def test_nothing_of_a_workload_may_change(fields: dict[str, Any], path: str) -> None:
    sent = replace(WORKLOAD, spec=replace(WORKLOAD.spec, **fields))

    assert _over(sent, created(WORKLOAD)) == [(path, "IMMUTABLE")]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"value": 1}, "value", id="value"),
        pytest.param({"preemption_policy": "Never"}, "preemptionPolicy", id="preemption policy"),
    ],
)
def test_value_and_policy_of_a_class_never_change(fields: dict[str, Any], path: str) -> None:
    assert _over(replace(CLASS, **fields), created(CLASS)) == [(path, "IMMUTABLE")]


def test_description_and_default_of_a_class_may_change() -> None:
    new = updated(replace(CLASS, description="for all", global_default=True), created(CLASS))

    assert (new.description, new.global_default, new.generation) == ("for all", True, 2)


def test_an_update_may_not_make_a_second_default() -> None:
    answer = admit(replace(CLASS, global_default=True), created(CLASS), context(USUAL))

    assert refused(answer) == [("globalDefault", "INVALID")]


def test_everything_of_a_budget_may_change_but_its_status() -> None:
    stored = replace(created(BUDGET), status=DisruptionStatus(1, 2, 3, 4))
    sent = replace(BUDGET, min_available=None, max_unavailable="5%", selector=LabelSelector())

    new = updated(sent, stored)

    assert (new.min_available, new.max_unavailable, new.selector) == (None, "5%", LabelSelector())
    assert new.status == DisruptionStatus(1, 2, 3, 4)
    assert new.generation == 2


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        pytest.param(replace(POD, group="other"), "spec.schedulingGroup.podGroupName", id="group"),
        pytest.param(replace(POD, group=""), "spec.schedulingGroup.podGroupName", id="no group"),
        pytest.param(replace(POD, gates=("a/b", "c/d")), "spec.schedulingGates", id="another gate"),
        pytest.param(respec(POD, containers=()), "spec.containers", id="containers"),
        pytest.param(
            respec(POD, init_containers=(Container(),)), "spec.initContainers", id="init containers"
        ),
        pytest.param(respec(POD, overhead={"cpu": "1"}), "spec.overhead", id="overhead"),
        pytest.param(respec(POD, resources=Resources()), "spec.resources", id="resources"),
        pytest.param(respec(POD, node_selector={"a": "b"}), "spec.nodeSelector", id="node selector"),
        pytest.param(respec(POD, affinity=Affinity()), "spec.affinity", id="affinity"),
        pytest.param(respec(POD, tolerations=(TOLERATION,)), "spec.tolerations", id="toleration gone"),
        pytest.param(
            respec(POD, topology_spread_constraints=(TopologySpreadConstraint(),)),
            "spec.topologySpreadConstraints",
            id="spread",
        ),
        pytest.param(respec(POD, priority_class_name="x"), "spec.priorityClassName", id="class"),
        pytest.param(respec(POD, priority=3), "spec.priority", id="priority"),
        pytest.param(respec(POD, preemption_policy="Never"), "spec.preemptionPolicy", id="preemption policy"),
        pytest.param(respec(POD, scheduler_name="x"), "spec.schedulerName", id="scheduler"),
        pytest.param(
            respec(POD, termination_grace_period_seconds=5), "spec.terminationGracePeriodSeconds", id="grace"
        ),
        pytest.param(respec(POD, host_network=True), "spec.hostNetwork", id="host network"),
    ],
)
def test_most_of_a_pod_is_immutable(sent: Pod, path: str) -> None:
    stored = created(replace(POD, gates=("a/b",)))

    assert _over(sent, stored) == [(path, "IMMUTABLE")]


def test_every_immutable_field_that_differs_is_named() -> None:
    sent = replace(respec(POD, priority=3, host_network=True), group="other")

    assert [path for path, _ in _over(sent, created(POD))] == [
        "spec.schedulingGroup.podGroupName",
        "spec.priority",
        "spec.hostNetwork",
    ]


def test_gates_of_a_pod_may_go() -> None:
    new = updated(replace(POD, gates=("c/d",)), created(replace(POD, gates=("a/b", "c/d"))))

    assert new.gates == ("c/d",)
    assert new.generation == 2


def test_tolerations_of_a_pod_may_come() -> None:
    new = updated(respec(POD, tolerations=(*POD.spec.tolerations, TOLERATION)), created(POD))

    assert new.spec.tolerations == (*POD.spec.tolerations, TOLERATION)
    assert new.spec.priority == 0
    assert new.generation == 2


def test_the_order_of_tolerations_means_nothing() -> None:
    stored = created(respec(POD, tolerations=(*POD.spec.tolerations, TOLERATION)))

    assert outcome(respec(POD, tolerations=(TOLERATION, *POD.spec.tolerations)), stored) is Outcome.UNCHANGED


def test_a_pod_may_be_bound_by_another() -> None:
    new = updated(replace(POD, node_name="node-1"), created(POD))

    assert new.node_name == "node-1"


def test_a_bound_pod_stays_on_its_node() -> None:
    stored = created(replace(POD, node_name="node-1"))

    assert outcome(POD, stored) is Outcome.UNCHANGED
    assert _over(replace(POD, node_name="node-2"), stored) == [("spec.nodeName", "IMMUTABLE")]


def test_equal_quantities_in_another_spelling_are_no_change() -> None:
    container = Container(
        "main", Resources({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "2", "example.com/gpu": "1"})
    )

    assert outcome(respec(POD, containers=(container,)), created(POD)) is Outcome.UNCHANGED


def test_a_grace_period_of_zero_is_the_same_as_none() -> None:
    assert outcome(respec(POD, termination_grace_period_seconds=0), created(POD)) is Outcome.UNCHANGED


def test_status_that_a_client_owns_is_taken_when_sent() -> None:
    stored = replace(created(POD), status=PodStatus("Pending", CONDITIONS, "node-2"))

    new = updated(replace(POD, status=PodStatus("Running", (), "", 17, "Started", "up")), stored)

    assert new.status == PodStatus("Running", CONDITIONS, "node-2", 17, "Started", "up")
    assert new.generation == 1


def test_status_that_is_left_out_stays() -> None:
    stored = created(replace(POD, status=PodStatus("Running", (), "", 17, "Started", "up")))

    assert outcome(replace(POD, status=PodStatus(phase="")), stored) is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("before", "after"),
    [("Running", "Pending"), ("Succeeded", "Running"), ("Failed", "Succeeded"), ("Succeeded", "Unknown")],
)
def test_a_phase_never_goes_back(before: str, after: str) -> None:
    stored = created(replace(POD, status=PodStatus(before)))

    assert _over(replace(POD, status=PodStatus(after)), stored) == [("status.phase", "IMMUTABLE")]


@pytest.mark.parametrize(
    ("before", "after"),
    [("Pending", "Running"), ("Pending", "Failed"), ("Running", "Unknown"), ("Unknown", "Running")],
)
def test_a_phase_goes_on(before: str, after: str) -> None:
    stored = created(replace(POD, status=PodStatus(before)))

    assert updated(replace(POD, status=PodStatus(after)), stored).status.phase == after
