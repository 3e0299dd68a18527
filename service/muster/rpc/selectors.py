"""Label selectors of List and Watch, checked and made into predicates; the rules are those of selectors in objects."""

from __future__ import annotations

from collections.abc import Callable

from muster.model.selectors import labels_match, requirements_of
from muster.rpc.codec.meta import decode_selector
from muster.v1 import meta_pb2
from muster.validation.labels import label_selector_faults
from muster.validation.violations import Violation

LabelPredicate = Callable[[dict[str, str]], bool]


def compiled(
    selector: meta_pb2.LabelSelector, field: str, violations: list[Violation]
) -> LabelPredicate | None:
    """The predicate over labels, None if the selector selects everything or has faults.

    Faults are appended to `violations` with JSON paths below `field`.
    """
    decoded = decode_selector(selector)
    faults = list(label_selector_faults(field, decoded))
    violations.extend(faults)
    requirements = requirements_of(decoded)
    if faults or not requirements:
        return None
    return lambda labels: labels_match(requirements, labels)
