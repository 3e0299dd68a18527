from muster.core.recheck import Conflict, first_conflict
from muster.model.meta import LabelSelector
from muster.model.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from tests.dsl import Cluster, node, pod
from tests.dsl.nodes import HOSTNAME
from tests.dsl.state import state_of

ALONE = Affinity(
    pod_anti_affinity=PodAffinity(
        required=(PodAffinityTerm(label_selector=LabelSelector({"app": "x"}), topology_key=HOSTNAME),)
    )
)


def recheck(
    cluster: Cluster, *assignments: tuple[Pod, str], excluded: dict[int, frozenset[str]] | None = None
) -> Conflict | None:
    signatures = [cluster._signature(item) for item, _ in assignments]
    before = state_of(cluster.snapshot)
    conflict = first_conflict(
        cluster.snapshot, cluster.profile, signatures, [name for _, name in assignments], excluded
    )
    assert state_of(cluster.snapshot) == before
    return conflict


def test_assignments_that_fit_have_no_conflict() -> None:
    cluster = Cluster(node("a", "2"), node("b", "1"))

    assert recheck(cluster, (pod(), "a"), (pod(), "b"), (pod(), "a"), (pod(cpu="0"), "b")) is None


def test_the_first_pod_that_lacks_room_is_named() -> None:
    cluster = Cluster(node("a", "2"), node("b", "4"))
    cluster.runs(pod(), "a")

    conflict = recheck(cluster, (pod(), "b"), (pod(), "a"), (pod(), "a"), (pod(), "a"))

    assert conflict is not None
    assert (conflict.position, conflict.node_name) == (2, "a")
    assert [reason.code for reason in conflict.reasons] == ["INSUFFICIENT_CPU"]


def test_a_node_that_is_gone_is_a_conflict() -> None:
    conflict = recheck(Cluster(node("a")), (pod(), "a"), (pod(), "b"))

    assert conflict is not None
    assert (conflict.position, conflict.reasons[0].code) == (1, "NODE_GONE")


def test_a_node_that_is_unschedulable_by_now_is_a_conflict() -> None:
    conflict = recheck(Cluster(node("a", unschedulable=True)), (pod(), "a"))

    assert conflict is not None
    assert conflict.reasons[0].code == "NODE_UNSCHEDULABLE"


def test_two_pods_that_share_a_host_port_conflict() -> None:
    conflict = recheck(Cluster(node("a")), (pod(host_port=80), "a"), (pod(host_port=80), "a"))

    assert conflict is not None
    assert (conflict.position, conflict.reasons[0].code) == (1, "HOST_PORTS")


def test_pods_that_read_others_are_checked_with_those_before_them_in_place() -> None:
    lonely = pod(labels={"app": "x"}, affinity=ALONE)
    cluster = Cluster(node("a"), node("b"))

    conflict = recheck(cluster, (lonely, "a"), (lonely, "b"), (pod(labels={"app": "x"}), "a"))

    assert conflict is not None
    assert (conflict.position, conflict.reasons[0].code) == (2, "POD_ANTI_AFFINITY")


def test_a_node_excluded_for_one_pod_is_a_conflict_for_that_pod_alone() -> None:
    conflict = recheck(Cluster(node("a")), (pod(), "a"), (pod(), "a"), excluded={1: frozenset({"a"})})

    assert conflict is not None
    assert (conflict.position, conflict.reasons[0].code) == (1, "BINDING_FAILED")
