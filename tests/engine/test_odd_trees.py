"""Chains and rings of groups that nobody would make: what they cost, and what a deletion leaves of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import FrameType

import pytest

from muster.engine.api import DeleteCall, DeleteRef
from muster.engine.deletion import delete
from muster.engine.hierarchy import find_root
from muster.model.group import CompositePodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_GROUP, ObjectKey
from muster.model.pod import Pod
from tests.engine.small_cluster import SmallCluster, composite, pod, pod_group

FEW, MANY = 50, 200


def groups(number: int, *, ring: bool) -> list[CompositePodGroup]:
    """Each is the parent of the next one; in a ring the last is that of the first."""
    names = [f"g{place}" for place in range(number)]
    first = names[-1] if ring else ""
    return [composite(name, parent=above) for name, above in zip(names, [first, *names], strict=False)]


def calls_made(act: Callable[[], object]) -> int:
    """Of functions, while acting."""
    made = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return made


def call_for(*keys: ObjectKey, force: bool = False) -> DeleteCall:
    return DeleteCall("default", [DeleteRef(key) for key in keys], force=force)


def deleted(cluster: SmallCluster, call: DeleteCall) -> None:
    cluster.change(lambda mutation: delete(mutation, call, clients_evict=False))


@pytest.mark.parametrize("ring", [False, True], ids=["chain", "ring"])
@pytest.mark.parametrize("turned", [False, True], ids=["parents first", "children first"])
def test_what_comes_costs_its_number(ring: bool, turned: bool) -> None:
    def coming(number: int) -> int:
        made = groups(number, ring=ring)
        return calls_made(lambda: SmallCluster(*(reversed(made) if turned else made)))

    assert coming(MANY) < 1.5 * MANY / FEW * coming(FEW)


@pytest.mark.parametrize("ring", [False, True], ids=["chain", "ring"])
@pytest.mark.parametrize("turned", [False, True], ids=["parents first", "children first"])
@pytest.mark.parametrize("how", ["free", "forced", "held"])
def test_what_goes_costs_its_number(ring: bool, turned: bool, how: str) -> None:
    def going(number: int) -> int:
        made = groups(number, ring=ring)
        below = [pod_group("leaf", parent=made[-1].name), pod("p", group="leaf", on="n", grace=9)]
        cluster = SmallCluster(*made, *(below if how == "held" else ()))
        keys = [each.key for each in (reversed(made) if turned else made)]
        return calls_made(lambda: deleted(cluster, call_for(*keys, force=how == "forced")))

    assert going(MANY) < 1.5 * MANY / FEW * going(FEW)


@pytest.mark.parametrize("seed", range(60))
def test_a_deletion_leaves_what_something_keeps_and_nothing_else(seed: int) -> None:
    random = Random(seed)
    names = [f"g{place}" for place in range(6)]
    cluster = SmallCluster(
        *(composite(name, parent=random.choice([*names, "", "absent"])) for name in names),
        *(pod_group(f"l{place}", parent=random.choice([*names, ""])) for place in range(4)),
        *(
            pod(
                f"p{place}",
                group=f"l{random.randrange(4)}",
                on=random.choice(["", "n"]),
                grace=random.choice([0, 9]),
            )
            for place in range(5)
        ),
    )
    everything = [key for kind in (COMPOSITE_POD_GROUP, POD_GROUP, POD) for key in keys(cluster, kind)]
    for _ in range(3):
        wanted = random.sample(everything, random.randrange(1, len(everything)))
        wanted = [key for key in wanted if cluster.cluster.state.get(key) is not None]
        left = expected(cluster, wanted)

        deleted(cluster, call_for(*wanted))

        assert {key for kind in (COMPOSITE_POD_GROUP, POD_GROUP, POD) for key in keys(cluster, kind)} == left


def keys(cluster: SmallCluster, kind: str) -> list[ObjectKey]:
    return [ObjectKey(kind, *name) for name in cluster.cluster.state.objects[kind]]


def expected(cluster: SmallCluster, wanted: list[ObjectKey]) -> set[ObjectKey]:
    """The plain form: take one away that may go, for as long as there is one; a ring keeps none of its groups."""
    state = cluster.cluster.state
    there = {key for kind in (COMPOSITE_POD_GROUP, POD_GROUP, POD) for key in keys(cluster, kind)}
    marked = set(wanted) | {key for key in there if (item := state.get(key)) and item.deletion_us is not None}

    def is_kept(key: ObjectKey) -> bool:
        item = state.get(key)
        if isinstance(item, Pod):
            return bool(item.node_name and item.spec.termination_grace_period_seconds)
        if find_root(state, key).cycle:
            return False
        if key.kind == POD_GROUP:
            return any(each.key in there for each in state.members(*key[1:]).pods.values())
        return any(each.key in there for each in state.children(*key[1:]))

    while going := [key for key in marked & there if not is_kept(key)]:
        there.discard(going[0])
    return there
