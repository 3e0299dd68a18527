"""Delete: what goes at once, what is only marked, what goes later, and what happens to what an object owns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.engine.api import DeleteCall, DeleteOutcome, DeleteRef, Propagation
from muster.engine.deletion import delete, end_grace
from muster.engine.errors import ConflictError, InvalidArgumentError, NotFoundError
from muster.engine.settlement import FOREGROUND_DELETION
from muster.model.meta import POD, POD_GROUP, PRIORITY_CLASS, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PodStatus
from tests.engine.small_cluster import (
    EVICTED,
    NOW_US,
    SECOND_US,
    SmallCluster,
    composite,
    node,
    owned_by,
    pod,
    pod_group,
)

DELETED, MARKED, MISSING = DeleteOutcome.DELETED, DeleteOutcome.MARKED, DeleteOutcome.MISSING


def call_for(*items: ClusterObject | DeleteRef, **options: object) -> DeleteCall:
    refs = [each if isinstance(each, DeleteRef) else DeleteRef(each.key) for each in items]
    return replace(DeleteCall("default", refs), **options)  # type: ignore[arg-type]


def run(cluster: SmallCluster, call: DeleteCall, *, clients_evict: bool = False) -> list[DeleteOutcome]:
    return list(cluster.change(lambda mutation: delete(mutation, call, clients_evict=clients_evict)))


def pass_seconds(cluster: SmallCluster, seconds: int, *, clients_evict: bool = False) -> None:
    cluster.now_us += seconds * SECOND_US
    cluster.change(lambda mutation: end_grace(mutation, clients_evict=clients_evict))


def test_one_refusal_names_every_missing_object_and_nothing_goes() -> None:
    kept = pod("kept")
    cluster = SmallCluster(kept)

    with pytest.raises(NotFoundError) as refusal:
        run(cluster, call_for(pod("a"), kept, node("b")))

    assert refusal.value.reason == "OBJECT_NOT_FOUND"
    assert refusal.value.resources == [("Pod", "default/a"), ("Node", "b")]
    assert cluster.has(kept)


def test_a_missing_object_is_an_outcome_where_that_is_allowed() -> None:
    here = pod("here")
    cluster = SmallCluster(here)

    assert run(cluster, call_for(pod("gone"), here, allow_missing=True)) == [MISSING, DELETED]


def test_one_conflict_names_every_object_that_is_not_the_one_meant() -> None:
    a, b, c = pod("a"), pod("b"), pod("c")
    cluster = SmallCluster(a, b, c)
    refs = (DeleteRef(a.key, "other"), DeleteRef(b.key, "", 7), DeleteRef(c.key, c.uid, 1))

    with pytest.raises(ConflictError) as refusal:
        run(cluster, call_for(*refs))

    assert [(each.type, each.subject) for each in refusal.value.preconditions] == [
        ("UID_MISMATCH", "Pod default/a"),
        ("RESOURCE_VERSION_MISMATCH", "Pod default/b"),
    ]
    assert cluster.names() == {"a", "b", "c"}


def test_built_in_priority_classes_are_refused_even_where_missing_ones_are_allowed() -> None:
    ref = DeleteRef(ObjectKey(PRIORITY_CLASS, "", "system-node-critical"))

    with pytest.raises(InvalidArgumentError) as refusal:
        run(SmallCluster(), call_for(ref, allow_missing=True))

    assert [each.field for each in refusal.value.violations] == ["refs[0].ref"]


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(pod("p", grace=30), id="unbound"),
        pytest.param(pod("p", on="n"), id="no grace of its own"),
        pytest.param(pod("p", on="n", grace=30, status=PodStatus(phase="Failed")), id="terminal"),
    ],
)
def test_a_pod_that_needs_no_grace_goes_at_once(item: ClusterObject) -> None:
    cluster = SmallCluster(item)

    assert run(cluster, call_for(item)) == [DELETED]
    assert not cluster.has(item)


def test_a_running_pod_is_marked_for_its_grace_and_goes_when_that_ends() -> None:
    item = pod("p", on="n", grace=30)
    cluster = SmallCluster(item)

    assert run(cluster, call_for(item)) == [MARKED]

    marked = cluster.pod("p")
    assert (marked.deletion_us, marked.deletion_grace_seconds) == (NOW_US + 30 * SECOND_US, 30)
    assert marked.resource_version == cluster.cluster.state.revision
    pass_seconds(cluster, 29)
    assert cluster.has(item)
    pass_seconds(cluster, 1)
    assert not cluster.has(item)
    assert not cluster.cluster.leaving_until


def test_the_grace_of_the_call_wins_over_that_of_the_pod() -> None:
    item, other = pod("p", on="n", grace=30), pod("q", on="n")
    cluster = SmallCluster(item, other)

    assert run(cluster, call_for(item, grace_period_seconds=0)) == [DELETED]
    assert run(cluster, call_for(other, grace_period_seconds=5)) == [MARKED]


def test_deleting_a_marked_pod_again_shortens_its_grace_and_never_lengthens_it() -> None:
    item = pod("p", on="n", grace=30)
    cluster = SmallCluster(item)
    run(cluster, call_for(item))
    run(cluster, call_for(item, grace_period_seconds=5))
    revision = cluster.cluster.state.revision

    assert run(cluster, call_for(item)) == [MARKED]

    assert cluster.pod("p").deletion_us == NOW_US + 5 * SECOND_US
    assert cluster.cluster.state.revision == revision
    assert run(cluster, call_for(item, grace_period_seconds=0)) == [DELETED]


def test_where_clients_evict_an_evicted_pod_outstays_its_grace_and_others_do_not() -> None:
    evicted, other = pod("evicted", on="n", grace=5, status=EVICTED), pod("other", on="n", grace=5)
    cluster = SmallCluster(evicted, other)
    run(cluster, call_for(evicted, other), clients_evict=True)

    pass_seconds(cluster, 5, clients_evict=True)

    assert cluster.names() == {"evicted"}
    again = call_for(evicted, grace_period_seconds=0)
    assert run(cluster, again, clients_evict=True) == [MARKED]


def test_a_finalizer_holds_an_object_until_it_is_taken_off() -> None:
    item = node("n", finalizers=("example.com/lease",))
    cluster = SmallCluster(item)

    assert run(cluster, call_for(item)) == [MARKED]

    marked = cluster.get(item)
    assert marked.deletion_us == NOW_US
    cluster.change(lambda mutation: mutation.put(replace(marked, finalizers=())))
    assert not cluster.has(item)


def test_a_pod_held_by_a_finalizer_beyond_its_grace_goes_after_the_finalizer() -> None:
    item = pod("p", on="n", grace=5, finalizers=("example.com/lease",))
    cluster = SmallCluster(item)
    run(cluster, call_for(item))
    pass_seconds(cluster, 5)

    assert cluster.has(item)
    cluster.change(lambda mutation: mutation.put(replace(cluster.pod("p"), finalizers=())))
    pass_seconds(cluster, 0)
    assert not cluster.has(item)


def test_force_does_not_wait_for_finalizers() -> None:
    item = node("n", finalizers=("example.com/lease",))
    cluster = SmallCluster(item)

    assert run(cluster, call_for(item, force=True)) == [DELETED]


def test_a_group_with_live_pods_is_marked_and_goes_with_the_last_of_them() -> None:
    group, a, b = pod_group("g"), pod("a", group="g"), pod("b", group="g", on="n")
    cluster = SmallCluster(group, a, b)

    assert run(cluster, call_for(group)) == [MARKED]
    assert run(cluster, call_for(a)) == [DELETED]
    assert cluster.has(group)
    assert run(cluster, call_for(b)) == [DELETED]
    assert not cluster.has(group)


def test_groups_are_judged_after_all_refs_whatever_their_order() -> None:
    root, leaf, member = composite("root"), pod_group("leaf", parent="root"), pod("p", group="leaf")
    cluster = SmallCluster(root, leaf, member)

    assert run(cluster, call_for(root, leaf, member)) == [DELETED] * 3


def test_a_child_marked_earlier_goes_with_the_pods_of_this_call_and_its_parent_too() -> None:
    root, leaf, member = composite("root"), pod_group("leaf", parent="root"), pod("p", group="leaf")
    cluster = SmallCluster(root, leaf, member)
    run(cluster, call_for(leaf))
    both = call_for(root, member)

    assert run(cluster, replace(both, validate_only=True)) == [DELETED, DELETED]
    assert run(cluster, both) == [DELETED, DELETED]
    assert not cluster.has(leaf)


def test_force_removes_a_group_and_its_subtree_waits_for_it_again() -> None:
    root, leaf, member = composite("root"), pod_group("leaf", parent="root"), pod("p", group="leaf")
    cluster = SmallCluster(root, leaf, member)

    assert run(cluster, call_for(root, force=True)) == [DELETED]

    assert cluster.cluster.pending_groups == {leaf.key: root.key}
    assert cluster.cluster.pending_members == {member.key: root.key}


def test_a_dry_run_gives_the_outcomes_and_changes_nothing() -> None:
    group, member = pod_group("g"), pod("p", group="g", on="n", grace=9)
    alone = pod("alone")
    cluster = SmallCluster(group, member, alone)
    revision = cluster.cluster.state.revision
    call = call_for(group, member, alone)

    foretold = run(cluster, replace(call, validate_only=True))

    assert cluster.cluster.state.revision == revision
    assert cluster.names() == {"p", "alone"}
    assert foretold == [MARKED, MARKED, DELETED] == run(cluster, call)


def test_background_deletes_what_the_object_owns_to_the_last_level_with_each_pods_own_grace() -> None:
    group = pod_group("g")
    running = pod("running", on="n", grace=9, owners=(owned_by(group),))
    below = pod("below", owners=(owned_by(running),))
    cluster = SmallCluster(group, running, below)

    assert run(cluster, call_for(group)) == [DELETED]

    assert cluster.names() == {"running"}
    assert cluster.pod("running").deletion_grace_seconds == 9


def test_a_dependent_with_another_owner_that_stands_stays_until_that_one_goes_too() -> None:
    one, two = pod_group("one"), pod_group("two")
    shared = pod("shared", owners=(owned_by(one), owned_by(two)))
    cluster = SmallCluster(one, two, shared)

    run(cluster, call_for(one))
    assert cluster.has(shared)
    run(cluster, call_for(two))
    assert not cluster.has(shared)


def test_a_dependent_of_two_owners_goes_when_one_call_deletes_both() -> None:
    one, two = pod_group("one"), pod_group("two")
    shared = pod("shared", owners=(owned_by(one), owned_by(two)))
    cluster = SmallCluster(one, two, shared)

    run(cluster, call_for(one, two))

    assert not cluster.has(shared)


def test_an_owner_of_a_kind_kept_elsewhere_counts_as_standing() -> None:
    group = pod_group("g")
    outside = owned_by(ObjectKey("Deployment", "default", "web"))
    shared = pod("shared", owners=(owned_by(group), outside))
    cluster = SmallCluster(group, shared)

    run(cluster, call_for(group))

    assert cluster.has(shared)


@pytest.mark.parametrize("propagation", [Propagation.BACKGROUND, Propagation.FOREGROUND])
def test_owners_in_a_circle_go_together(propagation: Propagation) -> None:
    first = pod("first", owners=(owned_by(ObjectKey(POD, "default", "second"), blocking=True),))
    second = pod("second", owners=(owned_by(first, blocking=True),))
    cluster = SmallCluster(first, second)

    assert run(cluster, call_for(first, propagation=propagation)) == [DELETED]
    assert cluster.names() == set()


def test_foreground_keeps_the_owner_until_its_blocking_dependents_are_gone() -> None:
    group = pod_group("g")
    blocking = pod("blocking", on="n", grace=5, owners=(owned_by(group, blocking=True),))
    other = pod("other", on="n", grace=9, owners=(owned_by(group),))
    cluster = SmallCluster(group, blocking, other)

    assert run(cluster, call_for(group, propagation=Propagation.FOREGROUND)) == [MARKED]

    assert cluster.get(group).finalizers == (FOREGROUND_DELETION,)
    pass_seconds(cluster, 5)
    assert not cluster.has(group)
    assert cluster.names() == {"other"}


def test_foreground_takes_the_owner_at_once_where_all_dependents_can_go() -> None:
    group = pod_group("g")
    cluster = SmallCluster(group, pod("p", owners=(owned_by(group, blocking=True),)))

    assert run(cluster, call_for(group, propagation=Propagation.FOREGROUND)) == [DELETED]
    assert cluster.names() == set()


def test_orphan_strips_the_reference_and_leaves_the_dependents_and_their_backoff_alone() -> None:
    group, other = pod_group("g"), pod_group("other")
    dependent = pod("p", owners=(owned_by(group), owned_by(other)))
    cluster = SmallCluster(group, other, dependent)
    row = cluster.cluster.queue.get(dependent.key)

    assert run(cluster, call_for(group, propagation=Propagation.ORPHAN)) == [DELETED]

    assert cluster.pod("p").owner_references == (owned_by(other),)
    assert cluster.cluster.queue.get(dependent.key) == row


def test_what_an_evicted_pod_owns_goes_when_its_grace_ends() -> None:
    owner = replace(pod("owner", on="n", status=EVICTED), deletion_us=NOW_US)
    cluster = SmallCluster(owner, pod("owned", owners=(owned_by(owner),)))

    pass_seconds(cluster, 0)

    assert cluster.names() == set()


def test_a_member_that_leaves_with_grace_keeps_its_marked_group_until_it_is_gone() -> None:
    group, member = pod_group("g"), pod("p", group="g", on="n", grace=5)
    cluster = SmallCluster(group, member)
    run(cluster, call_for(member, group))
    assert cluster.names(POD_GROUP) == {"g"}

    pass_seconds(cluster, 5)

    assert cluster.names(POD_GROUP) == set()
