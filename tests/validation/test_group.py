from dataclasses import replace

import pytest

from muster.model.group import (
    AllDisruption,
    BasicPolicy,
    CompositePodGroup,
    DisruptionMode,
    GangPolicy,
    PodGroup,
    SchedulingPolicy,
    SingleDisruption,
    WorkloadReference,
)
from muster.validation.objects import Rules, validate
from tests.validation.examples import ALL, BASIC, COMPOSITE, POD_GROUP, SINGLE, faults, gang, with_group_spec

Group = PodGroup | CompositePodGroup
BOTH_POLICIES = SchedulingPolicy(BasicPolicy(), GangPolicy(2))
BOTH_MODES = DisruptionMode(SingleDisruption(), AllDisruption())


@pytest.mark.parametrize("group", [POD_GROUP, COMPOSITE], ids=["PodGroup", "CompositePodGroup"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"parent_composite_pod_group_name": "A", "workload_ref": WorkloadReference("w", "t")},
            ("spec.parentCompositePodGroupName", "INVALID"),
            id="parent's name",
        ),
        pytest.param(
            {"workload_ref": WorkloadReference("", "t")},
            ("spec.workloadRef.workloadName", "REQUIRED"),
            id="no workload",
        ),
        pytest.param(
            {"workload_ref": WorkloadReference("W", "t")},
            ("spec.workloadRef.workloadName", "INVALID"),
            id="workload's name",
        ),
        pytest.param(
            {"workload_ref": WorkloadReference("w.x", "")},
            ("spec.workloadRef.templateName", "REQUIRED"),
            id="no template",
        ),
        pytest.param(
            {"workload_ref": WorkloadReference("w", "t.x")},
            ("spec.workloadRef.templateName", "INVALID"),
            id="template's name",
        ),
        pytest.param(
            {"scheduling_policy": SchedulingPolicy()}, ("spec.schedulingPolicy", "REQUIRED"), id="no policy"
        ),
        pytest.param(
            {"scheduling_policy": BOTH_POLICIES}, ("spec.schedulingPolicy", "INVALID"), id="two policies"
        ),
        pytest.param(
            {"topology": ("a/b", "a/c")},
            ("spec.schedulingConstraints.topology", "TOO_MANY"),
            id="two topology keys",
        ),
        pytest.param(
            {"topology": ("",)},
            ("spec.schedulingConstraints.topology[0].key", "REQUIRED"),
            id="no topology key",
        ),
        pytest.param(
            {"topology": ("foo-",)},
            ("spec.schedulingConstraints.topology[0].key", "INVALID"),
            id="topology key",
        ),
        pytest.param({"disruption_mode": BOTH_MODES}, ("spec.disruptionMode", "INVALID"), id="two modes"),
        pytest.param(
            {"disruption_mode": DisruptionMode()}, ("spec.disruptionMode", "REQUIRED"), id="empty mode"
        ),
        pytest.param(
            {"priority_class_name": "high/priority"}, ("spec.priorityClassName", "INVALID"), id="class name"
        ),
        pytest.param({"priority": 1_000_000_001}, ("spec.priority", "INVALID"), id="priority too high"),
        pytest.param({"priority": -(2**31) - 1}, ("spec.priority", "INVALID"), id="priority too low"),
        pytest.param(
            {"preemption_policy": "Sometimes"}, ("spec.preemptionPolicy", "NOT_SUPPORTED"), id="policy"
        ),
    ],
)
def test_a_wrong_group_is_refused_at_its_field(
    group: Group, fields: dict[str, object], expected: tuple[str, str]
) -> None:
    assert faults(with_group_spec(group, **fields)) == [expected]


@pytest.mark.parametrize(
    ("group", "field"),
    [
        pytest.param(POD_GROUP, "spec.schedulingPolicy.gang.minCount", id="PodGroup"),
        pytest.param(COMPOSITE, "spec.schedulingPolicy.gang.minGroupCount", id="CompositePodGroup"),
    ],
)
@pytest.mark.parametrize(
    ("minimum", "reason"), [(None, "REQUIRED"), (0, "INVALID"), (-1, "INVALID")], ids=["unset", "0", "-1"]
)
def test_the_minimum_of_a_gang_is_at_least_one(
    group: Group, field: str, minimum: int | None, reason: str
) -> None:
    assert faults(with_group_spec(group, scheduling_policy=gang(minimum))) == [(field, reason)]


