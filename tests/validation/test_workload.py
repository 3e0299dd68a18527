from dataclasses import replace

import pytest

from muster.model.workload import ControllerReference, GroupTemplate, Workload
from tests.validation.examples import ALL, BASIC, SINGLE, WORKLOAD, faults, gang, inner, leaf, workload


def _composites(*templates: GroupTemplate) -> Workload:
    return workload(composites=templates)


def _controlled(controller: ControllerReference | None) -> Workload:
    return replace(WORKLOAD, spec=replace(WORKLOAD.spec, controller_ref=controller))


def _chain(levels: int, prefix: str = "level") -> GroupTemplate:
    """A tree of that many levels, one template each."""
    if levels == 1:
        return leaf(f"{prefix}-1")
    below = _chain(levels - 1, prefix)
    lists = {"pod_group_templates": (below,)} if levels == 2 else {"composite_pod_group_templates": (below,)}
    return inner(f"{prefix}-{levels}", **lists)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(workload(), ("spec", "REQUIRED"), id="no templates"),
        pytest.param(
            workload(leaf("a"), composites=(inner("b", leaf("c")),)), ("spec", "INVALID"), id="both lists"
        ),
        pytest.param(
            workload(*(leaf(f"t-{i}") for i in range(9))),
            ("spec.podGroupTemplates", "TOO_MANY"),
            id="9 leaves",
        ),
        pytest.param(
            _composites(*(inner(f"t-{i}", leaf(f"l-{i}")) for i in range(9))),
            ("spec.compositePodGroupTemplates", "TOO_MANY"),
            id="9 composites",
        ),
        pytest.param(
            _composites(inner("root", *(leaf(f"t-{i}") for i in range(9)))),
            ("spec.compositePodGroupTemplates[0].podGroupTemplates", "TOO_MANY"),
            id="9 leaves below",
        ),
        pytest.param(
            _composites(_chain(4), _chain(5, "deep")),
            ("spec.compositePodGroupTemplates[1]", "TOO_MANY"),
            id="5 levels",
        ),
        pytest.param(
            _composites(inner("root")), ("spec.compositePodGroupTemplates[0]", "REQUIRED"), id="no child"
        ),
        pytest.param(workload(leaf("")), ("spec.podGroupTemplates[0].name", "REQUIRED"), id="no name"),
        pytest.param(workload(leaf("a.b")), ("spec.podGroupTemplates[0].name", "INVALID"), id="name"),
        pytest.param(
            workload(leaf("a"), leaf("a")), ("spec.podGroupTemplates[1].name", "DUPLICATE"), id="same name"
        ),
        pytest.param(
            _composites(inner("a", leaf("x")), inner("b", leaf("x"))),
            ("spec.compositePodGroupTemplates[1].podGroupTemplates[0].name", "DUPLICATE"),
            id="same name in another branch",
        ),
        pytest.param(
            _composites(inner("a", leaf("b")), inner("b", leaf("c"))),
            ("spec.compositePodGroupTemplates[1].name", "DUPLICATE"),
            id="same name above",
        ),
        pytest.param(
            workload(leaf("a", scheduling_policy=gang(0))),
            ("spec.podGroupTemplates[0].schedulingPolicy.gang.minCount", "INVALID"),
            id="minCount",
        ),
        pytest.param(
            _composites(inner("a", leaf("b"), scheduling_policy=gang(None))),
            ("spec.compositePodGroupTemplates[0].schedulingPolicy.gang.minGroupCount", "REQUIRED"),
            id="minGroupCount",
        ),
        pytest.param(
            workload(leaf("a", topology=("x/y", "x/z"))),
            ("spec.podGroupTemplates[0].schedulingConstraints.topology", "TOO_MANY"),
            id="two topology keys",
        ),
        pytest.param(
            workload(leaf("a", scheduling_policy=BASIC, disruption_mode=ALL)),
            ("spec.podGroupTemplates[0].disruptionMode", "INVALID"),
            id="basic disrupted as a whole",
        ),
        pytest.param(
            workload(leaf("a", priority=1_000_000_001)),
            ("spec.podGroupTemplates[0].priority", "INVALID"),
            id="priority",
        ),
        pytest.param(
            _composites(inner("a", leaf("b", disruption_mode=SINGLE), disruption_mode=ALL)),
            ("spec.compositePodGroupTemplates[0].podGroupTemplates[0].disruptionMode", "INVALID"),
            id="All over Single",
        ),
        pytest.param(
            _composites(inner("a", leaf("b"), disruption_mode=ALL)),
            ("spec.compositePodGroupTemplates[0].podGroupTemplates[0].disruptionMode", "INVALID"),
            id="All over the default",
        ),
        pytest.param(
            workload(leaf("a", priority=1), leaf("b", priority=2)), ("spec", "INVALID"), id="two priorities"
        ),
        pytest.param(
            workload(leaf("a", priority=0), leaf("b")), ("spec", "INVALID"), id="priority set and unset"
        ),
        pytest.param(
            _composites(inner("a", leaf("b", priority_class_name="x"))),
            ("spec", "INVALID"),
            id="class set and unset",
        ),
        pytest.param(
            _controlled(ControllerReference("A", "Job", "j")),
            ("spec.controllerRef.apiGroup", "INVALID"),
            id="controller's group",
        ),
        pytest.param(
            _controlled(ControllerReference("", "", "j")),
            ("spec.controllerRef.kind", "REQUIRED"),
            id="no controller kind",
        ),
        pytest.param(
            _controlled(ControllerReference("", "a/b", "j")),
            ("spec.controllerRef.kind", "INVALID"),
            id="controller's kind",
        ),
        pytest.param(
            _controlled(ControllerReference("", "Job", "..")),
            ("spec.controllerRef.name", "INVALID"),
            id="controller's name",
        ),
    ],
)
def test_a_wrong_workload_is_refused_at_its_field(wrong: Workload, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(_composites(_chain(4)), id="4 levels"),
        pytest.param(workload(*(leaf(f"t-{i}") for i in range(8))), id="8 templates"),
        pytest.param(
            _composites(inner("a", leaf("b", disruption_mode=ALL), disruption_mode=ALL)), id="All over All"
        ),
        pytest.param(
            _composites(inner("a", leaf("b", disruption_mode=ALL), disruption_mode=SINGLE)),
            id="Single over All",
        ),
        pytest.param(
            _composites(inner("a", leaf("b"), composite_pod_group_templates=(inner("c", leaf("d")),))),
            id="children of both kinds",
        ),
        pytest.param(_controlled(ControllerReference("", "Pod", "p")), id="controller of the core group"),
        pytest.param(_controlled(None), id="no controller"),
    ],
)
def test_other_trees_are_right(right: Workload) -> None:
    assert faults(right) == []


def test_composites_come_before_leaves_in_document_order() -> None:
    both = inner("a", leaf("x"), composite_pod_group_templates=(inner("x", leaf("d")),))

    assert faults(_composites(both)) == [
        ("spec.compositePodGroupTemplates[0].podGroupTemplates[0].name", "DUPLICATE")
    ]
