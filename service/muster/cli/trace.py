"""Traces as CSV files, and what becomes of their rows: nodes and gangs as objects.

A gang is one PodGroup with as many pods as the row says, all of which must run at once, each with the row's GPUs. Where
a trace has no CPU or memory the columns named `*_synthetic` stand in.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from muster.v1.meta_pb2 import ObjectMeta, ObjectRef
from muster.v1.node_pb2 import Node, NodeStatus
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from muster.v1.pod_pb2 import Container, Pod, PodBatch, PodSchedulingGroup, PodSpec, ResourceRequirements

GPU = "nvidia.com/gpu"
GPU_MODEL = "nvidia.com/gpu.product"
HOSTNAME = "kubernetes.io/hostname"
SOURCE = "example.com/source"
# The classes of the traces; all else is 0.
PRIORITIES = {"HP": 100}
NODE_COLUMNS = frozenset({"node", "cpu_milli", "memory_mib", "gpus"})
GANG_COLUMNS = frozenset({"source", "job_id", "submit_time_s", "num_pods", "gpus_per_pod", "duration_s"})

# More than any trace has in a column, and what a unit may have.
LARGEST_NUMBER = 10**12
MOST_PODS = 100_000

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")

_Made = TypeVar("_Made")


class TraceError(ValueError):
    """A file that does not have the columns of a trace, or a row that makes no sense."""


@dataclass(frozen=True, slots=True)
class Gang:
    """One row: pods that run together. Times in whole seconds of the trace; resources of one pod."""

    name: str
    source: str
    submit_seconds: int
    duration_seconds: int
    pods: int
    gpus: int
    cpu_milli: int
    memory_mib: int
    priority: int

    def pod_names(self) -> list[str]:
        """The names of its pods."""
        return [f"{self.name}-{number}" for number in range(self.pods)]

    def refs(self) -> Iterator[ObjectRef]:
        """Its pods, then its group."""
        for name in self.pod_names():
            yield ObjectRef(kind="Pod", name=name)
        yield ObjectRef(kind="PodGroup", name=self.name)

    def objects(self) -> list[Object]:
        """Its group and pods, to be applied."""
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=self.pods))
        group = PodGroup(
            metadata=ObjectMeta(name=self.name, labels={SOURCE: self.source}),
            spec=PodGroupSpec(scheduling_policy=policy, priority=self.priority),
        )
        resources = ResourceRequirements(requests=self._requests())
        spec = PodSpec(
            containers=[Container(name="worker", resources=resources)],
            scheduling_group=PodSchedulingGroup(pod_group_name=self.name),
            priority=self.priority,
        )
        return [
            Object(pod_group=group),
            Object(pod_batch=PodBatch(template=Pod(spec=spec), names=self.pod_names())),
        ]

    def _requests(self) -> dict[str, str]:
        amounts = {"cpu": (self.cpu_milli, "m"), "memory": (self.memory_mib, "Mi"), GPU: (self.gpus, "")}
        return {resource: f"{amount}{unit}" for resource, (amount, unit) in amounts.items() if amount}


def read_nodes(path: Path) -> list[Object]:
    """The nodes of a file in its order. Raises OSError and TraceError."""
    return list(_read(path, NODE_COLUMNS, _node))


def read_gangs(path: Path, source: str | None, limit: int | None) -> list[Gang]:
    """The first gangs of a source, by the time of their submission, then in the order of the file.

    Raises OSError and TraceError.
    """
    gangs = [gang for gang in _read(path, GANG_COLUMNS, _gang) if source in {None, gang.source}]
    if not gangs:
        raise TraceError(f"{path} has no gangs{f' of the source {source}' if source else ''}")
    first = sorted(gangs, key=lambda gang: gang.submit_seconds)[:limit]
    name, count = Counter(gang.name for gang in first).most_common(1)[0]
    if count > 1:
        raise TraceError(f"{path} has {count} gangs of the name {name!r}")
    return first


def _read(path: Path, columns: frozenset[str], make: Callable[[dict[str, str]], _Made]) -> Iterator[_Made]:
    """What is made of each row; a fault names the file, and its line if a row makes no sense."""
    with _opened(path) as lines:
        rows = csv.DictReader(lines, restval="")
        try:
            missing = columns - set(rows.fieldnames or ())
            if missing:
                raise TraceError(f"{path} lacks the columns {', '.join(sorted(missing))}")
            for row in rows:
                yield _made(row, make, f"{path}, line {rows.line_num}")
        except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise TraceError(f"{path} is no CSV file that can be read: {error}") from error


def _made(row: dict[str, str], make: Callable[[dict[str, str]], _Made], place: str) -> _Made:
    try:
        return make(row)
    except TraceError as error:
        raise TraceError(f"{place}: {error}") from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _node(row: dict[str, str]) -> Object:
    capacity = {"cpu": f"{_whole(row, 'cpu_milli')}m", "memory": f"{_whole(row, 'memory_mib')}Mi"}
    labels = {HOSTNAME: row["node"]}
    if gpus := _whole(row, "gpus"):
        capacity[GPU] = str(gpus)
    if model := row.get("gpu_model"):
        labels[GPU_MODEL] = model
    return Object(
        node=Node(metadata=ObjectMeta(name=row["node"], labels=labels), status=NodeStatus(capacity=capacity))
    )


def _gang(row: dict[str, str]) -> Gang:
    pods = _whole(row, "num_pods")
    if not 1 <= pods <= MOST_PODS:
        raise TraceError(f"num_pods is {pods}, and not 1 to {MOST_PODS:,}")
    return Gang(
        name=_NOT_IN_NAMES.sub("-", row["job_id"].lower()).strip("-."),
        source=row["source"],
        submit_seconds=_whole(row, "submit_time_s", least=-LARGEST_NUMBER),
        duration_seconds=_whole(row, "duration_s"),
        pods=pods,
        gpus=_whole(row, "gpus_per_pod"),
        cpu_milli=_whole(row, "cpu_milli") or _whole(row, "cpu_milli_synthetic"),
        memory_mib=_whole(row, "memory_mib") or _whole(row, "memory_mib_synthetic"),
        priority=PRIORITIES.get(row.get("priority_class", ""), 0),
    )


def _whole(row: dict[str, str], column: str, least: int = 0) -> int:
    """A number rounded to a whole one; an empty or missing cell is 0."""
    text = row.get(column) or "0"
    try:
        number = float(text)
    except ValueError:
        raise TraceError(f"{column} is {text!r}, which is no number") from None
    if not least <= number <= LARGEST_NUMBER:
        raise TraceError(f"{column} is {text}, and not {least:,} to {LARGEST_NUMBER:,}")
    return round(number)
