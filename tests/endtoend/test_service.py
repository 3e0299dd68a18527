"""What a caller sees of a real service, on both stores: groups, gates, decisions, deletes, reports, refusals."""

import grpc

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode, GroupStatus
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.outcome_pb2 import ApplyOutcome, DeleteOutcome, ReportOutcome
from muster.v1.pod_report_pb2 import PodReport
from muster.v1.queue_pb2 import UnitState
from tests.endtoend.cluster import CALL_SECONDS, WAIT_SECONDS, Cluster, condition, outcome_of, refused
from tests.endtoend.service import Service, gang, member, node


def basic(name: str, size: int) -> list[Object]:
    """A PodGroup whose pods may run one without the other."""
    group, *pods = gang(name, size)
    group.pod_group.spec.scheduling_policy.basic.SetInParent()
    group.pod_group.spec.scheduling_policy.ClearField("gang")
    return [group, *pods]


def test_a_gang_is_bound_not_at_all_until_there_is_room_for_all_of_it(cluster: Cluster) -> None:
    cluster.apply(node("first", cpu="2"), *gang("crew", 3))
    before = cluster.schedule("PodGroup", "crew").decision
    bound_before = cluster.bound()

    cluster.apply(node("second", cpu="1"))

    after = cluster.until_scheduled("crew")
    assert (before.code, bound_before) == (DecisionCode.DECISION_CODE_UNSCHEDULABLE, set())
    assert after.code == DecisionCode.DECISION_CODE_SCHEDULED
    assert sorted(cluster.nodes().values()) == ["first", "first", "second"]


def test_a_basic_group_binds_the_pods_that_fit_and_keeps_the_rest_waiting(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="2"), *basic("flock", 3))

    cluster.schedule("PodGroup", "flock", wait=1)

    assert len(cluster.bound()) == 2
    assert cluster.queued("flock").pending_pod_count == 1


def test_groups_and_pods_carry_the_condition_of_their_last_cycle(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="2"), *gang("fits", 2), *gang("waits", 2))
    cluster.until_scheduled("fits")

    cluster.schedule("PodGroup", "waits")

    seen = {
        name: condition(
            list(cluster.get("PodGroup", name).pod_group.status.conditions), "PodGroupInitiallyScheduled"
        )
        for name in ("fits", "waits")
    }
    pod = condition(list(cluster.get("Pod", "waits-0").pod.status.conditions), "PodScheduled")
    assert (seen["fits"].status, seen["fits"].reason) == ("True", "Scheduled")
    assert (seen["waits"].status, seen["waits"].reason) == ("False", "Unschedulable")
    assert (pod.status, pod.reason) == ("False", "Unschedulable")


def test_a_gated_pod_holds_its_gang_until_the_gate_is_lifted(cluster: Cluster) -> None:
    group, gated, other = gang("crew", 2)
    gated.pod.spec.scheduling_gates.add(name="example.com/quota")
    cluster.apply(node("node"), group, gated, other)
    held = cluster.schedule("PodGroup", "crew")
    gated.pod.spec.ClearField("scheduling_gates")

    cluster.apply(gated)

    cluster.until_scheduled("crew")
    assert held.queue.state == UnitState.UNIT_STATE_GATED
    assert cluster.bound() == {"crew-0", "crew-1"}


def test_a_gang_short_of_members_waits_for_the_last_one(cluster: Cluster) -> None:
    group, first, last = gang("crew", 2)
    cluster.apply(node("node"), group, first)
    state = cluster.queued("crew").state

    cluster.apply(last)

    cluster.until_scheduled("crew")
    assert state == UnitState.UNIT_STATE_GATED
    assert cluster.bound() == {"crew-0", "crew-1"}


