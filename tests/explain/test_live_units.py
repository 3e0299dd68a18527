"""Units of a live cluster in every state: what holds each group, what is at fault, what runs, and helps carried out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.core.decision import GroupResult, Reason, Status
from muster.core.explain.explanation import Help, results_below
from muster.engine.errors import FailedPreconditionError, NotFoundError
from muster.engine.explaining import Told, WhyQuestion
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from tests.engine.preempting_cluster import CLIENTS_EVICT, full_cluster
from tests.engine.tree_cluster import (
    PROFILE,
    TreeCluster,
    composite,
    leaf,
    node,
    pods,
    template,
    with_minimum,
    workload,
)

PROFILES = {PROFILE.name: PROFILE}
levels = pytest.mark.parametrize("level", [1, 2, 3])


def why(cluster: TreeCluster, item: ClusterObject) -> Told:
    return WhyQuestion(item.key, PROFILES, what_would_help=True)(cluster.cluster)


def group(told: Told, item: ClusterObject) -> GroupResult:
    assert told.result is not None
    return next(each for each in results_below(told.result) if each.key == item.key)


def reasons(told: Told, item: ClusterObject) -> dict[str, Reason]:
    return {reason.code: reason for reason in group(told, item).reasons}


def counts(shown: GroupResult) -> tuple[str, int, int, int]:
    """What a group requires, what holds of it, and what waits to be tried."""
    return shown.key.name, shown.required, shown.satisfied, shown.remaining


def help_of(told: Told, code: str) -> Help:
    return next(each for each in told.helps if each.code.value == code)


def gated_tree(level: int) -> tuple[TreeCluster, PodGroup, list[AnyGroup]]:
    """A gang of three with two pods, on this level; the groups from the root down."""
    both: tuple[AnyGroup, ...] = (composite("root", 1), composite("inner", 1, parent="root"))
    above = both[: level - 1]
    gang = leaf("gang", 3, parent=above[-1].name if above else "")
    cluster = TreeCluster(node("n"))
    cluster.apply(*above, gang, *pods(gang, 2))
    return cluster, gang, [*above, gang]


@levels
def test_a_gang_that_is_short_is_told_with_its_members_and_every_group_above_with_who_is_ready(
    level: int,
) -> None:
    cluster, gang, groups = gated_tree(level)

    told = why(cluster, gang)

    assert reasons(told, gang)["MEMBERS_MISSING"].details == {"members": "2", "required": "3"}
    assert [reasons(told, each)["GROUPS_NOT_READY"].details for each in groups[:-1]] == [
        {"ready": "0", "required": "1"}
    ] * (level - 1)


@levels
def test_members_that_are_added_as_told_let_it_be_scheduled_and_one_less_does_not(level: int) -> None:
    cluster, gang, _ = gated_tree(level)
    told = help_of(why(cluster, gang), "ADD_MEMBERS")

    assert told.count == 1
    assert cluster.cycles() == []
    cluster.apply(*pods(gang, told.count, first=2))
    cluster.cycles()
    assert len(cluster.bound()) == 3


def test_a_minimum_that_is_lowered_as_told_lets_a_gated_gang_be_scheduled() -> None:
    cluster, gang, _ = gated_tree(1)
    told = help_of(why(cluster, gang), "LOWER_MINIMUM")

    cluster.apply(with_minimum(leaf("gang", 3), told.count))
    cluster.cycles()

    assert told.count == 2
    assert len(cluster.bound()) == 2


@levels
def test_gates_are_counted_and_removing_them_helps(level: int) -> None:
    cluster, gang, _ = gated_tree(level)
    held = [replace(each, gates=("quota",)) for each in pods(gang, 1, first=2)]
    cluster.apply(*held)

    told = why(cluster, gang)
    cluster.apply(*(replace(each, gates=()) for each in held))
    cluster.cycles()

    assert reasons(told, gang)["SCHEDULING_GATES"].details == {"pods": "1"}
    assert help_of(told, "REMOVE_GATES").count == 1
    assert len(cluster.bound()) == 3


def test_a_pod_of_its_own_that_a_gate_holds() -> None:
    (pod,) = (replace(each, group="", gates=("quota",)) for each in pods(leaf("x"), 1))
    cluster = TreeCluster(node("n"))
    cluster.apply(pod)

    told = why(cluster, pod)

    assert reasons(told, pod)["SCHEDULING_GATES"].details == {"pods": "1"}
    assert help_of(told, "REMOVE_GATES").count == 1


@levels
def test_a_group_that_is_being_deleted_is_named(level: int) -> None:
    cluster, gang, groups = gated_tree(3)
    cluster.apply(*pods(gang, 1, first=2))
    marked = groups[level - 1]
    cluster.delete(marked)

    told = why(cluster, gang)

    details = reasons(told, marked)["BEING_DELETED"].details
    assert details == {"kind": marked.key.kind, "namespace": "default", "name": marked.name}
    assert not told.helps


@levels
def test_what_a_unit_waits_for_is_named_on_whatever_level_it_is_missing(level: int) -> None:
    cluster = TreeCluster(node("n"))
    groups: list[AnyGroup] = [
        composite("root", 1),
        composite("inner", 1, parent="root"),
        leaf("gang", 1, parent="inner"),
    ]
    members = pods(groups[-1], 1)
    missing = groups[level - 1]
    cluster.apply(*groups[level:], *members)

    told = why(cluster, members[0])

    assert told.result is not None
    assert told.result.key == (groups[level].key if level < len(groups) else members[0].key)
    assert told.result.reasons[0].code == "ROOT_MISSING"
    assert told.result.reasons[0].details["name"] == missing.name
    assert not told.helps


def test_of_a_tree_without_its_root_the_groups_that_there_are_are_shown_as_they_stand() -> None:
    cluster = TreeCluster(node("n"))
    inner, gang = composite("inner", 2, parent="root"), leaf("gang", 3, parent="inner")
    cluster.apply(inner, gang, leaf("other", 1, parent="inner"), *pods(gang, 2))

    told = why(cluster, gang)

    assert told.result is not None
    assert counts(told.result) == ("inner", 2, 0, 2)
    assert [counts(child) for child in told.result.children] == [("gang", 3, 0, 2), ("other", 1, 0, 0)]


def test_a_tree_with_a_faulty_layout_is_shown_as_the_tree_that_it_is() -> None:
    cluster = TreeCluster(node("n"))
    root, inner, gang = (
        composite("root", 2, priority=9),
        composite("inner", 1, parent="root"),
        leaf("gang", 3),
    )
    gang = leaf("gang", 3, parent="inner")
    cluster.apply(root, inner, gang, *pods(gang, 2))

    told = why(cluster, gang)

    assert told.result is not None
    assert counts(told.result) == ("root", 2, 0, 1)
    assert [counts(child) for child in told.result.children] == [("inner", 1, 0, 1)]
    assert [counts(child) for child in told.result.children[0].children] == [("gang", 3, 0, 2)]


@pytest.mark.parametrize("missing", ["root", "nothing"])
def test_of_a_tree_with_hundreds_of_levels_the_first_are_shown_and_the_others_counted(missing: str) -> None:
    cluster = TreeCluster(node("n"))
    top = [] if missing == "root" else [composite("c0")]
    chain = [composite(f"c{i}", parent=f"c{i - 1}") for i in range(1, 400)]
    cluster.apply(*top, *chain, leaf("gang", parent="c399"))

    shown = why(cluster, chain[0]).result
    depth = 1
    while shown is not None and shown.children:
        shown, depth = shown.children[0], depth + 1

    assert depth == 8
    assert shown is not None
    [reason] = [each for each in shown.reasons if each.code == "DEEPER_GROUPS"]
    assert reason.details["groups"] == str(400 + len(top) - depth)


@levels
def test_parents_in_a_cycle_are_named_to_groups_in_it_and_below(level: int) -> None:
    cluster = TreeCluster(node("n"))
    groups: list[AnyGroup] = [
        composite("one", parent="two"),
        composite("two", parent="one"),
        leaf("gang", 1, parent="two"),
    ]
    cluster.apply(*groups)
    asked = groups[level - 1]

    told = why(cluster, asked)

    assert told.result is not None
    assert told.result.reasons[0].code == "PARENT_CYCLE"
    assert [counts(told.result), *map(counts, told.result.children)] == [("one", 1, 0, 1), ("two", 1, 0, 1)]
    assert [counts(each) for each in told.result.children[0].children] == [("gang", 1, 0, 0)]
    assert not told.helps


@levels
def test_a_running_unit_is_shown_with_what_holds_and_in_which_domain(level: int) -> None:
    cluster = TreeCluster(node("n", labels={"rack": "r1"}))
    same = {level: "rack"}
    groups: list[AnyGroup] = [
        composite("root", 1, same=same.get(1, "")),
        composite("inner", 1, parent="root", same=same.get(2, "")),
        leaf("gang", 2, parent="inner", same=same.get(3, "")),
    ]
    cluster.apply(*groups, *pods(groups[-1], 2))
    cluster.cycles()

    told = why(cluster, groups[-1])

    assert "NOTHING_PENDING" in reasons(told, groups[0])
    assert [(group(told, each).status, group(told, each).satisfied) for each in groups] == [
        (Status.SUCCESS, 1),
        (Status.SUCCESS, 1),
        (Status.SUCCESS, 2),
    ]
    constrained = group(told, groups[level - 1])
    assert (constrained.domain_key, constrained.domain_value) == ("rack", "r1")
    assert not told.helps


DEEP = [
    composite("root"),
    *(composite(f"c{i}", parent=f"c{i - 1}" if i > 1 else "root") for i in range(1, 4)),
]
KNOWN = workload("wl", composites=(template("t-root", leaves=(template("t-g"),)),))


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ([*DEEP, leaf("g", parent="c3")], "TREE_TOO_DEEP"),
        (
            [composite("root", workload="one"), leaf("g", parent="root", workload="two")],
            "SEVERAL_WORKLOADS",
        ),
        ([composite("root", priority=9), leaf("g", parent="root", priority=1)], "GROUP_PRIORITY_CLASH"),
        ([composite("root", whole=True), leaf("g", 1, parent="root")], "DISRUPTION_MODE_CLASH"),
        ([KNOWN, composite("root"), leaf("g", parent="root", template="t-none")], "TEMPLATE_UNKNOWN"),
        ([KNOWN, composite("root"), leaf("g", parent="root", template="t-root")], "TEMPLATE_OF_OTHER_KIND"),
    ],
)
def test_a_layout_at_fault_is_told_with_its_code_and_no_help(objects: list[ClusterObject], code: str) -> None:
    cluster = TreeCluster(node("n"))
    member = leaf("g")
    cluster.apply(*objects, *pods(member, 1))

    told = why(cluster, member)

    assert told.result is not None
    assert told.result.status is Status.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert code in {reason.code for reason in told.result.reasons}
    assert not told.helps


def test_pods_that_disagree_are_told_and_no_help_while_they_do() -> None:
    gang = leaf("gang", 2)
    cluster = TreeCluster(node("n"))
    cluster.apply(gang, *pods(gang, 1), *pods(gang, 1, first=1, priority=5))

    told = why(cluster, gang)

    assert "PRIORITY_CLASH" in reasons(told, gang)
    assert not told.helps


def test_a_unit_that_waits_for_its_victims_is_told_so() -> None:
    cluster, high = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    told = why(cluster, high)

    assert "PREEMPTION_UNDER_WAY" in reasons(told, high)
    assert not told.helps


def test_own_pods_are_never_among_those_that_would_have_to_go() -> None:
    gang = leaf("gang", 2)
    cluster = TreeCluster(node("n", cpu=2))
    cluster.apply(gang, *pods(gang, 2))
    cluster.cycles()
    cluster.apply(*pods(gang, 1, first=2))

    told = why(cluster, gang)

    assert not [each for each in told.helps if each.code.value == "REMOVE_PODS"]
    assert help_of(told, "ADD_NODES").count == 1


def test_the_cluster_is_left_as_it_was() -> None:
    gang = leaf("gang", 3)
    cluster = TreeCluster(node("n", cpu=2))
    cluster.apply(gang, *pods(gang, 3))
    before = cluster.cluster.feed.flush().nodes.free.tobytes()

    why(cluster, gang)

    assert cluster.cluster.feed.flush().nodes.free.tobytes() == before
    assert cluster.state_of(gang) is not None


def test_an_object_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        WhyQuestion(ObjectKey("PodGroup", "default", "none"), PROFILES, what_would_help=False)(
            TreeCluster().cluster
        )


def test_a_foreign_pod_is_refused() -> None:
    (pod,) = pods(leaf("x"), 1)
    foreign = replace(pod, group="", spec=replace(pod.spec, scheduler_name="other"))
    cluster = TreeCluster(node("n"))
    cluster.apply(foreign)

    with pytest.raises(FailedPreconditionError):
        why(cluster, foreign)


def test_a_pod_by_itself_that_runs_is_satisfied_and_waits_for_nothing() -> None:
    cluster = TreeCluster(node("n"))
    (alone,) = (replace(pod, group="") for pod in pods(leaf("alone"), 1))
    cluster.apply(alone)
    cluster.cycles()

    shown = group(why(cluster, alone), alone)

    assert (shown.status, shown.satisfied, shown.remaining) == (Status.SUCCESS, 1, 0)
    assert [reason.code for reason in shown.reasons] == ["NOTHING_PENDING"]


def test_nodes_to_add_are_schedulable_where_those_that_they_are_like_are_cordoned() -> None:
    cluster = TreeCluster(replace(node("n", cpu=4), unschedulable=True))
    gang = leaf("gang", 2)
    cluster.apply(gang, *pods(gang, 2))
    cluster.cycles()

    told = why(cluster, gang)

    assert help_of(told, "ADD_NODES").message == "add 1 schedulable node like n"
    assert reasons(told, gang)["MISSING_NODES"].message == "2 more pods need nodes that take them"


def test_one_pod_needs_a_node_that_takes_it() -> None:
    cluster = TreeCluster(replace(node("n", cpu=4), unschedulable=True))
    gang = leaf("gang", 1)
    cluster.apply(gang, *pods(gang, 1))
    cluster.cycles()

    assert (
        reasons(why(cluster, gang), gang)["MISSING_NODES"].message == "1 more pod needs a node that takes it"
    )
