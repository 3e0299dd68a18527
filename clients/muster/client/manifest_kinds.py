"""Which apiVersion and kind stand for which object, and how older versions are spelled today.

The tables of this module and `manifest_fields.WRITTEN_AS_NUMBERS` are all that the library knows of Kubernetes; the
fields come from the descriptors of `muster.v1`.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULING = "scheduling.k8s.io"
GROUP_VERSIONS = ("v1alpha2", "v1alpha3", "v1beta1", "v1")
DISRUPTION_MODES_V1ALPHA2 = {"Pod": "single", "PodGroup": "all"}

# Kind to the field of `Object` that carries it, and to the apiVersion that manifests are written with.
FIELDS = {
    "Node": "node",
    "Pod": "pod",
    "PodGroup": "pod_group",
    "CompositePodGroup": "composite_pod_group",
    "Workload": "workload",
    "PriorityClass": "priority_class",
    "PodDisruptionBudget": "pod_disruption_budget",
}
KINDS = {field: kind for kind, field in FIELDS.items()}
CLUSTER_SCOPED = frozenset({"Node", "PriorityClass"})
WRITTEN_VERSIONS = {
    "Node": "v1",
    "Pod": "v1",
    "PodGroup": f"{SCHEDULING}/v1alpha3",
    "CompositePodGroup": f"{SCHEDULING}/v1alpha3",
    "Workload": f"{SCHEDULING}/v1alpha3",
    "PriorityClass": f"{SCHEDULING}/v1",
    "PodDisruptionBudget": "policy/v1",
}

_READ_VERSIONS = {
    "Node": {"v1"},
    "Pod": {"v1"},
    "PodGroup": {f"{SCHEDULING}/{version}" for version in GROUP_VERSIONS},
    "CompositePodGroup": {f"{SCHEDULING}/{version}" for version in GROUP_VERSIONS[1:]},
    "Workload": {f"{SCHEDULING}/{version}" for version in GROUP_VERSIONS},
    "PriorityClass": {f"{SCHEDULING}/v1", f"{SCHEDULING}/v1beta1"},
    "PodDisruptionBudget": {"policy/v1"},
}


def refusal(document: Mapping[object, object]) -> tuple[str, str] | None:
    """The field ("kind" or "apiVersion") for which the document is none of ours and why; None if it is."""
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or kind not in FIELDS:
        fault = _fault(kind, "a kind that Muster stores")
        return "kind", f"{fault}: one of {', '.join(FIELDS)}, List"
    if not isinstance(version, str) or version not in _READ_VERSIONS[kind]:
        fault = _fault(version, f"a version of {kind}")
        return "apiVersion", f"{fault}: one of {', '.join(sorted(_READ_VERSIONS[kind]))}"
    return None


def _fault(value: object, wanted: str) -> str:
    if not value:
        return "is missing"
    return f"{value!r} is not {wanted}" if isinstance(value, str) else "must be text"


def in_present_words(document: Mapping[object, object]) -> Mapping[object, object]:
    """The document with the fields of `v1alpha2` under their present names; the given one is not changed."""
    spec = document.get("spec")
    if document.get("apiVersion") != f"{SCHEDULING}/v1alpha2" or not isinstance(spec, dict):
        return document
    spec = _with_present_mode(spec)
    templates = spec.get("podGroupTemplates")
    if isinstance(templates, list):
        spec["podGroupTemplates"] = [
            _with_present_mode(template) if isinstance(template, dict) else template for template in templates
        ]
    reference = spec.get("podGroupTemplateRef")
    if isinstance(reference, dict) and "workloadRef" not in spec:
        del spec["podGroupTemplateRef"]
        spec["workloadRef"] = _workload_reference(reference)
    return {**document, "spec": spec}


def _with_present_mode(spec: Mapping[object, object]) -> dict[object, object]:
    """A copy in which a disruption mode that is one word is the union of today."""
    copy = dict(spec)
    mode = copy.get("disruptionMode")
    if isinstance(mode, str) and mode in DISRUPTION_MODES_V1ALPHA2:
        copy["disruptionMode"] = {DISRUPTION_MODES_V1ALPHA2[mode]: {}}
    return copy


def _workload_reference(reference: Mapping[object, object]) -> dict[object, object]:
    """Both spellings of `v1alpha2`: the two names, or the two names under `workload`; other keys are kept."""
    inner = reference.get("workload")
    names = dict(inner) if isinstance(inner, dict) else dict(reference)
    if "podGroupTemplateName" in names:
        names["templateName"] = names.pop("podGroupTemplateName")
    return names
