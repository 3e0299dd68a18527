"""Replays of small traces against a real service, and the parts that need none."""

import gzip
import json
from fractions import Fraction
from pathlib import Path

import pytest

from muster.cli.replay_record import Record, percentile
from muster.cli.state_check import half_gangs, over_committed, quantity, request_of
from muster.cli.trace import Gang, TraceError, read_gangs, read_nodes
from muster.v1.meta_pb2 import ObjectMeta
from muster.v1.node_pb2 import Node, NodeStatus
from muster.v1.pod_group_pb2 import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from muster.v1.pod_pb2 import Container, Pod, PodSchedulingGroup, PodSpec, ResourceRequirements
from tests.cli.conftest import Command

NODES = "node,cpu_milli,memory_mib,gpus,gpu_model\na,32000,65536,2,T4\nb,32000,65536,2,T4\n"
COLUMNS = (
    "source,job_id,submit_time_s,num_pods,cpu_milli,memory_mib,gpus_per_pod,duration_s,priority_class,"
    "cpu_milli_synthetic,memory_mib_synthetic\n"
)
# The second waits until the first has ended; the third fits beside neither; the fourth comes too late for the limit.
GANGS = COLUMNS + (
    "x,G-1,100,4,,,1,50,,4000,8192\n"
    "x,G-2,120,3,,,1,50,,4000,8192\n"
    "y,Other,130,1,,,1,50,,4000,8192\n"
    "x,G-3,140,9,,,1,50,,4000,8192\n"
    "x,G-4,160,1,,,1,50,,4000,8192\n"
)


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "gangs.csv").write_text(GANGS, encoding="utf-8")
    return ["--nodes", str(tmp_path / "nodes.csv"), "--gangs", str(tmp_path / "gangs.csv"), "--source", "x"]


def test_a_replay_places_ends_and_reports(command: Command, trace: list[str], tmp_path: Path) -> None:
    result = command("replay", *trace, "--report", str(tmp_path / "report"))

    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (report["gangs"], report["placed"], report["waiting"]) == (4, 3, 1)
    assert list(report["waiting_reasons"]) == ["g-3"]
    assert report["wait_trace_seconds"]["longest"] == 30
    assert report["gpu_utilisation"]["peak"] == 1
    assert report["checks"]["faults"] == []
    assert (tmp_path / "report" / "replay.png").read_bytes().startswith(b"\x89PNG")


def test_two_replays_in_lock_step_decide_the_same(command: Command, trace: list[str]) -> None:
    first = command.json("replay", *trace)
    second = command.json("replay", *trace, "--replace")

    assert first["placements_sha256"] == second["placements_sha256"]


def test_a_replay_against_the_clock_submits_every_gang(command: Command, trace: list[str]) -> None:
    report = command.json("replay", *trace, "--speed", "500")

    assert report["gangs"] == 4
    assert report["checks"]["faults"] == []


def test_a_replay_wants_a_cluster_of_its_own(command: Command, trace: list[str]) -> None:
    command("apply", "-f", "-", text="{apiVersion: v1, kind: Node, metadata: {name: n}}")

    result = command("replay", *trace)

    assert result.exit_code == 2
    assert "--replace" in result.stderr


def test_gangs_come_by_time_and_have_the_synthetic_resources_where_there_are_no_others(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gangs.csv"
    path.write_text(f"{COLUMNS}x,B,9,2,,,1,5,HP,4000,8192\nx,A,3,1,250,64,0,5,,4000,8192\n", encoding="utf-8")

    assert read_gangs(path, "x", None) == [
        Gang("a", "x", 3, 5, pods=1, gpus=0, cpu_milli=250, memory_mib=64, priority=0),
        Gang("b", "x", 9, 5, pods=2, gpus=1, cpu_milli=4000, memory_mib=8192, priority=100),
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"node,cpu_milli\na,1\n", id="columns are missing"),
        pytest.param(b"", id="empty"),
        pytest.param(NODES.replace("32000", "many").encode(), id="no number"),
        pytest.param(NODES.replace("32000", "-1").encode(), id="a negative number"),
        pytest.param(NODES.replace("32000", "inf").encode(), id="an infinite number"),
        pytest.param(NODES.replace("32000", "nan").encode(), id="not a number"),
        pytest.param(NODES.replace("32000", "1e300").encode(), id="a number beyond all traces"),
        pytest.param(NODES.replace("32000", "9" * 200_000).encode(), id="an endless cell"),
        pytest.param(NODES.encode("utf-16"), id="another encoding"),
        pytest.param(bytes(range(256)), id="binary"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "nodes.csv").write_bytes(content)

    with pytest.raises(TraceError, match=r"nodes\.csv"):
        read_nodes(tmp_path / "nodes.csv")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(NODES.encode(), id="not compressed"),
        pytest.param(gzip.compress(NODES.encode())[:-12], id="cut off"),
        pytest.param(gzip.compress(NODES.encode())[:10] + bytes([255] * 40), id="damaged"),
        pytest.param(gzip.compress(bytes(range(256))), id="binary inside"),
    ],
)
def test_a_compressed_file_that_is_none_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "nodes.csv.gz").write_bytes(content)

    with pytest.raises(TraceError, match=r"nodes\.csv\.gz"):
        read_nodes(tmp_path / "nodes.csv.gz")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        pytest.param("x,A,3,0,,,1,5,,1,1\n", "line 2: num_pods is 0", id="no pods"),
        pytest.param("x,A,3,1e9,,,1,5,,1,1\n", "line 2: num_pods is 1000000000", id="too many pods"),
        pytest.param(
            "x,A,3,1,,,1,5,,1,1\nx,B,3,1,,,1,-5,,1,1\n", "line 3: duration_s is -5", id="a negative time"
        ),
        pytest.param("x,A\n", "line 2: num_pods is 0", id="a row that breaks off"),
        pytest.param(
            "x,A,3,1,,,1,5,,1,1\nx,a,4,1,,,1,5,,1,1\n", "2 gangs of the name 'a'", id="a name twice"
        ),
    ],
)
def test_gangs_that_make_no_sense_are_refused_by_their_line(tmp_path: Path, rows: str, fault: str) -> None:
    (tmp_path / "gangs.csv").write_text(COLUMNS + rows, encoding="utf-8")

    with pytest.raises(TraceError, match=fault):
        read_gangs(tmp_path / "gangs.csv", None, None)


