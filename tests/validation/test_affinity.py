from dataclasses import replace

import pytest

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.pod import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from tests.validation.examples import faults, with_spec

REQUIRED_NODES = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
PREFERRED_NODES = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
EMPTY_TERM = NodeSelectorTerm()
TERM = PodAffinityTerm(LabelSelector({"app": "web"}), ("default",), "example.com/zone")


def _requiring(*requirements: SelectorRequirement) -> Pod:
    return with_spec(affinity=Affinity(NodeAffinity((NodeSelectorTerm(requirements),))))


def _requiring_field(requirement: SelectorRequirement) -> Pod:
    term = NodeSelectorTerm(match_fields=(requirement,))
    return with_spec(affinity=Affinity(NodeAffinity((term,))))


def _preferring(weight: int, term: NodeSelectorTerm = EMPTY_TERM) -> Pod:
    preferred = PreferredSchedulingTerm(weight, term)
    return with_spec(affinity=Affinity(NodeAffinity(preferred=(preferred,))))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        pytest.param(
            with_spec(affinity=Affinity(NodeAffinity(()))), (REQUIRED_NODES, "REQUIRED"), id="no terms"
        ),
        pytest.param(
            _requiring(SelectorRequirement("a b", "Exists")),
            (f"{REQUIRED_NODES}[0].matchExpressions[0].key", "INVALID"),
            id="key",
        ),
        pytest.param(
            _requiring(SelectorRequirement("a", "Equals", ("b",))),
            (f"{REQUIRED_NODES}[0].matchExpressions[0].operator", "NOT_SUPPORTED"),
            id="operator",
        ),
        pytest.param(
            _requiring(SelectorRequirement("a", "In")),
            (f"{REQUIRED_NODES}[0].matchExpressions[0].values", "REQUIRED"),
            id="In without values",
        ),
        pytest.param(
            _requiring(SelectorRequirement("a", "Gt", ("1", "2"))),
            (f"{REQUIRED_NODES}[0].matchExpressions[0].values", "INVALID"),
            id="Gt with two values",
        ),
        pytest.param(
            _requiring(SelectorRequirement("a", "Lt", ("1.5",))),
            (f"{REQUIRED_NODES}[0].matchExpressions[0].values", "INVALID"),
            id="Lt with a fraction",
        ),
        pytest.param(
            _requiring_field(SelectorRequirement("metadata.uid", "In", ("n",))),
            (f"{REQUIRED_NODES}[0].matchFields[0].key", "NOT_SUPPORTED"),
            id="unknown field",
        ),
        pytest.param(
            _requiring_field(SelectorRequirement("metadata.name", "Exists", ("n",))),
            (f"{REQUIRED_NODES}[0].matchFields[0].operator", "NOT_SUPPORTED"),
            id="operator of a field",
        ),
        pytest.param(
            _requiring_field(SelectorRequirement("metadata.name", "In", ("n", "m"))),
            (f"{REQUIRED_NODES}[0].matchFields[0].values", "INVALID"),
            id="two names",
        ),
        pytest.param(_preferring(0), (f"{PREFERRED_NODES}[0].weight", "INVALID"), id="weight 0"),
        pytest.param(_preferring(101), (f"{PREFERRED_NODES}[0].weight", "INVALID"), id="weight 101"),
        pytest.param(
            _preferring(1, NodeSelectorTerm((SelectorRequirement("a", "In"),))),
            (f"{PREFERRED_NODES}[0].preference.matchExpressions[0].values", "REQUIRED"),
            id="preference",
        ),
    ],
)
def test_a_wrong_node_affinity_is_refused_at_its_field(wrong: Pod, expected: tuple[str, str]) -> None:
    assert faults(wrong) == [expected]


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(_requiring(SelectorRequirement("a", "Gt", ("-1",))), id="Gt"),
        pytest.param(_requiring(SelectorRequirement("a", "DoesNotExist")), id="DoesNotExist"),
        pytest.param(_requiring_field(SelectorRequirement("metadata.name", "NotIn", ("n",))), id="field"),
        pytest.param(_preferring(1), id="weight 1"),
        pytest.param(_preferring(100), id="weight 100"),
    ],
)
def test_other_node_affinities_are_right(right: Pod) -> None:
    assert faults(right) == []


@pytest.mark.parametrize(
    ("field", "name"),
    [("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")],
    ids=["affinity", "anti-affinity"],
)
@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(
            replace(TERM, label_selector=LabelSelector({"a b": ""})),
            ("labelSelector.matchLabels[a b]", "INVALID"),
            id="selector",
        ),
        pytest.param(replace(TERM, namespaces=("A",)), ("namespaces[0]", "INVALID"), id="namespace"),
        pytest.param(replace(TERM, topology_key=""), ("topologyKey", "REQUIRED"), id="no topology key"),
        pytest.param(replace(TERM, topology_key="a b"), ("topologyKey", "INVALID"), id="topology key"),
        pytest.param(
            replace(TERM, namespace_selector=LabelSelector({"a": "b"})),
            ("namespaceSelector", "NOT_SUPPORTED"),
            id="namespace selector",
        ),
        pytest.param(
            replace(TERM, match_label_keys=("a b",)), ("matchLabelKeys[0]", "INVALID"), id="matched key"
        ),
        pytest.param(
            replace(TERM, match_label_keys=("app",)),
            ("matchLabelKeys[0]", "INVALID"),
            id="matched key of the selector",
        ),
        pytest.param(
            replace(TERM, mismatch_label_keys=("a",), label_selector=None),
            ("mismatchLabelKeys", "INVALID"),
            id="mismatched key without a selector",
        ),
        pytest.param(
            replace(TERM, match_label_keys=("a",), mismatch_label_keys=("a",)),
            ("mismatchLabelKeys[0]", "DUPLICATE"),
            id="key matched and mismatched",
        ),
    ],
)
def test_a_wrong_pod_term_is_refused_at_its_field(
    field: str, name: str, term: PodAffinityTerm, expected: tuple[str, str]
) -> None:
    required = with_spec(affinity=Affinity(**{field: PodAffinity((term,))}))  # type: ignore[arg-type]
    preferred = with_spec(
        affinity=Affinity(**{field: PodAffinity((), (WeightedPodAffinityTerm(1, term),))})  # type: ignore[arg-type]
    )
    path = f"spec.affinity.{name}"

    assert faults(required) == [
        (f"{path}.requiredDuringSchedulingIgnoredDuringExecution[0].{expected[0]}", expected[1])
    ]
    assert faults(preferred) == [
        (
            f"{path}.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.{expected[0]}",
            expected[1],
        )
    ]


def test_the_weight_of_a_pod_term_is_1_to_100() -> None:
    affinity = Affinity(pod_affinity=PodAffinity((), (WeightedPodAffinityTerm(0, TERM),)))

    assert faults(with_spec(affinity=affinity)) == [
        ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "INVALID")
    ]


def test_an_empty_namespace_selector_means_all_namespaces() -> None:
    term = replace(TERM, namespace_selector=LabelSelector())

    assert faults(with_spec(affinity=Affinity(pod_affinity=PodAffinity((term,))))) == []
