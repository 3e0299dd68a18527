"""Pages of one list belong together."""

from dataclasses import replace

import pytest

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import PositionedUnit
from muster.engine.ports import DecisionRecord, QueuedUnit, UnitState
from muster.model.meta import ObjectKey
from muster.rpc.limits import MAX_RESPONSE_BYTES
from muster.rpc.pagination import KeptLists
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import queue_pb2
from muster.v1 import scheduler_service_pb2 as spb
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import SHORT_LIMITS, Api, apply, names, pod, pod_group, refused


async def all_pages(api: Api, request: pb.ListRequest) -> list[pb.ListResponse]:
    pages = [await api.cluster.List(request)]
    while pages[-1].next_page_token:
        request.page_token = pages[-1].next_page_token
        pages.append(await api.cluster.List(request))
    return pages


async def test_pages_cover_the_list_once_in_order(api: Api) -> None:
    await apply(api, *(pod(f"p-{index:03}") for index in reversed(range(25))))

    pages = await all_pages(api, pb.ListRequest(kind="Pod", page_size=10))

    assert [len(page.objects) for page in pages] == [10, 10, 5]
    assert [name for page in pages for name in names(page.objects)] == [
        f"p-{index:03}" for index in range(25)
    ]


async def test_all_pages_show_the_revision_of_the_first_whatever_is_written_between(api: Api) -> None:
    await apply(api, *(pod(f"p-{index}") for index in range(4)))
    first = await api.cluster.List(pb.ListRequest(kind="Pod", page_size=2))
    await apply(api, pod("p-25"))

    second = await api.cluster.List(pb.ListRequest(kind="Pod", page_size=2, page_token=first.next_page_token))

    assert second.revision == first.revision
    assert names(first.objects) + names(second.objects) == ["p-0", "p-1", "p-2", "p-3"]


async def test_a_page_may_be_asked_for_again_with_another_size(api: Api) -> None:
    await apply(api, *(pod(f"p-{index}") for index in range(4)))
    token = (await api.cluster.List(pb.ListRequest(kind="Pod", page_size=2))).next_page_token

    pages = [
        await api.cluster.List(pb.ListRequest(kind="Pod", page_size=size, page_token=token))
        for size in (2, 1, 2)
    ]

    assert [names(page.objects) for page in pages] == [["p-2", "p-3"], ["p-2"], ["p-2", "p-3"]]


async def test_a_page_ends_before_it_grows_too_large(api: Api) -> None:
    await apply(api, *(pod(f"p-{index:02}", note="x" * 200_000) for index in range(40)))

    pages = await all_pages(api, pb.ListRequest(kind="Pod"))

    assert len(pages) > 2
    assert all(page.ByteSize() <= MAX_RESPONSE_BYTES for page in pages)
    assert sum(len(page.objects) for page in pages) == 40


@pytest.mark.parametrize(
    "request_with_token",
    [
        pytest.param(lambda token: pb.ListRequest(kind="PodGroup", page_token=token), id="other kind"),
        pytest.param(
            lambda token: pb.ListRequest(kind="Pod", deleting=True, page_token=token), id="other filter"
        ),
        pytest.param(
            lambda token: pb.ListRequest(
                kind="Pod", page_token=("B" if token[0] == "A" else "A") + token[1:]
            ),
            id="first character",
        ),
        pytest.param(
            lambda token: pb.ListRequest(
                kind="Pod", page_token=token[:-1] + ("A" if token[-1] != "A" else "B")
            ),
            id="last character",
        ),
        pytest.param(lambda _: pb.ListRequest(kind="Pod", page_token="nonsense!"), id="nonsense"),
        pytest.param(lambda _: pb.ListRequest(kind="Pod", page_token="AAAA"), id="too short"),
    ],
)
async def test_a_token_is_good_for_its_request_alone(api: Api, request_with_token) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    await apply(api, pod("a"), pod("b"), pod_group("g"))
    token = (await api.cluster.List(pb.ListRequest(kind="Pod", page_size=1))).next_page_token

    answer = await refused(api.cluster.List(request_with_token(token)))

    assert (answer.reason, answer.fields) == ("PAGE_TOKEN_MISMATCH", {"pageToken": "INVALID"})


