"""Schedules a gang with nothing but the generated stubs.

Stores a node, a PodGroup and its pods in one call, which waits for the decision, and prints where the pods go. Needs a server:
`muster serve`, then `python clients/examples/schedule_a_gang.py [ADDRESS]`.
"""

from __future__ import annotations

import sys

import grpc
from google.protobuf.duration_pb2 import Duration

from muster.v1.cluster_service_pb2 import ApplyRequest
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.meta_pb2 import ObjectMeta
from muster.v1.node_pb2 import Node, NodeStatus
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from muster.v1.pod_pb2 import Container, Pod, PodBatch, PodSchedulingGroup, PodSpec, ResourceRequirements

CLUSTER = "example-gang"
PODS = 4
WAIT_SECONDS = 30


def gang() -> list[Object]:
    """A node with room for the pods, the group that wants all of them at once, and the pods."""
    node = Node(
        metadata=ObjectMeta(name="machine"),
        status=NodeStatus(capacity={"cpu": "16", "memory": "64Gi"}),
    )
    group = PodGroup(
        metadata=ObjectMeta(name="gang"),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=PODS))
        ),
    )
    requests = ResourceRequirements(requests={"cpu": "2", "memory": "4Gi"})
    template = Pod(
        spec=PodSpec(
            containers=[Container(name="worker", resources=requests)],
            scheduling_group=PodSchedulingGroup(pod_group_name="gang"),
        )
    )
    batch = PodBatch(template=template, names=[f"worker-{number}" for number in range(PODS)])
    return [Object(node=node), Object(pod_group=group), Object(pod_batch=batch)]


def main(address: str) -> int:
    """Prints the placement; the exit status is 1 if the gang was not scheduled."""
    with grpc.insecure_channel(address) as channel:
        request = ApplyRequest(cluster=CLUSTER, objects=gang(), wait=Duration(seconds=WAIT_SECONDS))
        [decision] = ClusterServiceStub(channel).Apply(request).decisions
    print(DecisionCode.Name(decision.code), decision.message)  # noqa: T201
    for pod, index in zip(decision.assignments.pods, decision.assignments.node_index, strict=True):
        print(f"{pod} -> {decision.assignments.nodes[index]}")  # noqa: T201
    return 0 if decision.code == DecisionCode.DECISION_CODE_SCHEDULED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051"))