def test_a_group_whose_parent_is_missing_stands_among_the_pending_groups(cluster: Cluster) -> None:
    group, pod = gang("leaf", 1)
    group.pod_group.spec.parent_composite_pod_group_name = "root"
    group.pod_group.spec.workload_ref.workload_name = "training"
    group.pod_group.spec.workload_ref.template_name = "leaf"

    cluster.apply(node("node"), group, pod)

    [pending] = cluster.queue().pending_pod_groups
    assert (pending.ref.name, pending.missing.kind, pending.missing.name) == (
        "leaf",
        "CompositePodGroup",
        "root",
    )
    assert cluster.bound() == set()


def test_of_two_units_the_one_of_higher_priority_takes_the_room_that_comes(cluster: Cluster) -> None:
    low, high = gang("low", 2), gang("urgent", 2)
    for item in high[1:]:
        item.pod.spec.priority = 100
    high[0].pod_group.spec.priority = 100
    cluster.apply(node("small", cpu="1"), *low, *high)
    cluster.schedule("PodGroup", "low")
    cluster.schedule("PodGroup", "urgent")

    cluster.apply(node("room", cpu="2"))

    cluster.until_scheduled("urgent")
    assert {"urgent-0", "urgent-1"} <= cluster.bound()


def test_watch_decisions_tells_each_decision_once_in_order_with_where_its_pods_went(cluster: Cluster) -> None:
    start = cluster.apply(node("node")).revision
    names = [f"crew-{number}" for number in range(5)]
    for name in names:
        cluster.apply(*gang(name, 2))
        cluster.until_scheduled(name)

    seen: list[Decision] = []
    watch = cluster.service.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(
            cluster=cluster.name, from_revision=start, codes=[DecisionCode.DECISION_CODE_SCHEDULED]
        ),
        timeout=CALL_SECONDS,
    )
    for message in watch:
        seen += message.decisions
        if len(seen) >= len(names):
            break
    watch.cancel()

    told = {
        pod: decision.assignments.nodes[index]
        for decision in seen
        for pod, index in zip(decision.assignments.pods, decision.assignments.node_index, strict=True)
    }
    assert [decision.unit.name for decision in seen] == names
    assert told == cluster.nodes()


def test_a_decision_is_found_by_its_id_and_in_the_list(cluster: Cluster) -> None:
    cluster.apply(node("node"), *gang("crew", 2))
    decided = cluster.until_scheduled("crew")

    request = spb.GetDecisionRequest(cluster=cluster.name, id=decided.id)
    found = cluster.service.scheduler.GetDecision(request, timeout=CALL_SECONDS).decision

    assert found == cluster.list_decisions()[0] == decided
    assert found.result.status == GroupStatus.GROUP_STATUS_SUCCESS
    assert (found.result.required_count, found.result.satisfied_count) == (2, 2)


def test_a_decision_that_was_never_made_is_not_found(cluster: Cluster) -> None:
    cluster.apply(node("node"))

    with refused(grpc.StatusCode.NOT_FOUND) as refusal:
        cluster.service.scheduler.GetDecision(spb.GetDecisionRequest(cluster=cluster.name, id="no-such"))

    assert refusal.error.reason == "DECISION_NOT_FOUND"


def test_a_dry_run_decides_and_changes_nothing(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="1"), *gang("crew", 2))
    cluster.schedule("PodGroup", "crew")
    before = (cluster.revision(), cluster.queue())

    answer = cluster.schedule("Pod", "crew-1", dry=True)

    assert answer.decision.unit == ObjectRef(kind="PodGroup", namespace="default", name="crew")
    assert answer.decision.code == DecisionCode.DECISION_CODE_UNSCHEDULABLE
    assert (cluster.revision(), cluster.queue()) == before


def test_schedule_waits_through_failing_cycles_until_there_is_room(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="1"), *gang("crew", 2))
    cluster.schedule("PodGroup", "crew")
    waiting = cluster.service.scheduler.Schedule.future(
        cluster.schedule_request("PodGroup", "crew", wait=WAIT_SECONDS), timeout=CALL_SECONDS
    )

    cluster.apply(node("room"))

    assert waiting.result().decision.code == DecisionCode.DECISION_CODE_SCHEDULED


