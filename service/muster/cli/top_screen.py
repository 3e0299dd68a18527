"""The live screen of `muster top`: two tables that follow the service, and a page for the row that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header, Static

from muster.cli.decision_views import CODE_STYLES, code_name, decision_view
from muster.cli.explain import explanation_view
from muster.cli.faults import explained
from muster.cli.session import Session
from muster.cli.top_readings import (
    DECISION_TITLES,
    UNIT_TITLES,
    Readings,
    decision_row,
    read,
    state_counts,
    unit_row,
)
from muster.client.client import Client
from muster.client.errors import MusterError
from muster.v1.decision_pb2 import Decision
from muster.v1.queue_pb2 import UnitQueueState
from muster.v1.scheduler_service_pb2 import ExplainRequest, GetDecisionRequest

BAR = 20
WARM, HOT = 0.75, 0.95


class Details(Screen[None]):
    """One answer to be read at leisure."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "app.pop_screen", "Back")]

    def __init__(self, content: RenderableType) -> None:
        super().__init__()
        self._content = content

    def compose(self) -> ComposeResult:
        yield Header()
        yield VerticalScroll(Static(self._content))
        yield Footer()


class TopScreen(App[None]):
    """Looks every so many seconds; a look that fails is told, and what was seen before stays."""

    TITLE = "muster top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #summary { padding: 0 1; }
    DataTable { height: 1fr; }
    .title { padding: 0 1; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "pause", "Pause"),
        Binding("r", "look", "Look now"),
        Binding("tab", "focus_next", "Other table", show=True),
    ]

    def __init__(self, client: Client, session: Session, every_seconds: float) -> None:
        super().__init__()
        self._client = client
        self._session = session
        self._every_seconds = every_seconds
        self._is_paused = False
        self._units: list[UnitQueueState] = []
        self._decisions: list[Decision] = []

    def compose(self) -> ComposeResult:
        yield Header(show_clock=True)
        yield Static(id="summary")
        yield Static("Queue: enter explains a unit", classes="title")
        yield DataTable(id="units", cursor_type="row", zebra_stripes=True)
        yield Static("Decisions: enter shows one", classes="title")
        yield DataTable(id="decisions", cursor_type="row", zebra_stripes=True)
        yield Footer()

    async def on_mount(self) -> None:
        """Begin to look."""
        self.sub_title = f"{self._session.server} {self._session.cluster or 'default'}"
        for name, titles in (("#units", UNIT_TITLES), ("#decisions", DECISION_TITLES)):
            self.query_one(name, DataTable).add_columns(*titles)
        self.set_interval(self._every_seconds, self._look_unless_paused)
        await self.action_look()

    def action_pause(self) -> None:
        """Stand still, or go on."""
        self._is_paused = not self._is_paused
        self.notify("paused" if self._is_paused else "going on")

    async def action_look(self) -> None:
        """Look once."""
        try:
            readings = await read(self._client, self._session.cluster)
        except MusterError as error:
            self.notify(explained(error, self._session.server), severity="error", markup=False)
            return
        self._show(readings)

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Explain the unit of the row, or show its decision."""
        row = event.cursor_row
        try:
            if event.data_table.id == "units" and row < len(self._units):
                await self._explain(self._units[row])
            elif event.data_table.id == "decisions" and row < len(self._decisions):
                await self._decision(self._decisions[row])
        except MusterError as error:
            self.notify(explained(error, self._session.server), severity="error", markup=False)

    async def _look_unless_paused(self) -> None:
        if not self._is_paused and len(self.screen_stack) == 1:
            await self.action_look()

    async def _explain(self, unit: UnitQueueState) -> None:
        response = await self._client.explain(ExplainRequest(unit=unit.unit))
        await self.push_screen(Details(explanation_view(response, asked_for_helps=False)))

    async def _decision(self, decision: Decision) -> None:
        response = await self._client.get_decision(GetDecisionRequest(id=decision.id))
        await self.push_screen(Details(decision_view(response.decision)))

    def _show(self, readings: Readings) -> None:
        now = readings.read_at
        self._units = list(readings.queue.units)
        self._decisions = list(readings.decisions.decisions)
        self.query_one("#summary", Static).update(_summary(readings))
        _fill(
            self.query_one("#units", DataTable),
            [tuple(map(Text, unit_row(each, now))) for each in self._units],
        )
        _fill(self.query_one("#decisions", DataTable), [_told(each, readings) for each in self._decisions])


def _told(decision: Decision, readings: Readings) -> tuple[Text, ...]:
    cells = [Text(each) for each in decision_row(decision, readings.read_at)]
    cells[2].stylize(CODE_STYLES.get(code_name(decision), "red"))
    return tuple(cells)


def _fill(table: DataTable[Text], rows: Sequence[tuple[Text, ...]]) -> None:
    """New rows in place of the old ones; the cursor stays where it is."""
    at = table.cursor_row
    table.clear()
    table.add_rows(rows)
    table.move_cursor(row=min(at, max(0, len(rows) - 1)), animate=False)


def _summary(readings: Readings) -> Text:
    waiting = "  ".join(f"{count} {state}" for state, count in state_counts(readings.queue)) or "empty"
    nodes, pods = (readings.counts.get(kind, 0) for kind in ("Node", "Pod"))
    text = Text(f"{nodes} nodes  {pods} pods  revision {readings.queue.revision}\nqueue  {waiting}\n")
    for use in readings.uses:
        colour = "red" if use.share > HOT else "yellow" if use.share > WARM else "green"
        filled = min(BAR, round(BAR * use.share))
        text.append(f"{use.resource:<24}")
        text.append("█" * filled, colour)
        text.append("░" * (BAR - filled), "dim")
        text.append(f" {use.share:4.0%}  {use}\n")
    text.rstrip()
    return text