def test_a_pod_group_without_a_parent_needs_no_workload() -> None:
    assert faults(with_group_spec(POD_GROUP, workload_ref=None)) == []


def test_a_pod_group_with_a_parent_needs_a_workload() -> None:
    orphan = with_group_spec(POD_GROUP, parent_composite_pod_group_name="root")

    assert faults(orphan) == [("spec.workloadRef", "REQUIRED")]


def test_a_composite_always_needs_a_workload() -> None:
    assert faults(with_group_spec(COMPOSITE, workload_ref=None)) == [("spec.workloadRef", "REQUIRED")]


def test_pods_that_are_scheduled_singly_are_not_disrupted_as_a_whole() -> None:
    wrong = with_group_spec(POD_GROUP, scheduling_policy=BASIC, disruption_mode=ALL)

    assert faults(wrong) == [("spec.disruptionMode", "INVALID")]


@pytest.mark.parametrize(
    ("group", "fields"),
    [
        pytest.param(POD_GROUP, {"disruption_mode": ALL}, id="gang disrupted as a whole"),
        pytest.param(POD_GROUP, {"scheduling_policy": BASIC, "disruption_mode": SINGLE}, id="basic, single"),
        pytest.param(
            COMPOSITE, {"scheduling_policy": BASIC, "disruption_mode": ALL}, id="basic composite as a whole"
        ),
        pytest.param(POD_GROUP, {"priority": -5}, id="negative priority"),
        pytest.param(
            POD_GROUP,
            {"priority_class_name": "system-node-critical", "priority": 2_000_001_000},
            id="number of a built-in class",
        ),
    ],
)
def test_other_combinations_are_right(group: Group, fields: dict[str, object]) -> None:
    assert faults(with_group_spec(group, **fields)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(replace(POD_GROUP, name="P"), id="name"),
        pytest.param(replace(POD_GROUP, uid="u" * 254), id="uid"),
        pytest.param(replace(POD_GROUP, resource_version=-1), id="revision"),
        pytest.param(replace(POD_GROUP, namespace="a.b"), id="namespace"),
        pytest.param(replace(POD_GROUP, labels={"a": "b c"}), id="label"),
        pytest.param(replace(POD_GROUP, annotations={"a b": ""}), id="annotation"),
        pytest.param(replace(POD_GROUP, finalizers=("a b",)), id="finalizer"),
        pytest.param(with_group_spec(POD_GROUP, scheduling_policy=SchedulingPolicy()), id="policy"),
    ],
)
def test_a_wrong_group_behind_a_right_one_that_it_shares_with_is_found(wrong: PodGroup) -> None:
    rules = Rules()

    assert validate(POD_GROUP, rules) == []
    assert validate(replace(POD_GROUP, name="next"), rules) == []
    assert len(validate(wrong, rules)) == 1


def test_a_composite_is_not_taken_for_a_pod_group_with_which_it_shares_its_spec() -> None:
    rules = Rules()
    leaf = with_group_spec(POD_GROUP, workload_ref=None, parent_composite_pod_group_name="")

    assert validate(leaf, rules) == []
    composite = replace(
        COMPOSITE,
        namespace=leaf.namespace,
        spec=leaf.spec,
        labels=leaf.labels,
        annotations=leaf.annotations,
        owner_references=leaf.owner_references,
        finalizers=leaf.finalizers,
    )
    assert [fault.field for fault in validate(composite, rules)] == ["spec.workloadRef"]


def test_a_parent_needs_a_workload_though_a_group_without_one_was_right_without_a_workload() -> None:
    rules = Rules()
    alone = with_group_spec(POD_GROUP, workload_ref=None, parent_composite_pod_group_name="")
    below = with_group_spec(alone, parent_composite_pod_group_name="root")

    assert validate(alone, rules) == []
    assert [fault.field for fault in validate(below, rules)] == ["spec.workloadRef"]
    assert validate(replace(alone, name="next"), rules) == []


def test_a_wrong_parent_of_a_group_that_shares_all_else_with_a_right_one_is_found() -> None:
    rules = Rules()
    reference = WorkloadReference("w", "t")
    right, wrong = (
        with_group_spec(POD_GROUP, workload_ref=reference, parent_composite_pod_group_name=parent)
        for parent in ("root", "a b")
    )

    assert validate(right, rules) == []
    assert [fault.field for fault in validate(wrong, rules)] == ["spec.parentCompositePodGroupName"]
