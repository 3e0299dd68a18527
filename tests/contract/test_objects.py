"""Objects come back as they went in, and pods that share values share them again."""

import dataclasses
from dataclasses import replace

import pytest

from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus
from muster.store.store import SqlStore, open_store
from tests.contract.ledger import Ledger, gang
from tests.contract.samples import EVERY_KIND, EVERY_KIND_BARE, POD

KIND_IDS = [type(one).__name__ for one in EVERY_KIND]


def _pods(store: SqlStore) -> list[Pod]:
    return [one for one in store.load_cluster("main").objects if isinstance(one, Pod)]


@pytest.mark.parametrize("sample", EVERY_KIND, ids=KIND_IDS)
def test_a_sample_leaves_no_field_at_its_default(sample: ClusterObject) -> None:
    server_owned = {"ordinal", "resource_version", "namespace"}
    unset = {
        field.name
        for field in dataclasses.fields(sample)
        if field.name not in server_owned and getattr(sample, field.name) == field.default
    }

    assert unset == set()


@pytest.mark.parametrize("sample", EVERY_KIND, ids=KIND_IDS)
def test_an_object_with_everything_set_comes_back_equal(ledger: Ledger, sample: ClusterObject) -> None:
    (made,) = ledger.committed_add([sample])

    assert list(ledger.objects().values()) == [made]


@pytest.mark.parametrize("bare", EVERY_KIND_BARE, ids=KIND_IDS)
def test_an_object_with_nothing_set_comes_back_equal(ledger: Ledger, bare: ClusterObject) -> None:
    (made,) = ledger.committed_add([bare])

    assert list(ledger.objects().values()) == [made]


def test_a_change_replaces_every_kind(ledger: Ledger) -> None:
    made = ledger.committed_add(EVERY_KIND)
    changed = [replace(one, labels={"changed": "yes"}, generation=9, deletion_us=None) for one in made]

    changed = ledger.committed_change(changed)

    assert ledger.objects() == {str(one.key): one for one in changed}


def test_a_removed_object_of_every_kind_is_gone(ledger: Ledger) -> None:
    made = ledger.committed_add([*EVERY_KIND, *EVERY_KIND_BARE])

    ledger.committed_remove(made[: len(EVERY_KIND)])

    assert ledger.objects() == {str(one.key): one for one in made[len(EVERY_KIND) :]}


def test_pods_that_share_values_share_them_by_reference_after_a_load(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add(gang("a", 3))

    first, *others = _pods(store)

    for other in others:
        assert other.spec is first.spec
        assert other.status is first.status
        assert other.labels is first.labels
        assert other.group is first.group


def test_equal_values_that_are_not_shared_are_stored_once(store: SqlStore, ledger: Ledger) -> None:
    one, two = (
        replace(gang("a", 1)[0], name=name, labels=labels)
        for name, labels in (("one", {"x": "1", "y": "2"}), ("two", {"y": "2", "x": "1"}))
    )

    ledger.committed_add([one, two])

    first, second = _pods(store)
    assert first.labels is second.labels
    assert first.spec is second.spec


def test_a_value_known_from_an_earlier_process_is_used_again(store_url: str) -> None:
    for name in ("a", "b"):
        store = open_store(store_url)
        Ledger(store).committed_add([replace(pod, labels={"app": "same"}) for pod in gang(name, 1)])
        store.close()

    store = open_store(store_url)
    first, second = _pods(store)
    store.close()
    assert first.spec is second.spec


def test_a_pod_that_changes_in_every_way_comes_back_changed(ledger: Ledger) -> None:
    (made,) = ledger.committed_add([replace(POD, gates=("gate",), node_name="", deletion_us=None)])
    changed = replace(
        made,
        generation=4,
        deletion_us=5,
        deletion_grace_seconds=None,
        gates=(),
        node_name="node-1",
        labels={},
        spec=replace(made.spec, tolerations=()),
        status=PodStatus("Failed"),
    )

    (changed,) = ledger.committed_change([changed])

    assert list(ledger.objects().values()) == [changed]


def test_a_pod_deleted_and_made_again_in_one_commit_is_the_new_one(ledger: Ledger) -> None:
    (old,) = ledger.committed_add(gang("a", 1))
    writes = ledger.writes()
    ledger.remove(writes, [old])
    (new,) = ledger.add(writes, gang("a", 1))

    ledger.commit(writes)

    assert list(ledger.objects().values()) == [new]
    assert new.ordinal != old.ordinal


def test_a_pod_made_and_deleted_in_one_commit_is_not_there(ledger: Ledger) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, gang("a", 2))
    ledger.remove(writes, made[:1])

    ledger.commit(writes)

    assert list(ledger.objects()) == [str(made[1].key)]


def test_a_pod_made_and_changed_in_one_commit_is_the_changed_one(ledger: Ledger) -> None:
    writes = ledger.writes()
    made = ledger.add(writes, gang("a", 30))
    bound = ledger.change(writes, [replace(pod, node_name="node") for pod in made])

    ledger.commit(writes)

    assert list(ledger.objects().values()) == bound


def test_writes_that_follow_one_another_in_one_commit_build_on_one_another(ledger: Ledger) -> None:
    first = ledger.writes()
    made = ledger.add(first, gang("a", 2))
    second = ledger.writes()
    bound = ledger.change(second, [replace(pod, node_name="node") for pod in made])

    ledger.commit(first, second)

    assert list(ledger.objects().values()) == bound


def test_clusters_share_nothing(store: SqlStore) -> None:
    one, other = Ledger(store, "one"), Ledger(store, "other")
    kept = one.writes()
    made = one.add(kept, gang("a", 2))
    elsewhere = other.writes()
    other.add(elsewhere, gang("a", 3))

    store.commit([kept, elsewhere])
    other.committed_remove(list(store.load_cluster("other").objects))

    assert store.list_clusters() == ["one", "other"]
    assert list(one.objects().values()) == made
    assert other.objects() == {}


def test_a_cluster_that_does_not_exist_loads_empty_at_revision_0(store: SqlStore) -> None:
    loaded = store.load_cluster("nowhere")

    assert (loaded.revision, loaded.compacted_revision, loaded.objects) == (0, 0, [])


def test_objects_come_back_by_name_and_pods_by_ordinal(store: SqlStore, ledger: Ledger) -> None:
    ledger.committed_add([replace(EVERY_KIND[0], name=name) for name in ("b", "B", "a-1", "a")])
    ledger.committed_add([*reversed(gang("g", 3))])

    names = [one.key for one in store.load_cluster("main").objects]

    assert names == [
        *(ObjectKey("Node", "", name) for name in ("B", "a", "a-1", "b")),
        *(ObjectKey("Pod", "default", f"g-{index}") for index in (2, 1, 0)),
    ]


@pytest.mark.parametrize("size", [19, 20, 21, 499, 500, 1201])
def test_a_commit_of_any_size_is_whole(ledger: Ledger, size: int) -> None:
    made = ledger.committed_add(gang("a", size))
    bound = [replace(pod, node_name=f"node-{place % 7}") for place, pod in enumerate(made)]

    bound = ledger.committed_change(bound)

    assert list(ledger.objects().values()) == bound


def test_pods_that_share_nothing_are_told_apart(ledger: Ledger) -> None:
    made = ledger.committed_add(
        [
            replace(pod, labels={"index": str(place)}, spec=replace(pod.spec, priority=place))
            for place, pod in enumerate(gang("a", 700))
        ]
    )

    assert list(ledger.objects().values()) == made
