"""Rules of a pod's affinity: to nodes, to pods, away from pods. Kubernetes' tree and operators."""

from __future__ import annotations

from muster.model.meta import LabelSelector
from muster.model.names import dns_label_fault, label_key_fault
from muster.model.pod import Affinity, NodeAffinity, NodeSelectorTerm, PodAffinity, PodAffinityTerm
from muster.model.selectors import IN, NAME_FIELD, NODE_OPERATORS, NOT_IN
from muster.validation.fields import Faults, choice_faults, count_faults, name_faults, range_faults
from muster.validation.labels import label_key_list_faults, label_selector_faults, requirement_faults
from muster.validation.violations import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED, Violation

LARGEST_WEIGHT = 100
MOST_TERMS = 64
MOST_NODE_REQUIREMENTS = 256
MOST_NODE_VALUES = 10_000
MOST_NAMESPACES = 256

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_faults(affinity: Affinity | None) -> Faults:
    """All faults of a pod's affinity, which may be left out."""
    if affinity is None:
        return
    yield from _node_affinity_faults("spec.affinity.nodeAffinity", affinity.node_affinity)
    yield from _pod_term_count_faults(affinity)
    yield from _pod_affinity_faults("spec.affinity.podAffinity", affinity.pod_affinity)
    yield from _pod_affinity_faults("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)


def match_label_key_faults(path: str, keys: tuple[str, ...], selector: LabelSelector | None) -> Faults:
    """Keys whose values a pod's own labels give: they narrow a selector that must be there and not use them itself."""
    yield from label_key_list_faults(path, keys)
    if keys and selector is None:
        yield Violation(path, INVALID, "must not be set without labelSelector")
    used = _keys_of(selector)
    for index, key in enumerate(keys):
        if key in used:
            yield Violation(f"{path}[{index}]", INVALID, f"must not repeat {key!r} of labelSelector")


def _node_affinity_faults(path: str, affinity: NodeAffinity | None) -> Faults:
    if affinity is None:
        return
    yield from _node_count_faults(path, affinity)
    if affinity.required is not None:
        terms = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not affinity.required:
            yield Violation(terms, REQUIRED, "must have at least one term")
        for index, term in enumerate(affinity.required):
            yield from _node_term_faults(f"{terms}[{index}]", term)
    for index, preferred in enumerate(affinity.preferred):
        own = f"{path}.{_PREFERRED}[{index}]"
        yield from range_faults(f"{own}.weight", preferred.weight, 1, LARGEST_WEIGHT)
        yield from _node_term_faults(f"{own}.preference", preferred.preference)


def _node_count_faults(path: str, affinity: NodeAffinity) -> Faults:
    terms = [*(affinity.required or ()), *(each.preference for each in affinity.preferred)]
    requirements = [each for term in terms for each in (*term.match_expressions, *term.match_fields)]
    yield from count_faults(path, len(terms), MOST_TERMS, "terms")
    yield from count_faults(path, len(requirements), MOST_NODE_REQUIREMENTS, "requirements")
    values = sum(len(each.values) for each in requirements)
    yield from count_faults(path, values, MOST_NODE_VALUES, "values")


def _pod_term_count_faults(affinity: Affinity) -> Faults:
    parts = [each for each in (affinity.pod_affinity, affinity.pod_anti_affinity) if each is not None]
    terms = sum(len(each.required) + len(each.preferred) for each in parts)
    yield from count_faults("spec.affinity", terms, MOST_TERMS, "terms of podAffinity and podAntiAffinity")


def _node_term_faults(path: str, term: NodeSelectorTerm) -> Faults:
    for index, requirement in enumerate(term.match_expressions):
        yield from requirement_faults(f"{path}.matchExpressions[{index}]", requirement, NODE_OPERATORS)
    for index, requirement in enumerate(term.match_fields):
        own = f"{path}.matchFields[{index}]"
        if requirement.key != NAME_FIELD:
            yield Violation(f"{own}.key", NOT_SUPPORTED, f"must be {NAME_FIELD}, the only field there is")
        yield from choice_faults(f"{own}.operator", requirement.operator, (IN, NOT_IN))
        if len(requirement.values) != 1:
            yield Violation(f"{own}.values", INVALID, "must be one name")


def _pod_affinity_faults(path: str, affinity: PodAffinity | None) -> Faults:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required):
        yield from _pod_term_faults(f"{path}.{_REQUIRED}[{index}]", term)
    for index, preferred in enumerate(affinity.preferred):
        own = f"{path}.{_PREFERRED}[{index}]"
        yield from range_faults(f"{own}.weight", preferred.weight, 1, LARGEST_WEIGHT)
        yield from _pod_term_faults(f"{own}.podAffinityTerm", preferred.term)


def _pod_term_faults(path: str, term: PodAffinityTerm) -> Faults:
    yield from label_selector_faults(f"{path}.labelSelector", term.label_selector)
    yield from count_faults(f"{path}.namespaces", len(term.namespaces), MOST_NAMESPACES, "namespaces")
    for index, namespace in enumerate(term.namespaces):
        yield from name_faults(f"{path}.namespaces[{index}]", namespace, dns_label_fault)
    yield from name_faults(f"{path}.topologyKey", term.topology_key, label_key_fault)
    if term.namespace_selector is not None and term.namespace_selector != LabelSelector():
        yield Violation(
            f"{path}.namespaceSelector", NOT_SUPPORTED, "must be left out or empty (all namespaces)"
        )
    yield from match_label_key_faults(f"{path}.matchLabelKeys", term.match_label_keys, term.label_selector)
    yield from match_label_key_faults(
        f"{path}.mismatchLabelKeys", term.mismatch_label_keys, term.label_selector
    )
    compared = set(term.match_label_keys)
    for index, key in enumerate(term.mismatch_label_keys):
        if key in compared:
            yield Violation(
                f"{path}.mismatchLabelKeys[{index}]", DUPLICATE, f"must not repeat {key!r} of matchLabelKeys"
            )


def _keys_of(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(requirement.key for requirement in selector.match_expressions)}
