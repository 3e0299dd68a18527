"""Do labels match a selector, does a node match a term, does a toleration bear a taint: Kubernetes' rules.

Every rule looks at one value of one key, so that a scheduler may ask once per distinct value instead of per node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Taint
from muster.model.pod import NodeSelectorTerm, Toleration

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GREATER = "Gt"
LESS = "Lt"
LABEL_OPERATORS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})
NODE_OPERATORS = LABEL_OPERATORS | {GREATER, LESS}

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
NAME_FIELD = "metadata.name"

_EQUAL = ("", "Equal")
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def value_matches(requirement: SelectorRequirement, value: str | None) -> bool:
    """Whether a key's value (None: the key is missing) meets the requirement; an unknown operator matches nothing."""
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def value_test(requirement: SelectorRequirement) -> Callable[[str | None], bool]:
    """`value_matches` of one requirement, to be asked of many values: however many it lists, each is looked up."""
    listed = frozenset[str | None](requirement.values)
    match requirement.operator:
        case "In":
            return listed.__contains__
        case "NotIn":
            return lambda value: value not in listed
        case _:
            return partial(value_matches, requirement)


def _compares(requirement: SelectorRequirement, value: str | None) -> bool:
    """Both sides must be whole numbers."""
    if value is None or len(requirement.values) != 1:
        return False
    bound = requirement.values[0]
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(bound)):
        return False
    return int(value) > int(bound) if requirement.operator == GREATER else int(value) < int(bound)


def requirements_of(selector: LabelSelector) -> tuple[SelectorRequirement, ...]:
    """The selector as requirements that must all hold."""
    equal = tuple(
        SelectorRequirement(key, IN, (value,)) for key, value in sorted(selector.match_labels.items())
    )
    return equal + selector.match_expressions


def labels_match(requirements: Iterable[SelectorRequirement], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet every requirement."""
    return all(value_matches(requirement, labels.get(requirement.key)) for requirement in requirements)


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector selects an object with these labels; None selects nothing, an empty one everything."""
    return selector is not None and labels_match(requirements_of(selector), labels)


def node_term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of that name and those labels meets all of the term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME_FIELD: name}
    return labels_match(term.match_expressions, labels) and labels_match(term.match_fields, fields)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration bears the taint; for how long plays no part in placement."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == EXISTS:
        return True
    return toleration.operator in _EQUAL and toleration.value == taint.value


class Tolerance:
    """Many tolerations together: what they bear is looked up instead of asking each, as `is_tolerated` does."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._any_value: set[tuple[str, str]] = set()
        self._with_value: set[tuple[str, str, str]] = set()
        for each in tolerations:
            if each.operator == EXISTS:
                self._any_value.add((each.effect, each.key))
            elif each.operator in _EQUAL:
                self._with_value.add((each.effect, each.key, each.value))

    def bears(self, taint: Taint) -> bool:
        """Whether one of the tolerations bears the taint."""
        for place in product((taint.effect, ""), (taint.key, "")):
            if place in self._any_value or (*place, taint.value) in self._with_value:
                return True
        return False


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations bears the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)
