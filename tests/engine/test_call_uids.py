"""No two objects of one call have the same uid: each that has another's is named, and nothing is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from muster.engine.engine import Engine
from muster.engine.errors import InvalidArgumentError
from muster.model.meta import POD, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.store.store import SqlStore
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import node
from tests.fakes.clock import FakeClock

A, B, C = (Pod(name=name, uid="u") for name in "abc")
TEMPLATE = Pod(name="")


def batch(names: str, *uids: str) -> PodBatch:
    return PodBatch(TEMPLATE, tuple(names), uids)


@pytest.fixture
async def engine(store_url: str, clock: FakeClock) -> AsyncIterator[Engine]:
    made = await started_engine(SqlStore(store_url), clock)
    yield made
    await made.drain()


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        pytest.param([A, B, C], ["objects[1].metadata.uid", "objects[2].metadata.uid"], id="three pods"),
        pytest.param([A, replace(node("n"), uid="u")], ["objects[1].metadata.uid"], id="two kinds"),
        pytest.param(
            [batch("abcd", "u", "v", "u", "v")], ["objects[0].uids[2]", "objects[0].uids[3]"], id="a batch"
        ),
        pytest.param([C, batch("ab", "v", "u")], ["objects[1].uids[1]"], id="a pod and a batch"),
        pytest.param([batch("ab", "u", "v"), C], ["objects[1].metadata.uid"], id="a batch and a pod"),
    ],
)
async def test_a_uid_that_stands_in_the_call_before_is_refused(
    engine: Engine, sent: list[ClusterObject | PodBatch], fields: list[str]
) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await engine.apply(applying(sent))

    assert [(each.field, each.reason) for each in refusal.value.violations] == [
        (field, "DUPLICATE") for field in fields
    ]
    assert not [each for each in await engine.list_clusters() if any(each.counts.values())]


async def test_uids_that_are_left_out_are_not_the_same(engine: Engine) -> None:
    await engine.apply(applying([replace(A, uid=""), replace(B, uid=""), batch("cd", "", "")]))

    found = [(await engine.get("default", ObjectKey(POD, "default", name)))[0] for name in "abcd"]

    assert len({each.uid for each in found}) == 4
    assert all(isinstance(each, Pod) for each in found)
