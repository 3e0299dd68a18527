"""Manifests as Kubernetes' tools write them, without `apiVersion` and `kind`; together they use every field."""

from typing import Any

Manifest = dict[str, Any]


def _condition(kind: str) -> Manifest:
    return {
        "type": kind,
        "status": "False",
        "observedGeneration": 2,
        "lastTransitionTime": "2026-03-01T10:00:05Z",
        "reason": "Unschedulable",
        "message": "1 of 2 members fit",
    }


def _metadata(name: str) -> Manifest:
    return {"name": name, "namespace": "training", "labels": {"app": "llm"}}


_SELECTOR = {
    "matchLabels": {"app": "llm"},
    "matchExpressions": [{"key": "role", "operator": "In", "values": ["worker", "leader"]}],
}
_ZONE_TERM = {
    "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["c"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n-1"]}],
}
_POD_TERM = {
    "labelSelector": _SELECTOR,
    "namespaces": ["training", "default"],
    "topologyKey": "kubernetes.io/hostname",
    "namespaceSelector": {},
    "matchLabelKeys": ["pod-template-hash"],
    "mismatchLabelKeys": ["tenant"],
}
_POD_RULES = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 30, "podAffinityTerm": _POD_TERM}],
}
_CONTAINER = {
    "name": "main",
    "resources": {
        "requests": {"cpu": "500m", "nvidia.com/gpu": "8"},
        "limits": {"memory": "1.5Gi", "nvidia.com/gpu": "8"},
    },
    "ports": [
        {"name": "nccl", "hostPort": 2049, "containerPort": 2049, "protocol": "UDP", "hostIP": "10.0.0.1"}
    ],
    "restartPolicy": "Always",
}

_NODE = {
    "metadata": {"name": "n-1", "labels": {"topology.kubernetes.io/rack": "r-7"}},
    "spec": {"unschedulable": True, "taints": [{"key": "gpu", "value": "h100", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "allocatable": {"cpu": "63500m"},
        "conditions": [_condition("Ready")],
    },
}

_POD = {
    "metadata": {
        "name": "worker-0",
        "namespace": "training",
        "uid": "4f5c8a9e-3c0b-4f2e-9c39-0d1f6a0f8c11",
        "resourceVersion": "9007199254740993",
        "generation": 2,
        "creationTimestamp": "2026-03-01T10:00:00Z",
        "deletionTimestamp": "2026-03-01T11:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"app": "llm", "example.com/tier": ""},
        "annotations": {"example.com/note": "müßig"},
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "llm",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["example.com/hold"],
    },
    "spec": {
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER | {"name": "sidecar"}],
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_ZONE_TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _ZONE_TERM}],
            },
            "podAffinity": _POD_RULES,
            "podAntiAffinity": _POD_RULES,
        },
        "tolerations": [
            {
                "key": "gpu",
                "operator": "Equal",
                "value": "h100",
                "effect": "NoExecute",
                "tolerationSeconds": 0,
            }
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
                "minDomains": 2,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "priorityClassName": "high",
        "priority": 0,
        "preemptionPolicy": "Never",
        "schedulerName": "default-scheduler",
        "schedulingGates": [{"name": "example.com/quota"}],
        "schedulingGroup": {"podGroupName": "workers"},
        "nodeName": "n-1",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": True,
    },
    "status": {
        "phase": "Running",
        "conditions": [_condition("PodScheduled")],
        "nominatedNodeName": "n-2",
        "startTime": "2026-03-01T10:00:07Z",
        "reason": "Started",
        "message": "as planned",
    },
}

_GANG = {"gang": {"minCount": 4}}
_GROUP_GANG = {"gang": {"minGroupCount": 2}}
_PLACEMENT = {
    "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]},
    "disruptionMode": {"all": {}},
    "priorityClassName": "high",
    "priority": -5,
    "preemptionPolicy": "PreemptLowerPriority",
}
_IN_A_TREE = {
    "parentCompositePodGroupName": "root",
    "workloadRef": {"workloadName": "llm", "templateName": "prefill"},
}

_POD_GROUP = {
    "metadata": _metadata("workers"),
    "spec": _IN_A_TREE | {"schedulingPolicy": _GANG} | _PLACEMENT,
    "status": {"conditions": [_condition("PodGroupInitiallyScheduled")]},
}

_BASIC_POD_GROUP = {
    "metadata": _metadata("extras"),
    "spec": {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}},
}

_COMPOSITE_POD_GROUP = {
    "metadata": _metadata("prefill"),
    "spec": _IN_A_TREE | {"schedulingPolicy": _GROUP_GANG} | _PLACEMENT,
    "status": {"conditions": [_condition("CompositePodGroupInitiallyScheduled")]},
}

_BASIC_COMPOSITE_POD_GROUP = {
    "metadata": _metadata("replicas"),
    "spec": {
        "workloadRef": {"workloadName": "llm", "templateName": "replicas"},
        "schedulingPolicy": {"basic": {}},
    },
}

_FLAT_WORKLOAD = {
    "metadata": _metadata("flat"),
    "spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": _GANG} | _PLACEMENT]},
}

_WORKLOAD = {
    "metadata": _metadata("llm"),
    "spec": {
        "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "llm"},
        "compositePodGroupTemplates": [
            {
                "name": "replicas",
                "schedulingPolicy": _GROUP_GANG,
                "compositePodGroupTemplates": [
                    {
                        "name": "prefill",
                        "schedulingPolicy": {"basic": {}},
                        "podGroupTemplates": [{"name": "workers", "schedulingPolicy": _GANG} | _PLACEMENT],
                    }
                    | _PLACEMENT
                ],
            }
            | _PLACEMENT
        ],
    },
}

_PRIORITY_CLASS = {
    "metadata": {"name": "high"},
    "value": 1000,
    "globalDefault": True,
    "description": "for what earns money",
    "preemptionPolicy": "Never",
}

_BUDGET = {
    "metadata": _metadata("keep-half"),
    "spec": {"minAvailable": "50%", "selector": _SELECTOR},
    "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 4},
}

_EMPTY_BUDGET = {"metadata": _metadata("all"), "spec": {"maxUnavailable": "0", "selector": {}}}

MANIFESTS: dict[str, tuple[str, Manifest]] = {
    "node": ("Node", _NODE),
    "pod": ("Pod", _POD),
    "pod-group": ("PodGroup", _POD_GROUP),
    "basic-pod-group": ("PodGroup", _BASIC_POD_GROUP),
    "composite-pod-group": ("CompositePodGroup", _COMPOSITE_POD_GROUP),
    "basic-composite-pod-group": ("CompositePodGroup", _BASIC_COMPOSITE_POD_GROUP),
    "flat-workload": ("Workload", _FLAT_WORKLOAD),
    "workload": ("Workload", _WORKLOAD),
    "priority-class": ("PriorityClass", _PRIORITY_CLASS),
    "budget": ("PodDisruptionBudget", _BUDGET),
    "budget-of-a-namespace": ("PodDisruptionBudget", _EMPTY_BUDGET),
}
