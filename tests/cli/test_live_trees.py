"""What `get` says of a tree beyond its shape: pods that wait, marks, members in several domains, chains without end."""

import asyncio
from pathlib import Path

import pytest

from muster.cli.hierarchy import GETS_UP, read_hierarchy
from muster.cli.kinds import ref
from muster.client.client import Client
from muster.v1.cluster_service_pb2 import GetRequest, GetResponse
from tests.cli.conftest import GANG, Command

TREE = (Path(__file__).resolve().parents[2] / "docs/examples/tree.yaml").read_text(encoding="utf-8")
TOO_LARGE = """---
apiVersion: v1
kind: Pod
metadata: {name: worker-0-9}
spec:
  schedulingGroup: {podGroupName: workers-0}
  containers: [{name: main, resources: {requests: {cpu: 64}}}]
"""
LEVELS = 300


class CountingClient(Client):
    """Counts the objects that are asked for one by one."""

    gets = 0

    async def get(self, request: GetRequest) -> GetResponse:
        self.gets += 1
        return await super().get(request)


@pytest.fixture(scope="module")
def chain() -> str:
    """So many composites, each below the one before."""
    return "\n---\n".join(
        f"{{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {{name: c-{level}}},"
        f" spec: {{{f'parentCompositePodGroupName: c-{level - 1},' if level else ''}"
        " workloadRef: {workloadName: w, templateName: t}, schedulingPolicy: {basic: {}}}}"
        for level in range(LEVELS)
    )


def test_get_says_why_pods_of_a_scheduled_tree_wait(command: Command) -> None:
    command("apply", "-f", "-", text=TREE + TOO_LARGE)
    command("schedule", "cpg/run", "--wait", "10s")

    result = command("get", "cpg", "run")

    assert "pg/workers-0  Scheduled  3/3 pods" in result.stdout
    assert "1 pending: 0/1 nodes are available: 1 Insufficient cpu." in result.stdout


def test_a_reason_that_many_pods_have_is_said_once(command: Command) -> None:
    command("apply", "-f", "-", text=GANG.replace("minCount: 2", "minCount: 3"))

    result = command("get", "pg", "crew")

    assert "pg/crew  Unschedulable  0/3 pods  2 pending" in result.stdout
    assert "is not ready" not in result.stdout
    assert result.stdout.count("2 of 3 members") == 1


def test_get_shows_the_deletion_mark_of_a_group_and_who_leaves(command: Command) -> None:
    slow = GANG.replace("  spec:\n", "  spec:\n    terminationGracePeriodSeconds: 600\n")
    command("apply", "-f", "-", text=slow)
    command("schedule", "pg/crew", "--wait", "10s")

    command("delete", "pg/crew", "pod/crew-1")
    result = command("get", "pg", "crew")

    assert "pg/crew  Scheduled  1/2 pods  being deleted 1 leaving" in result.stdout
    assert "crew  marked    gang of 2" in command("get", "pg").stdout


def test_get_names_all_domains_in_which_members_of_a_group_run(command: Command) -> None:
    bound = TREE
    for pod, node in (("worker-0-0", "b1-0"), ("worker-0-1", "b2-0")):
        bound = bound.replace(f"{{name: {pod}}}\nspec:\n", f"{{name: {pod}}}\nspec:\n  nodeName: {node}\n")
    command("apply", "-f", "-", text=bound)

    result = command("get", "pg", "workers-0")

    assert "rack=b1,b2" in result.stdout


def test_a_chain_of_groups_is_drawn_to_where_its_fault_can_be_seen(command: Command, chain: str) -> None:
    command("apply", "-f", "-", text=chain)

    result = command("get", "cpg", "c-0")

    assert result.exit_code == 0, result.stderr
    assert f"the hierarchy has a depth of {LEVELS} levels" in result.stdout
    assert "and 292 groups below" in result.stdout


def test_the_root_of_a_chain_is_found_without_asking_for_each_group(command: Command, chain: str) -> None:
    command("apply", "-f", "-", text=chain)

    async def gets() -> int:
        async with CountingClient(command.address, cluster=command.cluster) as client:
            await read_hierarchy(client, ref("CompositePodGroup", f"c-{LEVELS - 1}"))
            return client.gets

    assert asyncio.run(gets()) <= GETS_UP + 1
