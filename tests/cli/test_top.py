"""`muster top`: one look printed where there is no terminal, the live screen where there is one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from muster.cli.session import Session
from muster.cli.top_readings import ago, amount
from muster.cli.top_screen import Details, TopScreen
from tests.cli.conftest import Command

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SHORT = """
apiVersion: scheduling.k8s.io/v1alpha3
kind: PodGroup
metadata: {name: short}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: short-0}
spec:
  schedulingGroup: {podGroupName: short}
  containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def loaded(command: Command, manifests: Path) -> Command:
    """A cluster with a gang that runs and one that is short of a member."""
    assert command("apply", "-f", str(manifests)).exit_code == 0
    assert command("schedule", "podgroup/crew", "--wait", "30s").exit_code == 0
    assert command("apply", "-f", "-", text=SHORT).exit_code == 0
    return command


@asynccontextmanager
async def screen_of(command: Command) -> AsyncIterator[tuple[TopScreen, Pilot[None]]]:
    session = Session(server=command.address, cluster=command.cluster)
    async with session.client() as client:
        screen = TopScreen(client, session, every_seconds=3_600)
        async with screen.run_test(size=(140, 50)) as pilot:
            await pilot.pause()
            yield screen, pilot


def cells(screen: TopScreen, table: str) -> list[str]:
    found = screen.query_one(table, DataTable)
    return [" ".join(str(cell) for cell in found.get_row_at(row)) for row in range(found.row_count)]


def test_without_a_terminal_one_look_is_printed(loaded: Command) -> None:
    result = loaded("top")

    assert result.exit_code == 0, result.output
    assert "in use: cpu 50% (2 of 4)" in result.output
    assert "queue: 1 gated" in result.output
    assert "1 of 2 members" in result.output
    assert "placed 2 pods" in result.output


def test_a_look_as_json_holds_the_apis_messages(loaded: Command) -> None:
    look = loaded.json("top")

    assert [each["unit"]["name"] for each in look["queue"]["units"]] == ["short"]
    assert look["decisions"][0]["code"] == "DECISION_CODE_SCHEDULED"
    assert {"resource": "cpu", "used": "2", "allocatable": "4"} in look["use"]
    assert look["counts"]["Node"] == 1


def test_a_look_stores_nothing(loaded: Command) -> None:
    before = loaded.json("queue")["revision"]

    loaded("top")

    assert loaded.json("queue")["revision"] == before


async def test_the_screen_shows_queue_use_and_decisions(loaded: Command) -> None:
    async with screen_of(loaded) as (screen, _):
        assert "podgroup/short gated 0 1" in cells(screen, "#units")[0]
        assert "podgroup/crew scheduled" in cells(screen, "#decisions")[0]
        assert "1 nodes" in str(screen.query_one("#summary", Static).render())


async def test_enter_explains_a_unit_and_escape_goes_back(loaded: Command) -> None:
    async with screen_of(loaded) as (screen, pilot):
        screen.query_one("#units").focus()
        await pilot.press("enter")
        await pilot.pause()
        explained = isinstance(screen.screen, Details)
        await pilot.press("escape")

        assert explained
        assert not isinstance(screen.screen, Details)


async def test_enter_shows_a_decision(loaded: Command) -> None:
    async with screen_of(loaded) as (screen, pilot):
        screen.query_one("#decisions").focus()
        await pilot.press("enter")
        await pilot.pause()

        assert isinstance(screen.screen, Details)


async def test_the_next_look_shows_what_is_new(loaded: Command) -> None:
    async with screen_of(loaded) as (screen, pilot):
        deleted = await asyncio.to_thread(loaded, "delete", "pod/short-0")
        await pilot.press("r")
        await pilot.pause()

        assert deleted.exit_code == 0
        assert cells(screen, "#units") == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (61, "1m 1s"), (3_600, "1h"), (90_061, "1d 1h")]
)
def test_times_are_told_in_two_units(seconds: int, text: str) -> None:
    assert ago(Timestamp(seconds=int(NOW.timestamp()) - seconds), NOW) == text


@pytest.mark.parametrize(
    ("resource", "quantity", "text"),
    [("cpu", "1500m", "1.5"), ("memory", "3Gi", "3.0Gi"), ("nvidia.com/gpu", "8", "8")],
)
def test_amounts_are_told_as_people_read_them(resource: str, quantity: str, text: str) -> None:
    assert amount(resource, quantity) == text
