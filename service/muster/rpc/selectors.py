"""Label selectors of List and Watch, checked and made into predicates.

Decides which labels a request selects. Selectors inside objects are validated and evaluated elsewhere; the
syntax is one (Kubernetes' LabelSelector).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from muster.v1 import meta_pb2
from muster.validation.violations import INVALID, NOT_SUPPORTED, REQUIRED, TOO_MANY, Violation

LabelPredicate = Callable[[dict[str, str]], bool]

MAX_REQUIREMENTS = 100
MAX_VALUES = 1_000
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def compiled(
    selector: meta_pb2.LabelSelector, field: str, violations: list[Violation]
) -> LabelPredicate | None:
    """The predicate over labels, None if the selector selects everything or has faults.

    Faults are appended to `violations` with JSON paths below `field`.
    """
    before = len(violations)
    _check_labels(selector, field, violations)
    for index, requirement in enumerate(selector.match_expressions[:MAX_REQUIREMENTS]):
        _check_requirement(requirement, f"{field}.matchExpressions[{index}]", violations)
    if len(violations) > before:
        return None
    terms = [_equals(key, value) for key, value in sorted(selector.match_labels.items())]
    terms += [_term(requirement) for requirement in selector.match_expressions]
    return _all_of(terms)


def is_label_key(text: str) -> bool:
    """Whether the text is a label key: a name of at most 63 characters, behind a DNS subdomain and `/` or not."""
    prefix, slash, name = text.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def is_label_value(text: str) -> bool:
    return not text or _NAME.fullmatch(text) is not None


def _check_labels(selector: meta_pb2.LabelSelector, field: str, violations: list[Violation]) -> None:
    if len(selector.match_labels) > MAX_REQUIREMENTS:
        violations.append(Violation(f"{field}.matchLabels", TOO_MANY, f"at most {MAX_REQUIREMENTS} labels"))
        return
    for key, value in sorted(selector.match_labels.items()):
        if not is_label_key(key):
            violations.append(Violation(f"{field}.matchLabels[{key}]", INVALID, f"{key!r} is no label key"))
        if not is_label_value(value):
            violations.append(
                Violation(f"{field}.matchLabels[{key}]", INVALID, f"{value!r} is no label value")
            )
    if len(selector.match_expressions) > MAX_REQUIREMENTS:
        violations.append(
            Violation(f"{field}.matchExpressions", TOO_MANY, f"at most {MAX_REQUIREMENTS} requirements")
        )


def _check_requirement(
    requirement: meta_pb2.LabelSelectorRequirement, field: str, violations: list[Violation]
) -> None:
    if not requirement.key:
        violations.append(Violation(f"{field}.key", REQUIRED, "a requirement names a label key"))
    elif not is_label_key(requirement.key):
        violations.append(Violation(f"{field}.key", INVALID, f"{requirement.key!r} is no label key"))
    _check_values(requirement, field, violations)


def _check_values(
    requirement: meta_pb2.LabelSelectorRequirement, field: str, violations: list[Violation]
) -> None:
    operator, values = requirement.operator, requirement.values
    if not operator:
        violations.append(Violation(f"{field}.operator", REQUIRED, "In, NotIn, Exists or DoesNotExist"))
    elif operator not in _WITH_VALUES + _WITHOUT_VALUES:
        violations.append(
            Violation(
                f"{field}.operator", NOT_SUPPORTED, f"{operator!r} is not In, NotIn, Exists or DoesNotExist"
            )
        )
    if operator in _WITH_VALUES and not values:
        violations.append(Violation(f"{field}.values", REQUIRED, f"{operator} needs values"))
    if operator in _WITHOUT_VALUES and values:
        violations.append(Violation(f"{field}.values", INVALID, f"{operator} takes no values"))
    if len(values) > MAX_VALUES:
        violations.append(Violation(f"{field}.values", TOO_MANY, f"at most {MAX_VALUES} values"))
        return
    violations.extend(
        Violation(f"{field}.values[{index}]", INVALID, f"{value!r} is no label value")
        for index, value in enumerate(values)
        if not is_label_value(value)
    )


def _equals(key: str, value: str) -> LabelPredicate:
    return lambda labels: labels.get(key) == value


def _term(requirement: meta_pb2.LabelSelectorRequirement) -> LabelPredicate:
    """One requirement; as in Kubernetes, NotIn holds where the label is absent."""
    key, values = requirement.key, frozenset(requirement.values)
    match requirement.operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case _:
            return lambda labels: key not in labels


def _all_of(terms: list[LabelPredicate]) -> LabelPredicate | None:
    if not terms:
        return None
    return lambda labels: all(term(labels) for term in terms)