def test_a_binary_file_is_wrong_usage_of_a_replay(command: Command, trace: list[str], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(bytes(range(256)))

    result = command("replay", *trace)

    assert result.exit_code == 2
    assert "nodes.csv is no CSV file that can be read" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [("100m", Fraction(1, 10)), ("2", Fraction(2)), ("1Ki", Fraction(1024)), ("1e3", Fraction(1000)), (".5M", Fraction(500_000))],
)  # fmt: skip
def test_a_quantity_is_exact(text: str, expected: Fraction) -> None:
    assert quantity(text) == expected


def _pod(name: str, node: str, cpu: str, group: str = "") -> Pod:
    containers = [Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))]
    spec = PodSpec(
        containers=containers, node_name=node, scheduling_group=PodSchedulingGroup(pod_group_name=group)
    )
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


def test_the_check_finds_an_over_committed_node() -> None:
    node = Node(metadata=ObjectMeta(name="n"), status=NodeStatus(capacity={"cpu": "1", "pods": "9"}))

    faults = over_committed([node], [_pod("a", "n", "600m"), _pod("b", "n", "500m")])

    assert faults == ["n has 1 cpu and gives away 1.1"]


def test_the_check_finds_a_node_with_too_many_pods() -> None:
    node = Node(metadata=ObjectMeta(name="n"), status=NodeStatus(capacity={"cpu": "1", "pods": "1"}))

    assert over_committed([node], [_pod("a", "n", "0"), _pod("b", "n", "0")]) == [
        "n has 1 pods and gives away 2"
    ]


def test_the_check_finds_pods_on_a_node_that_does_not_exist() -> None:
    assert over_committed([], [_pod("a", "gone", "0")]) == ["pods are bound to gone, which does not exist"]


def test_the_check_finds_half_a_gang() -> None:
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=2))
    group = PodGroup(metadata=ObjectMeta(name="g"), spec=PodGroupSpec(scheduling_policy=policy))

    assert half_gangs([group], [_pod("a", "n", "0", "g"), _pod("b", "", "0", "g")]) == [
        "the gang g has 1 of 2 pods bound"
    ]
    assert half_gangs([group], [_pod("a", "", "0", "g"), _pod("b", "", "0", "g")]) == []


def test_init_containers_count_by_the_largest() -> None:
    pod = _pod("p", "n", "1")
    for cpu in ("3", "2"):
        pod.spec.init_containers.add(name="i", resources=ResourceRequirements(requests={"cpu": cpu}))

    assert request_of(pod)["cpu"] == 3


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (99, 4), (100, 4), (1, 1)])
def test_a_percentile_is_a_value_that_occurred(percent: float, expected: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == expected


def test_utilisation_counts_each_state_as_long_as_it_lasted() -> None:
    record = Record(gpus_in_all=4, nodes=1)
    gang = Gang("g", "x", 0, 10, pods=2, gpus=1, cpu_milli=0, memory_mib=0, priority=0)
    record.submit(gang)
    record.place(record.units["g"], 0.0, [])
    record.sample(0.0)
    record.end(record.units["g"], 10.0)
    record.sample(10.0)
    record.sample(40.0)

    assert record.report()["gpu_utilisation"] == {"mean": 0.125, "peak": 0.5}
