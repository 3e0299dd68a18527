"""Room that is promised, and room of pods that leave: taken and given back to the byte."""

from __future__ import annotations

import numpy as np
import pytest

from muster.core.deltas import PodsBound
from muster.core.preemption_units import PromisedRoom
from muster.core.promises import depart_leaving, keep_promises
from muster.core.signature import Signature
from tests.dsl import Cluster, node, pod
from tests.dsl.preemption import BusyCluster
from tests.dsl.state import state_of


class _Staying:
    """Counts every pod that is not leaving."""

    skips_leaving = True

    def selects(self, signature: Signature) -> bool:
        return True


def _free(cluster: Cluster, name: str) -> int:
    slot = cluster.snapshot.nodes.slot(name)
    assert slot is not None
    return int(cluster.snapshot.nodes.free[0, slot])


def test_leaving_pods_are_taken_as_gone_but_for_those_that_stayed() -> None:
    cluster = BusyCluster(node("a", "4"))
    stuck, _ = cluster.leaves(pod("old"), "a", "a")
    cluster.runs(pod("other"), "a")
    before = state_of(cluster.snapshot)
    staying = cluster.snapshot.count(_Staying()).per_slot.sum()

    depart_leaving(cluster.snapshot, {stuck})
    seen = _free(cluster, "a"), cluster.snapshot.count(_Staying()).per_slot.sum()
    cluster.snapshot.rollback(0)

    assert seen == (2_000, staying)
    assert state_of(cluster.snapshot) == before
    assert cluster.snapshot.count(_Staying()).per_slot.sum() == staying


def test_promised_pods_take_room_until_the_promise_is_taken_back() -> None:
    cluster = BusyCluster(node("a", "4"), node("b", "4"))
    cluster.runs(pod("p"), "b")
    promised = PromisedRoom((0, 0, 0), ("a", "a", "gone"))
    before = state_of(cluster.snapshot)

    keep_promises(cluster.snapshot, promised)
    kept = _free(cluster, "a")
    keep_promises(cluster.snapshot, promised, -1)

    assert (kept, _free(cluster, "a")) == (2_000, 4_000)
    assert state_of(cluster.snapshot) == before


def test_amounts_that_were_lent_are_given_back() -> None:
    cluster = BusyCluster(node("a", "4"))
    cluster.low_pod("low", "a")
    before = state_of(cluster.snapshot)

    cluster.snapshot.lend(np.full((3, 1), 5, dtype=np.int64))
    lent = _free(cluster, "a")
    cluster.snapshot.rollback(0)

    assert lent == 3_005
    assert state_of(cluster.snapshot) == before


def test_what_is_only_taken_as_gone_cannot_be_confirmed() -> None:
    cluster = BusyCluster(node("a", "4"))
    cluster.leaves(pod("old"), "a")
    depart_leaving(cluster.snapshot, ())

    with pytest.raises(TypeError, match="cannot be confirmed"):
        cluster.snapshot.confirm(PodsBound((99,), (0,), ("a",)))
