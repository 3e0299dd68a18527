"""The short form of objects in case files, written out as Kubernetes manifests.

Decides what each short field stands for; the manifests become messages by the client library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Short = Mapping[str, Any]
Manifest = dict[str, Any]

GPU = "nvidia.com/gpu"
SCHEDULING = "scheduling.k8s.io/v1alpha3"


class ShortFormError(ValueError):
    """An object in a case file has a kind or field that the short form does not know."""


def repeated(short: Short) -> Iterator[Short]:
    """The object once, or `count` times with the index in place of `{i}` in every text."""
    if "count" not in short:
        yield short
        return
    single = {key: value for key, value in short.items() if key != "count"}
    for index in range(int(short["count"])):
        yield _with_index(single, str(index))


def manifest(short: Short) -> Manifest:
    """One object written out. Raises ShortFormError."""
    kind = short.get("kind")
    if kind not in _WRITERS:
        raise ShortFormError(f"{kind!r} is not a kind of the short form")
    api_version, known, body = _WRITERS[kind]
    unknown = set(short) - set(known.split()) - {"kind", "name", "labels"}
    if unknown:
        raise ShortFormError(f"{kind} {short.get('name')} has unknown fields: {', '.join(sorted(unknown))}")
    metadata: Manifest = {"name": short["name"]}
    if "labels" in short:
        metadata["labels"] = short["labels"]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body(short)}


def _with_index(value: Any, index: str) -> Any:
    if isinstance(value, str):
        return value.replace("{i}", index)
    if isinstance(value, Mapping):
        return {_with_index(key, index): _with_index(element, index) for key, element in value.items()}
    if isinstance(value, list):
        return [_with_index(element, index) for element in value]
    return value


def _resources(short: Short, **names: str) -> dict[str, str]:
    return {resource: str(short[key]) for key, resource in names.items() if key in short}


def _present(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value is not None}


def _node(short: Short) -> Manifest:
    return {
        "spec": _present(unschedulable=short.get("unschedulable"), taints=short.get("taints")),
        "status": {"capacity": _resources(short, cpu="cpu", memory="memory", pods="pods", gpu=GPU)},
    }


def _pod(short: Short) -> Manifest:
    requests = _resources(short, cpu="cpu", memory="memory", gpu=GPU)
    spec = _present(
        schedulingGroup={"podGroupName": short["group"]} if "group" in short else None,
        schedulingGates=[{"name": gate} for gate in short["gates"]] if "gates" in short else None,
        nodeName=short.get("node"),
        nodeSelector=short.get("nodeSelector"),
        tolerations=short.get("tolerations"),
        affinity=short.get("affinity"),
        topologySpreadConstraints=short.get("topologySpread"),
        schedulerName=short.get("schedulerName"),
        **_priority(short),
    )
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec}}


def _priority(short: Short) -> Manifest:
    return _present(
        priority=short.get("priority"),
        priorityClassName=short.get("priorityClass"),
        preemptionPolicy=short.get("preemptionPolicy"),
    )


def _group(minimum: str) -> Callable[[Short], Manifest]:
    def body(short: Short) -> Manifest:
        if "spec" in short:
            return {"spec": short["spec"]}
        template = short.get("template")
        reference = template and {"workloadName": template["workload"], "templateName": template["name"]}
        topology = short.get("topology")
        disruption = short.get("disruption")
        spec = _present(
            parentCompositePodGroupName=short.get("parent"),
            workloadRef=reference,
            schedulingPolicy=_policy(short.get("policy"), minimum),
            schedulingConstraints=topology and {"topology": [{"key": topology}]},
            disruptionMode=disruption and {disruption.lower(): {}},
            **_priority(short),
        )
        return {"spec": spec}

    return body


def _policy(policy: Any, minimum: str) -> Any:
    if policy == "basic":
        return {"basic": {}}
    if isinstance(policy, Mapping) and set(policy) == {"gang"}:
        return {"gang": {minimum: policy["gang"]}}
    return policy


def _workload(short: Short) -> Manifest:
    return {"spec": short["spec"]}


def _priority_class(short: Short) -> Manifest:
    return _present(
        value=short.get("value"),
        globalDefault=short.get("globalDefault"),
        preemptionPolicy=short.get("preemptionPolicy"),
    )


def _budget(short: Short) -> Manifest:
    selector = short.get("selector")
    if selector and not set(selector) & {"matchLabels", "matchExpressions"}:
        selector = {"matchLabels": selector}
    spec = _present(
        selector=selector, minAvailable=short.get("minAvailable"), maxUnavailable=short.get("maxUnavailable")
    )
    return {"spec": spec}


_PRIORITY = "priority priorityClass preemptionPolicy"
_GROUP = f"parent policy topology disruption template spec {_PRIORITY}"
_POD = f"group cpu memory gpu nodeSelector tolerations affinity topologySpread schedulerName node gates {_PRIORITY}"

# Kind to apiVersion, the fields that it knows, and what writes its spec and status.
_WRITERS: dict[str, tuple[str, str, Callable[[Short], Manifest]]] = {
    "Node": ("v1", "cpu memory pods gpu taints unschedulable", _node),
    "Pod": ("v1", _POD, _pod),
    "PodGroup": (SCHEDULING, _GROUP, _group("minCount")),
    "CompositePodGroup": (SCHEDULING, _GROUP, _group("minGroupCount")),
    "Workload": (SCHEDULING, "spec", _workload),
    "PriorityClass": ("scheduling.k8s.io/v1", "value globalDefault preemptionPolicy", _priority_class),
    "PodDisruptionBudget": ("policy/v1", "selector minAvailable maxUnavailable", _budget),
}
