"""What a case may expect, each key a function from the observed state to what is wrong with it.

A function returns "" if the expectation holds, else what was seen instead. Rejections of an apply are judged in
`rejections`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from muster.v1.pod_pb2 import Pod
from tests.scenarios.observed import Observed, conditions

MOST_SHOWN = 8


class UnknownExpectationError(ValueError):
    """A case expects something that this runner does not know."""


def unmet(expected: Mapping[str, Any], observed: Observed) -> str:
    """The first expectation that does not hold, with what was seen instead; "" if all hold."""
    for key, value in expected.items():
        if key not in CHECKS:
            raise UnknownExpectationError(f"{key!r} is not an expectation")
        if seen := CHECKS[key](value, observed):
            return f"{key}: {seen}"
    return ""


def _shown(pods: list[Pod]) -> str:
    places = [f"{pod.metadata.name} on {pod.spec.node_name or 'no node'}" for pod in pods]
    more = f" and {len(places) - MOST_SHOWN} more" if len(places) > MOST_SHOWN else ""
    return ", ".join(places[:MOST_SHOWN]) + more or "no such pod"


def _bound_pods(glob: str, observed: Observed) -> list[Pod]:
    return [pod for pod in observed.pods(glob) if pod.spec.node_name]


def _bound(globs: list[str], observed: Observed) -> str:
    for glob in globs:
        pods = observed.pods(glob)
        if not pods or not all(pod.spec.node_name for pod in pods):
            return f"{glob} should be bound, seen: {_shown(pods)}"
    return ""


def _unbound(globs: list[str], observed: Observed) -> str:
    for glob in globs:
        if pods := _bound_pods(glob, observed):
            return f"{glob} should not be bound, seen: {_shown(pods)}"
    return ""


def _counts(expected: Mapping[str, Any], seen: Callable[[str], list[str]]) -> str:
    """Compares numbers, or ">=n", with how many names each glob stands for."""
    for glob, wanted in expected.items():
        names = seen(glob)
        at_least = str(wanted).startswith(">=")
        number = int(str(wanted).removeprefix(">="))
        if len(names) < number or (len(names) > number and not at_least):
            return (
                f"{glob} should be {wanted}, seen: {len(names)} ({', '.join(names[:MOST_SHOWN]) or 'none'})"
            )
    return ""


def _bound_count(expected: Mapping[str, Any], observed: Observed) -> str:
    return _counts(expected, lambda glob: [pod.metadata.name for pod in _bound_pods(glob, observed)])


def _on_nodes(expected: Mapping[str, list[str]], observed: Observed) -> str:
    for glob, nodes in expected.items():
        pods = _bound_pods(glob, observed)
        if not pods or not all(any(fnmatchcase(pod.spec.node_name, node) for node in nodes) for pod in pods):
            return f"{glob} should be on {', '.join(nodes)}, seen: {_shown(pods)}"
    return ""


def _domains(glob: str, key: str, observed: Observed) -> Iterator[tuple[str, str | None]]:
    for pod in _bound_pods(glob, observed):
        yield pod.metadata.name, observed.node_label(pod.spec.node_name, key)


def _same_domain(expected: Mapping[str, str], observed: Observed) -> str:
    for glob, key in expected.items():
        domains = dict(_domains(glob, key, observed))
        if not domains or None in domains.values() or len(set(domains.values())) > 1:
            return f"{glob} should share one {key}, seen: {domains or 'none bound'}"
    return ""


def _distinct_domains(expected: Mapping[str, str], observed: Observed) -> str:
    for glob, key in expected.items():
        domains = dict(_domains(glob, key, observed))
        repeated = any(count > 1 for count in Counter(domains.values()).values())
        if not domains or None in domains.values() or repeated:
            return f"{glob} should each have a {key} of its own, seen: {domains or 'none bound'}"
    return ""


def _preempted(globs: list[str], observed: Observed) -> str:
    for glob in globs:
        spared = sorted(set(observed.pods_ever(glob)) - set(observed.victims(glob)))
        if spared or not observed.victims(glob):
            return f"{glob} should be victims, not chosen: {', '.join(spared) or 'no such pod'}"
    return ""


def _not_preempted(globs: list[str], observed: Observed) -> str:
    for glob in globs:
        if victims := observed.victims(glob):
            return f"{glob} should be spared, chosen: {', '.join(victims)}"
    return ""


def _preempted_count(expected: Mapping[str, Any], observed: Observed) -> str:
    return _counts(expected, observed.victims)


def _condition(expected: list[Mapping[str, str]], observed: Observed) -> str:
    for wanted in expected:
        if seen := _unlike(wanted, observed):
            named = f"{wanted['kind']} {wanted['name']}"
            facts = {key: value for key, value in wanted.items() if key not in {"kind", "name", "type"}}
            return f"{named} should have {wanted['type']} {facts}, seen: {seen}"
    return ""


def _unlike(wanted: Mapping[str, str], observed: Observed) -> str:
    """What is there instead of the condition; "" if it is there."""
    stored = observed.find(wanted["kind"], wanted["name"])
    if stored is None:
        return "no such object"
    present = {each.type: each for each in conditions(stored)}
    found = present.get(wanted["type"])
    if found is None:
        return f"only {', '.join(present)}" if present else "no condition"
    same = (
        found.status == str(wanted.get("status", found.status))
        and found.reason == wanted.get("reason", found.reason)
        and wanted.get("message_contains", "") in found.message
    )
    return "" if same else f"{found.status}, {found.reason}, {found.message!r}"


def _exists(expected: list[Mapping[str, str]], observed: Observed) -> str:
    missing = [each for each in expected if observed.find(each["kind"], each["name"]) is None]
    return ", ".join(f"{each['kind']} {each['name']} does not exist" for each in missing)


def _gone(expected: list[Mapping[str, str]], observed: Observed) -> str:
    present = [each for each in expected if observed.find(each["kind"], each["name"]) is not None]
    return ", ".join(f"{each['kind']} {each['name']} still exists" for each in present)


CHECKS: dict[str, Callable[[Any, Observed], str]] = {
    "bound": _bound,
    "unbound": _unbound,
    "bound_count": _bound_count,
    "on_nodes": _on_nodes,
    "same_domain": _same_domain,
    "distinct_domains": _distinct_domains,
    "preempted": _preempted,
    "not_preempted": _not_preempted,
    "preempted_count": _preempted_count,
    "condition": _condition,
    "exists": _exists,
    "gone": _gone,
}
