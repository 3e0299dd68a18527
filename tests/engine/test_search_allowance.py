"""What a unit may spend on its next search after some that found nothing."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from fractions import Fraction

import pytest

from muster.core.tree import Unit
from muster.engine.cluster_service import ClusterService
from muster.engine.errors import Refusal
from muster.engine.ports import DecisionRecord
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.search_allowance import SearchAllowance
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.units import build_unit
from muster.model.objects import ClusterObject
from muster.model.pod import Container, Pod, Resources
from muster.store.store import SqlStore
from tests.engine.started_registry import putting
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods
from tests.fakes.clock import FakeClock

ROOT = composite("root", 2, same="zone")
A, B = leaf("a", 2, parent=ROOT, same="rack"), leaf("b", 2, parent=ROOT)
FULL, QUARTER, SIXTEENTH, NONE = Fraction(1), Fraction(1, 4), Fraction(1, 16), Fraction(0)


class Searching:
    """A tree with a cluster around it, and what its searches may spend."""

    def __init__(self) -> None:
        self.trees = TreeCluster(rack("r1", 1), rack("r2", 2), node("outside"))
        self.trees.apply(ROOT, A, B, *pods(A, 2), *pods(B, 2))
        self.allowance = SearchAllowance()

    def share(self) -> Fraction:
        return self._allowed().search_budget_share

    def fails(self) -> None:
        self.allowance.found_nothing(self._allowed(), self.trees.cluster.feed.flush(), PROFILE)

    def _allowed(self) -> Unit:
        unit = build_unit(self.trees.cluster, ROOT.key)
        return self.allowance.allowed(unit, self.trees.cluster.feed.flush(), PROFILE)


def rack(name: str, cpu: int, **labels: str) -> ClusterObject:
    return node(f"node-{name}", cpu=cpu, labels={"zone": "z", "rack": name, **labels})


@pytest.fixture
def searching() -> Searching:
    return Searching()


def test_each_search_in_a_row_may_spend_less_than_the_one_before(searching: Searching) -> None:
    shares = []
    for _ in range(5):
        shares.append(searching.share())
        searching.fails()

    assert shares == [FULL, QUARTER, SIXTEENTH, NONE, NONE]


def test_room_that_grows_in_a_domain_of_the_unit_gives_all_back(searching: Searching) -> None:
    searching.fails()
    searching.fails()

    searching.trees.apply(rack("r1", 3))

    assert searching.share() == FULL
    searching.fails()
    assert searching.share() == QUARTER


def test_a_new_domain_is_room(searching: Searching) -> None:
    searching.fails()

    searching.trees.apply(rack("r3", 1))

    assert searching.share() == FULL


def test_room_where_the_unit_may_not_go_is_none(searching: Searching) -> None:
    searching.fails()

    searching.trees.apply(node("outside", cpu=64), node("outside-too"))
    searching.trees.apply(
        replace(node("node-r1", cpu=64, labels={"zone": "z", "rack": "r1"}), unschedulable=True)
    )

    assert searching.share() == QUARTER


def test_what_is_freed_and_taken_in_one_domain_is_no_growth_but_a_smaller_part_of_it_may_grow(
    searching: Searching,
) -> None:
    searching.trees.apply(rack("r2-more", 2, rack="r2"))
    stays, goes = (
        replace(pods(A, 1)[0], name=name, group="", node_name=where)
        for name, where in (("stays", "node-r1"), ("goes", "node-r2"))
    )
    searching.trees.apply(goes)
    searching.fails()

    searching.trees.delete(goes)
    searching.trees.apply(replace(goes, node_name="node-r2-more"))
    assert searching.share() == QUARTER
    searching.trees.delete(goes)
    searching.trees.apply(stays)
    assert searching.share() == FULL


def test_a_unit_that_changed_may_spend_all_again(searching: Searching) -> None:
    searching.fails()

    searching.allowance.forget(ROOT.key)

    assert searching.share() == FULL


@pytest.fixture
async def service(sqlite_database: str, clock: FakeClock) -> AsyncIterator[ClusterService]:
    registry = ClusterRegistry(
        SqlStore(sqlite_database), clock, {PROFILE.name: PROFILE}, NullTelemetry(), EngineOptions(workers=0)
    )
    await registry.start()
    yield registry.services["default"]
    await registry.close(Refusal("SERVER_DRAINING", "the test is over"))


async def test_cycles_of_a_unit_spend_ever_less_until_its_pods_change(service: ClusterService) -> None:
    # Ten cores for ten, and each pod finds room of its own: only a search sees that they do not go together.
    nodes = [
        node(f"node-{i}", cpu=cpu, labels={"zone": "z", "rack": "r1"}) for i, cpu in enumerate((4, 4, 2))
    ]
    apply(service, *nodes, ROOT, A, B, *sized(pods(A, 2), "3"), *sized(pods(B, 2), "2"))
    await service.next_decision(ROOT.key)
    budgets = [await budget_of_next(service) for _ in range(3)]

    apply(service, *sized(pods(B, 1, first=2), "2"))

    full = PROFILE.search.node_budget
    assert budgets == [full // 4, full // 16, 0]
    assert await budget_of(service.next_decision(ROOT.key)) == full


def sized(some: list[Pod], cpu: str) -> list[Pod]:
    """The pods with another request."""
    containers = (Container(resources=Resources(requests={"cpu": cpu})),)
    return [replace(each, spec=replace(each.spec, containers=containers)) for each in some]


async def budget_of_next(service: ClusterService) -> int:
    service.cluster.queue.bring_forward(ROOT.key)
    return await budget_of(service.next_decision(ROOT.key))


async def budget_of(deciding: Awaitable[DecisionRecord | None]) -> int:
    record = await deciding
    assert record is not None
    return record.decision.search.budget


def apply(service: ClusterService, *objects: ClusterObject) -> None:
    service.write(putting(objects))