async def test_a_token_of_one_method_is_no_token_of_another(api: Api, engine: FakeEngine) -> None:
    await apply(api, pod("a"), pod("b"))
    token = (await api.cluster.List(pb.ListRequest(kind="Pod", page_size=1))).next_page_token

    answer = await refused(api.scheduler.GetQueue(spb.GetQueueRequest(page_token=token)))

    assert answer.reason == "PAGE_TOKEN_MISMATCH"


def test_a_kept_list_is_forgotten_when_nobody_reads_on() -> None:
    clock = FakeClock()
    lists = KeptLists[int](clock.monotonic, most=10, seconds=60)
    lists.keep(1, [1])
    clock.advance(50)
    used = lists.keep(2, [2])
    clock.advance(50)
    lists.find(used.list_id)

    clock.advance(50)
    lists.find(used.list_id)

    assert len(lists) == 1


def test_the_list_that_was_used_longest_ago_makes_room() -> None:
    lists = KeptLists[int](FakeClock().monotonic, most=2, seconds=60)
    first, second = lists.keep(1, [1]), lists.keep(2, [2])
    lists.find(first.list_id)

    lists.keep(3, [3])

    assert lists.find(first.list_id).elements == [1]
    with pytest.raises(Exception, match="list again"):
        lists.find(second.list_id)


@pytest.mark.parametrize("limits", [replace(SHORT_LIMITS, kept_lists=1)], ids=["one kept list"])
async def test_a_page_that_comes_too_late_says_so(api: Api) -> None:
    await apply(api, pod("a"), pod("b"))
    token = (await api.cluster.List(pb.ListRequest(kind="Pod", page_size=1))).next_page_token
    await api.cluster.List(pb.ListRequest(kind="Pod", page_size=1))

    answer = await refused(api.cluster.List(pb.ListRequest(kind="Pod", page_size=1, page_token=token)))

    assert answer.reason == "REVISION_COMPACTED"


async def test_the_queue_is_cut_into_pages_with_the_counts_of_all(api: Api, engine: FakeEngine) -> None:
    engine.clusters["default"].units = [
        PositionedUnit(
            QueuedUnit(ObjectKey("PodGroup", "default", f"g-{index}"), UnitState.ACTIVE), index + 1
        )
        for index in range(3)
    ]

    first = await api.scheduler.GetQueue(spb.GetQueueRequest(page_size=2))
    second = await api.scheduler.GetQueue(spb.GetQueueRequest(page_size=2, page_token=first.next_page_token))

    assert [each.unit.name for page in (first, second) for each in page.units] == ["g-0", "g-1", "g-2"]
    assert [each.count for each in second.counts] == [3]
    assert second.counts[0].state == queue_pb2.UNIT_STATE_ACTIVE
    assert not second.next_page_token


async def test_decisions_are_listed_newest_first_in_pages(api: Api, engine: FakeEngine) -> None:
    key = ObjectKey("PodGroup", "default", "g")
    for index in range(5):
        engine.add_decision(DecisionRecord(f"d-{index}", 0, 0, Decision(key, DecisionCode.SCHEDULED)))

    first = await api.scheduler.ListDecisions(spb.ListDecisionsRequest(page_size=3))
    engine.add_decision(DecisionRecord("new", 0, 0, Decision(key, DecisionCode.SCHEDULED)))
    second = await api.scheduler.ListDecisions(
        spb.ListDecisionsRequest(page_size=3, page_token=first.next_page_token)
    )

    assert [each.id for page in (first, second) for each in page.decisions] == [
        "d-4",
        "d-3",
        "d-2",
        "d-1",
        "d-0",
    ]
    assert second.revision == first.revision
    assert not second.next_page_token


async def test_clusters_are_listed_by_name_in_pages(api: Api, engine: FakeEngine) -> None:
    for name in ("b", "a"):
        await api.cluster.Apply(pb.ApplyRequest(cluster=name, objects=[pod("x")]))

    first = await api.cluster.ListClusters(pb.ListClustersRequest(page_size=2))
    second = await api.cluster.ListClusters(
        pb.ListClustersRequest(page_size=2, page_token=first.next_page_token)
    )

    assert [each.name for page in (first, second) for each in page.clusters] == ["a", "b", "default"]
