from collections.abc import Iterator
from dataclasses import replace

import pytest

from muster.model.meta import LabelSelector
from muster.model.pod import Pod, PodSpec, PodStatus, Toleration, TopologySpreadConstraint
from muster.model.run_time import MAX_RUN_TIME_SECONDS
from muster.validation import pod as pod_rules
from muster.validation.objects import Rules, validate
from muster.validation.violations import Violation
from tests.validation.examples import POD, SPEC, faults, with_spec

SPREAD = TopologySpreadConstraint(1, "example.com/zone", "DoNotSchedule", LabelSelector())


def _tolerating(
    key: str, operator: str, value: str = "", effect: str = "", seconds: int | None = None
) -> Pod:
    return with_spec(tolerations=(Toleration(key, operator, value, effect, seconds),))


def _spread(**fields: object) -> Pod:
    return with_spec(topology_spread_constraints=(replace(SPREAD, **fields),))  # type: ignore[arg-type]


_RUN_TIME = f"metadata.annotations[{MAX_RUN_TIME_SECONDS}]"


def _running_for(declared: str) -> Pod:
    return replace(POD, annotations={MAX_RUN_TIME_SECONDS: declared})


@pytest.mark.parametrize("declared", ["", "0", "-1", "60s", "1.5", "060", "٣", "2147483648"])
def test_a_run_time_that_is_no_whole_number_of_seconds_is_refused(declared: str) -> None:
    assert [(each.field, each.reason) for each in validate(_running_for(declared))] == [
        (_RUN_TIME, "INVALID")
    ]


