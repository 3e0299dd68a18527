"""What the console is shown in tests: a small replayed trace, and blocks of racks with trees that run and that wait."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

CLUSTER = "replayed"
BLOCK, RACK = "example.com/block", "example.com/rack"
COLUMNS = (
    "source,job_id,submit_time_s,num_pods,cpu_milli,memory_mib,gpus_per_pod,duration_s,priority_class,"
    "cpu_milli_synthetic,memory_mib_synthetic"
)
HOSTS_A_RACK = 4
Manifest = dict[str, Any]


def write_trace(folder: Path, gangs: int = 24) -> list[str]:
    """Nodes and gangs of a made-up trace, some of which have to wait; the options of `muster replay` for them."""
    nodes = [f"gpu-{index:02},32000,131072,4,{'T4' if index % 2 else 'A100'}" for index in range(12)]
    lines = [
        f"made,gang-{index},{100 + 20 * index},{1 + index * 5 % 9},,,{1 + index % 2},{150 + 30 * (index % 4)},,4000,8192"
        for index in range(gangs)
    ]
    (folder / "nodes.csv").write_text(
        "\n".join(["node,cpu_milli,memory_mib,gpus,gpu_model", *nodes, ""]), encoding="utf-8"
    )
    (folder / "gangs.csv").write_text("\n".join([COLUMNS, *lines, ""]), encoding="utf-8")
    return ["--nodes", str(folder / "nodes.csv"), "--gangs", str(folder / "gangs.csv")]


def write_racks(folder: Path) -> Path:
    """Two blocks of racks, one node cordoned, with a tree that runs in one of them."""
    running = tree("training", replicas=2, workers=3, same=RACK, within=BLOCK)
    return _written(folder / "racks.json", [*racks(), *running])


def write_waiting(folder: Path) -> Path:
    """A tree that only the cordoned node keeps waiting, a gang that waits for a member, and one that fits."""
    items = [
        *tree("pretraining", replicas=3, workers=4, same=RACK, within=BLOCK),
        *gang("short", minimum=3, pods=2),
        *gang("web", minimum=2, pods=6, cpu=2),
    ]
    return _written(folder / "waiting.json", items)


def _written(path: Path, items: list[Manifest]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


def racks() -> Iterator[Manifest]:
    for block in range(2):
        for rack in range(3):
            for host in range(HOSTS_A_RACK):
                name = f"b{block}-r{rack}-h{host}"
                labels = {BLOCK: f"block-{block}", RACK: f"b{block}-rack-{rack}"}
                yield {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": labels},
                    "spec": {"unschedulable": name == "b1-r1-h3"},
                    "status": {"capacity": {"cpu": 16, "memory": "64Gi", "pods": 32}},
                }


def tree(name: str, *, replicas: int, workers: int, same: str, within: str) -> Iterator[Manifest]:
    """A composite gang of gangs, each of which fills whole nodes of one rack of one block."""
    template = f"{name}-replica"
    yield manifest(
        "Workload", name, {"compositePodGroupTemplates": [composite(name, template, replicas, within)]}
    )
    yield manifest(
        "CompositePodGroup",
        name,
        {"workloadRef": ref(name, name), **policy(replicas, within, "minGroupCount")},
    )
    for replica in range(replicas):
        group = f"{name}-{replica}"
        yield manifest(
            "PodGroup",
            group,
            {
                "parentCompositePodGroupName": name,
                "workloadRef": ref(name, template),
                **policy(workers, same, "minCount"),
            },
        )
        yield from pods(group, workers, 12)


def composite(name: str, template: str, replicas: int, within: str) -> Manifest:
    leaf = {"name": template, "schedulingPolicy": {"gang": {"minCount": 1}}}
    return {"name": name, **policy(replicas, within, "minGroupCount"), "podGroupTemplates": [leaf]}


def gang(name: str, *, minimum: int, pods: int, cpu: int = 1) -> Iterator[Manifest]:
    yield manifest("PodGroup", name, {"schedulingPolicy": {"gang": {"minCount": minimum}}})
    yield from (pod(f"{name}-{index}", name, cpu) for index in range(pods))


def pods(group: str, number: int, cpu: int) -> Iterable[Manifest]:
    return (pod(f"{group}-{index}", group, cpu) for index in range(number))


def pod(name: str, group: str, cpu: int) -> Manifest:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "4Gi"}}}
    spec = {"schedulingGroup": {"podGroupName": group}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def policy(minimum: int, key: str, field: str) -> Manifest:
    return {
        "schedulingPolicy": {"gang": {field: minimum}},
        "schedulingConstraints": {"topology": [{"key": key}]},
    }


def ref(workload: str, template: str) -> Manifest:
    return {"workloadName": workload, "templateName": template}


def manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