def test_schedule_without_room_answers_with_the_last_decision_when_the_wait_is_over(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="1"), *gang("crew", 2))

    answer = cluster.schedule("PodGroup", "crew", wait=1)

    assert answer.decision.code == DecisionCode.DECISION_CODE_UNSCHEDULABLE
    assert answer.queue.state in {UnitState.UNIT_STATE_UNSCHEDULABLE, UnitState.UNIT_STATE_BACKOFF}


def test_a_deleted_group_stays_marked_until_its_last_pod_is_gone(cluster: Cluster) -> None:
    cluster.apply(node("node"), *gang("crew", 2))
    cluster.until_scheduled("crew")

    [outcome] = cluster.delete("PodGroup", "crew").outcomes
    marked = cluster.get("PodGroup", "crew").pod_group
    cluster.delete("Pod", "crew-0", "crew-1")

    assert outcome == DeleteOutcome.DELETE_OUTCOME_MARKED
    assert marked.metadata.HasField("deletion_timestamp")
    with refused(grpc.StatusCode.NOT_FOUND):
        cluster.get("PodGroup", "crew")


def test_a_deleted_pod_makes_room_for_a_unit_that_waits(cluster: Cluster) -> None:
    cluster.apply(node("node", cpu="2"), *gang("first", 2))
    cluster.until_scheduled("first")
    cluster.apply(*gang("second", 2))
    cluster.schedule("PodGroup", "second")

    cluster.delete("Pod", "first-0", "first-1")

    cluster.until_scheduled("second")
    assert cluster.bound() == {"second-0", "second-1"}


def test_a_delete_that_names_one_missing_object_deletes_none(cluster: Cluster) -> None:
    cluster.apply(node("node"))

    with refused(grpc.StatusCode.NOT_FOUND):
        cluster.delete("Node", "node", "gone")

    assert cluster.get("Node", "node").node.metadata.name == "node"


def test_reports_move_a_pod_through_its_life(cluster: Cluster) -> None:
    cluster.apply(node("node"), *gang("crew", 1))
    cluster.until_scheduled("crew")
    uid = cluster.get("Pod", "crew-0").pod.metadata.uid

    def report(**what: object) -> int:
        return cluster.report(PodReport(name="crew-0", uid=uid, **what)).outcomes[0]  # type: ignore[arg-type]

    running = report(phase_changed={"phase": "Running"})
    back = report(phase_changed={"phase": "Pending"})
    phase = cluster.get("Pod", "crew-0").pod.status.phase
    removed = report(removed={})
    again = report(removed={})

    assert [running, back, removed, again] == [
        ReportOutcome.REPORT_OUTCOME_ACCEPTED,
        ReportOutcome.REPORT_OUTCOME_STALE,
        ReportOutcome.REPORT_OUTCOME_ACCEPTED,
        ReportOutcome.REPORT_OUTCOME_UNKNOWN_POD,
    ]
    assert phase == "Running"
    assert cluster.nodes() == {}


def test_a_failed_binding_sends_the_pod_to_another_node(cluster: Cluster) -> None:
    cluster.apply(node("node-a"), node("node-b"), *gang("crew", 1))
    cluster.until_scheduled("crew")
    pod = cluster.get("Pod", "crew-0").pod
    failed = PodReport(name="crew-0", uid=pod.metadata.uid)
    failed.binding_failed.node_name = pod.spec.node_name
    failed.binding_failed.reason = "KubeletRefused"

    cluster.report(failed)

    cluster.until_scheduled("crew")
    assert {cluster.nodes()["crew-0"], pod.spec.node_name} == {"node-a", "node-b"}


def test_two_clusters_with_the_same_names_know_nothing_of_each_other(service: Service) -> None:
    large, small = Cluster(service, "twin-large"), Cluster(service, "twin-small")
    large.apply(node("node"), *gang("crew", 4))
    small.apply(node("node", cpu="2"), *gang("crew", 4))

    large.until_scheduled("crew")
    small.schedule("PodGroup", "crew")

    assert (len(large.bound()), len(small.bound())) == (4, 0)
    assert [unit.unit.name for unit in small.queue().units] == ["crew"]


