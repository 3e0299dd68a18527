"""Label selectors of List and Watch, checked and made into predicates; the rules are those of selectors in objects."""

from __future__ import annotations

from collections.abc import Callable

from muster.model.selectors import labels_match, requirements_of
from muster.rpc.codec.meta import decode_selector
from muster.v1 import meta_pb2
from muster.validation.labels import label_selector_faults
from muster.validation.violations import TOO_MANY, Violation

LabelPredicate = Callable[[dict[str, str]], bool]

MAX_VALUES = 1_000


def compiled(
    selector: meta_pb2.LabelSelector, field: str, violations: list[Violation]
) -> LabelPredicate | None:
    """The predicate over labels, None if the selector selects everything or has faults.

    Faults are appended to `violations` with JSON paths below `field`.
    """
    if _value_count(selector) > MAX_VALUES:
        violations.append(Violation(field, TOO_MANY, f"a selector has at most {MAX_VALUES} keys and values"))
        return None
    decoded = decode_selector(selector)
    faults = list(label_selector_faults(field, decoded))
    violations.extend(faults)
    requirements = requirements_of(decoded)
    if faults or not requirements:
        return None
    return lambda labels: labels_match(requirements, labels)


def _value_count(selector: meta_pb2.LabelSelector) -> int:
    expressions = selector.match_expressions
    return len(selector.match_labels) + len(expressions) + sum(len(each.values) for each in expressions)
