"""Rules of labels and of what selects by them: maps, label selectors, requirements of node selectors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.names import label_key_fault, label_value_fault
from muster.model.selectors import DOES_NOT_EXIST, EXISTS, GREATER, LABEL_OPERATORS, LESS
from muster.validation.fields import Faults, choice_faults, count_faults, name_faults
from muster.validation.violations import INVALID, REQUIRED, Violation

MOST_SELECTOR_VALUES = 1_000
"""Keys and values of a label selector, which is held against the labels of every kind of pod."""
MOST_LABEL_KEYS = 64

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def label_map_faults(path: str, labels: Mapping[str, str]) -> Faults:
    """Label keys to label values."""
    for key, value in labels.items():
        fault = label_key_fault(key)
        if fault is not None:
            yield Violation(f"{path}[{key}]", INVALID, f"a label's key must {fault}")
        fault = label_value_fault(value)
        if fault is not None:
            yield Violation(f"{path}[{key}]", INVALID, f"a label's value must {fault}")


def label_selector_faults(path: str, selector: LabelSelector | None) -> Faults:
    """A label selector, which may be left out."""
    if selector is None:
        return
    yield from count_faults(path, _value_count(selector), MOST_SELECTOR_VALUES, "keys and values")
    yield from label_map_faults(f"{path}.matchLabels", selector.match_labels)
    for index, requirement in enumerate(selector.match_expressions):
        yield from requirement_faults(f"{path}.matchExpressions[{index}]", requirement, LABEL_OPERATORS)


def requirement_faults(path: str, requirement: SelectorRequirement, operators: Iterable[str]) -> Faults:
    """One requirement on a label: its key, its operator, and the values that go with the operator."""
    yield from name_faults(f"{path}.key", requirement.key, label_key_fault)
    yield from choice_faults(f"{path}.operator", requirement.operator, operators)
    if requirement.operator in operators:
        yield from _value_faults(f"{path}.values", requirement)


def label_key_list_faults(path: str, keys: Sequence[str]) -> Faults:
    """A list of label keys."""
    yield from count_faults(path, len(keys), MOST_LABEL_KEYS, "keys")
    for index, key in enumerate(keys):
        yield from name_faults(f"{path}[{index}]", key, label_key_fault)


def _value_count(selector: LabelSelector) -> int:
    values = sum(len(each.values) for each in selector.match_expressions)
    return len(selector.match_labels) + len(selector.match_expressions) + values


def _value_faults(path: str, requirement: SelectorRequirement) -> Faults:
    operator, values = requirement.operator, requirement.values
    if operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            yield Violation(path, INVALID, f"must be empty with operator {operator}")
    elif operator in (GREATER, LESS):
        if len(values) != 1 or not _INTEGER.fullmatch(values[0]):
            yield Violation(path, INVALID, f"must be one whole number with operator {operator}")
    elif not values:
        yield Violation(path, REQUIRED, f"must be set with operator {operator}")
    else:
        for index, value in enumerate(values):
            fault = label_value_fault(value)
            if fault is not None:
                yield Violation(f"{path}[{index}]", INVALID, f"a label's value must {fault}")