def test_one_bad_object_keeps_all_others_of_the_call_out_and_makes_no_cluster(cluster: Cluster) -> None:
    bad = member("Not A Name", "crew")
    bad.pod.spec.containers[0].resources.requests["cpu"] = "much"

    with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
        cluster.apply(node("node"), *gang("crew", 2), bad)

    fields = {violation.field for violation in refusal.error.details.violations}
    assert refusal.error.reason == "INVALID_OBJECTS"
    assert "2 fault(s) in the objects, first objects[4].pod." in str(refusal.error)
    assert fields == {
        "objects[4].pod.metadata.name",
        "objects[4].pod.spec.containers[0].resources.requests[cpu]",
    }
    known = cluster.service.cluster.ListClusters(pb.ListClustersRequest()).clusters
    assert cluster.name not in {each.name for each in known}


def test_a_valid_call_that_only_asks_makes_no_cluster(cluster: Cluster) -> None:
    answer = cluster.apply(node("node"), *gang("crew", 2), validate_only=True)

    known = cluster.service.cluster.ListClusters(pb.ListClustersRequest()).clusters
    assert [result.outcome for result in answer.results] == [ApplyOutcome.APPLY_OUTCOME_CREATED] * 4
    assert cluster.name not in {each.name for each in known}


def test_a_call_with_more_objects_than_allowed_is_refused_whole(cluster: Cluster) -> None:
    cluster.apply(node("node"))
    before = cluster.revision()

    with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
        cluster.apply(*(node(f"extra-{number}") for number in range(20_001)))

    assert refusal.error.reason == "TOO_MANY_OBJECTS"
    assert cluster.revision() == before


def test_a_stale_resource_version_stores_nothing(cluster: Cluster) -> None:
    cluster.apply(node("node"))
    cluster.apply(node("node", cpu="8"))
    stale = node("node", cpu="4")
    stale.node.metadata.resource_version = 1

    with refused(grpc.StatusCode.ABORTED) as refusal:
        cluster.apply(stale, node("other"))

    assert refusal.error.reason == "RESOURCE_VERSION_MISMATCH"
    assert [item.node.metadata.name for item in cluster.service.objects("Node", cluster.name)] == ["node"]
    assert cluster.get("Node", "node").node.status.allocatable["cpu"] == "8"


def test_a_unit_that_does_not_exist_is_refused_not_decided(cluster: Cluster) -> None:
    cluster.apply(node("node"))

    assert outcome_of(lambda: cluster.schedule("PodGroup", "gone")) is grpc.StatusCode.NOT_FOUND
    assert outcome_of(lambda: cluster.schedule("Sandwich", "node")) is grpc.StatusCode.INVALID_ARGUMENT


def test_nothing_behind_a_refused_request_of_a_stream_is_applied(cluster: Cluster) -> None:
    names = ["n-0", "n-1", "Wrong Name", *(f"n-{number}" for number in range(3, 10))]
    requests = [pb.ApplyRequest(cluster=cluster.name, objects=[node(name)]) for name in names]

    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        list(cluster.service.cluster.ApplyStream(iter(requests)))

    assert [each.node.metadata.name for each in cluster.service.objects("Node", cluster.name)] == names[:2]


def test_a_stream_is_applied_in_its_order_however_large_its_first_request_is(cluster: Cluster) -> None:
    nodes = [node(f"n-{number}") for number in range(2_000)]
    cluster.apply(*nodes)
    cordoned = node("n-0")
    cordoned.node.spec.unschedulable = True
    for each in nodes:
        each.node.metadata.labels["seen"] = "again"
    requests = [pb.ApplyRequest(cluster=cluster.name, objects=sent) for sent in (nodes, [cordoned])]

    answers = [each.response for each in cluster.service.cluster.ApplyStream(iter(requests))]

    assert answers[0].revision < answers[1].revision
    assert cluster.get("Node", "n-0").node.spec.unschedulable