@pytest.mark.parametrize("declared", ["1", "3600", "2147483647"])
def test_a_run_time_in_whole_seconds_is_right(declared: str) -> None:
    assert list(validate(_running_for(declared))) == []


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(replace(POD, name=""), ("metadata.name", "REQUIRED"), id="no name"),
        pytest.param(replace(POD, name="P"), ("metadata.name", "INVALID"), id="name"),
        pytest.param(replace(POD, namespace="a.b"), ("metadata.namespace", "INVALID"), id="namespace"),
        pytest.param(replace(POD, labels={"a": "b c"}), ("metadata.labels[a]", "INVALID"), id="label"),
        pytest.param(
            replace(POD, group="A"), ("spec.schedulingGroup.podGroupName", "INVALID"), id="group's name"
        ),
        pytest.param(
            replace(POD, gates=("",)), ("spec.schedulingGates[0].name", "REQUIRED"), id="no gate name"
        ),
        pytest.param(
            replace(POD, gates=("a b",)), ("spec.schedulingGates[0].name", "INVALID"), id="gate's name"
        ),
        pytest.param(
            replace(POD, gates=("a/b", "a/b")), ("spec.schedulingGates[1].name", "DUPLICATE"), id="gate twice"
        ),
        pytest.param(replace(POD, node_name="N"), ("spec.nodeName", "INVALID"), id="node's name"),
        pytest.param(
            replace(POD, node_name="n", gates=("a/b",)), ("spec.nodeName", "INVALID"), id="bound and gated"
        ),
        pytest.param(
            replace(POD, status=PodStatus(phase="Done")), ("status.phase", "NOT_SUPPORTED"), id="phase"
        ),
        pytest.param(
            replace(POD, status=PodStatus(start_us=2**62)), ("status.startTime", "INVALID"), id="start time"
        ),
        pytest.param(
            with_spec(node_selector={"a": "b c"}), ("spec.nodeSelector[a]", "INVALID"), id="node selector"
        ),
        pytest.param(
            with_spec(termination_grace_period_seconds=-1),
            ("spec.terminationGracePeriodSeconds", "INVALID"),
            id="negative grace",
        ),
        pytest.param(
            with_spec(termination_grace_period_seconds=2**31),
            ("spec.terminationGracePeriodSeconds", "INVALID"),
            id="endless grace",
        ),
        pytest.param(
            with_spec(scheduler_name="s" * 254), ("spec.schedulerName", "TOO_MANY"), id="scheduler's name"
        ),
        pytest.param(
            with_spec(priority_class_name="A"), ("spec.priorityClassName", "INVALID"), id="class name"
        ),
        pytest.param(with_spec(priority=1_000_000_001), ("spec.priority", "INVALID"), id="priority"),
        pytest.param(
            with_spec(preemption_policy="No"), ("spec.preemptionPolicy", "NOT_SUPPORTED"), id="preemption"
        ),
    ],
)
def test_a_wrong_pod_is_refused_at_its_field(wrong: Pod, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(_tolerating("a b", "Exists"), ("key", "INVALID"), id="key"),
        pytest.param(_tolerating("a", "Gt", "1"), ("operator", "NOT_SUPPORTED"), id="operator"),
        pytest.param(_tolerating("a", "Equal", "b", "Evict"), ("effect", "NOT_SUPPORTED"), id="effect"),
        pytest.param(_tolerating("", "Equal", "b"), ("operator", "INVALID"), id="empty key with Equal"),
        pytest.param(_tolerating("", "", ""), ("operator", "INVALID"), id="nothing"),
        pytest.param(_tolerating("a", "Exists", "b"), ("value", "INVALID"), id="Exists with a value"),
        pytest.param(_tolerating("a", "Equal", "b c"), ("value", "INVALID"), id="value"),
        pytest.param(
            _tolerating("a", "Exists", "", "NoSchedule", seconds=5), ("effect", "INVALID"), id="seconds"
        ),
    ],
)
def test_a_wrong_toleration_is_refused_at_its_field(wrong: Pod, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [(f"spec.tolerations[0].{expected[0]}", expected[1])]


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(_tolerating("", "Exists"), id="all taints"),
        pytest.param(_tolerating("a", "", "b"), id="operator left out"),
        pytest.param(_tolerating("a", "Exists", "", "NoExecute", seconds=5), id="for a while"),
    ],
)
def test_other_tolerations_are_right(right: Pod) -> None:
    assert faults(right) == []


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(_spread(max_skew=0), ("maxSkew", "INVALID"), id="skew"),
        pytest.param(_spread(topology_key=""), ("topologyKey", "REQUIRED"), id="no key"),
        pytest.param(_spread(topology_key="a b"), ("topologyKey", "INVALID"), id="key"),
        pytest.param(_spread(when_unsatisfiable=""), ("whenUnsatisfiable", "REQUIRED"), id="no effect"),
        pytest.param(
            _spread(when_unsatisfiable="Maybe"), ("whenUnsatisfiable", "NOT_SUPPORTED"), id="effect"
        ),
        pytest.param(
            _spread(label_selector=LabelSelector({"a b": ""})),
            ("labelSelector.matchLabels[a b]", "INVALID"),
            id="selector",
        ),
        pytest.param(_spread(min_domains=0), ("minDomains", "INVALID"), id="domains"),
        pytest.param(
            _spread(min_domains=2, when_unsatisfiable="ScheduleAnyway"),
            ("minDomains", "INVALID"),
            id="domains of a preference",
        ),
        pytest.param(
            _spread(node_affinity_policy="Skip"),
            ("nodeAffinityPolicy", "NOT_SUPPORTED"),
            id="affinity policy",
        ),
        pytest.param(
            _spread(node_taints_policy="Skip"), ("nodeTaintsPolicy", "NOT_SUPPORTED"), id="taints policy"
        ),
        pytest.param(_spread(match_label_keys=("a b",)), ("matchLabelKeys[0]", "INVALID"), id="matched key"),
        pytest.param(
            _spread(match_label_keys=("a",), label_selector=None),
            ("matchLabelKeys", "INVALID"),
            id="matched key without a selector",
        ),
        pytest.param(
            _spread(match_label_keys=("a",), label_selector=LabelSelector({"a": "b"})),
            ("matchLabelKeys[0]", "INVALID"),
            id="matched key of the selector",
        ),
    ],
)
def test_a_wrong_spread_constraint_is_refused_at_its_field(wrong: Pod, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [(f"spec.topologySpreadConstraints[0].{expected[0]}", expected[1])]


def test_two_spread_constraints_of_one_key_must_differ_in_effect() -> None:
    same = with_spec(topology_spread_constraints=(SPREAD, replace(SPREAD, max_skew=2)))
    other = with_spec(
        topology_spread_constraints=(SPREAD, replace(SPREAD, when_unsatisfiable="ScheduleAnyway"))
    )

    assert faults(same) == [("spec.topologySpreadConstraints[1]", "DUPLICATE")]
    assert faults(other) == []


def test_a_phase_may_be_left_out() -> None:
    assert faults(replace(POD, status=PodStatus(phase=""))) == []


def test_a_spec_that_many_pods_share_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[PodSpec] = []

    def look_at(spec: PodSpec) -> Iterator[Violation]:
        looked_at.append(spec)
        yield from ()

    monkeypatch.setattr(pod_rules, "_spec_faults", look_at)
    rules = Rules()

    for index in range(3):
        validate(replace(POD, name=f"p-{index}"), rules)

    assert looked_at == [SPEC]


def test_each_pod_of_a_wrong_spec_is_refused_under_its_own_name() -> None:
    rules = Rules()
    wrong = with_spec(priority_class_name="A")

    first = validate(wrong, rules)
    second = validate(replace(wrong, name="p-1"), rules)

    assert first[0].description.startswith("Pod default/p-0: ")
    assert second[0].description.startswith("Pod default/p-1: ")


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(replace(POD, name="P"), id="name"),
        pytest.param(replace(POD, uid="u" * 254), id="uid"),
        pytest.param(replace(POD, resource_version=-1), id="revision"),
        pytest.param(replace(POD, group="A"), id="group"),
        pytest.param(replace(POD, gates=("a b",)), id="gate"),
        pytest.param(replace(POD, node_name="N"), id="node"),
        pytest.param(replace(POD, namespace="a.b"), id="namespace"),
        pytest.param(replace(POD, status=PodStatus(phase="Done")), id="phase"),
        pytest.param(replace(POD, labels={"a": "b c"}), id="label"),
        pytest.param(replace(POD, annotations={"a b": ""}), id="annotation"),
        pytest.param(replace(POD, finalizers=("a b",)), id="finalizer"),
    ],
)
def test_a_wrong_pod_behind_a_right_one_of_its_shape_is_found(wrong: Pod) -> None:
    rules = Rules()

    assert validate(POD, rules) == []
    assert len(validate(wrong, rules)) == 1
