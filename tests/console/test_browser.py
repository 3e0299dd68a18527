"""The console in a browser: from the topology to the queue, to why a tree waits, to how a decision was made.

With MUSTER_SCREENSHOTS set to a folder the pages are kept there as pictures, as they are in docs/console.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.console.browser import chromium, page_of
from tests.console.conftest import TOKEN
from tests.console.served import Served
from tests.console.world import CLUSTER

SCREENSHOTS = os.environ.get("MUSTER_SCREENSHOTS")
PAGES = ["topology", "queue", "groups", "decisions", "unit/CompositePodGroup/default/pretraining"]
HOSTILE = '<img src=x onerror="window.broken = true"><script>window.broken = true</script>'


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with page_of(browser) as opened:
        yield opened


async def visit(page: Page, served: Served, path: str) -> None:
    """Opens a page of the replayed cluster, and waits until it is there."""
    await page.goto("about:blank")
    await page.goto(f"{served.url}#/{path}{'&' if '?' in path else '?'}cluster={CLUSTER}")
    await settled(page)


async def settled(page: Page) -> None:
    await expect(page.locator("main:not([aria-busy]) h1")).to_be_visible()


async def keep(page: Page, name: str) -> None:
    if SCREENSHOTS:
        path = Path(SCREENSHOTS) / f"{name}.png"
        await page.screenshot(path=path, full_page=name != "decisions")


async def test_a_reader_walks_from_the_topology_to_how_a_decision_was_made(
    page: Page, served: Served
) -> None:
    await page.goto(served.url)
    await page.get_by_label("Cluster").select_option(CLUSTER)
    await expect(page.get_by_role("region", name="block block-0")).to_be_visible()

    await page.get_by_label("Highlight a group").fill("CompositePodGroup/default/training")
    await page.keyboard.press("Enter")
    await expect(page.locator(".highlight-note")).to_contain_text("6 pods bound here")
    await expect(page.locator(".host.marked")).to_have_count(6)
    await keep(page, "topology")

    await page.get_by_role("link", name="Queue").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    await keep(page, "queue")

    await page.get_by_role("link", name="CompositePodGroup default/pretraining").click()
    await expect(page.locator("main")).to_contain_text("level 2 fails first")
    await expect(page.get_by_text("example.com/block=block-1: 2 of 3 groups fit")).to_be_visible()
    await page.get_by_role("link", name="Try which changes").click()
    await expect(page.get_by_text("make 1 node schedulable again: b1-r1-h3")).to_be_visible()
    await keep(page, "explanation")

    await page.get_by_role("link", name="Decisions", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Decisions")
    await keep(page, "decisions")
    row = page.get_by_role("row").filter(has_text="CompositePodGroup default/training")
    await row.get_by_role("link", name="no. ").click()
    await expect(page.locator(".timeline")).to_contain_text("PodGroup default/training-1")
    await expect(page.locator("main")).to_contain_text("it came out equal")
    await keep(page, "timeline")


async def test_a_decision_of_the_replayed_trace_has_a_timeline(page: Page, served: Served) -> None:
    asked = f"decisions?cluster={CLUSTER}&kind=PodGroup&name=gang-4&code=DECISION_CODE_SCHEDULED"
    (decision,) = served.view(asked)["decisions"]

    await visit(page, served, f"decision/{decision['id']}")

    await expect(page.locator(".timeline tbody tr")).not_to_have_count(0)
    await expect(page.locator(".timeline")).to_contain_text("PodGroup default/gang-4")


async def test_every_page_has_one_heading_landmarks_and_names(page: Page, served: Served) -> None:
    for path in PAGES:
        await visit(page, served, path)

        for landmark in ("h1", "body > header", "main", "body > footer"):
            await expect(page.locator(landmark)).to_have_count(1)
        assert await page.evaluate(NAMELESS) == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_told_from_its_ground(
    browser: Browser, served: Served, scheme: Literal["light", "dark"]
) -> None:
    async with page_of(browser, scheme=scheme) as page:
        for path in [*PAGES, "topology?as=table", "topology?group=CompositePodGroup/default/training"]:
            await visit(page, served, path)

            assert await page.evaluate(FAINT) == [], path


async def test_it_can_be_used_by_the_keyboard_alone(page: Page, served: Served) -> None:
    await visit(page, served, "topology")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()

    await page.get_by_role("button", name="b0-r0-h0").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("button", name="b0-r0-h1")).to_be_focused()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Node b0-r0-h1")
    await expect(dialog).to_contain_text("of 16 cpu in use")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="b0-r0-h1")).to_be_focused()


async def test_the_topology_is_also_told_as_a_table(page: Page, served: Served) -> None:
    await visit(page, served, "topology")

    await page.get_by_label("as a table").check()

    nodes = page.get_by_role("region", name="Nodes").get_by_role("row")
    await expect(nodes).to_have_count(37)
    await expect(nodes.filter(has_text="b1-r1-h3")).to_contain_text("yes")


async def test_a_live_page_shows_what_is_new_and_keeps_the_focus(page: Page, served: Served) -> None:
    units: dict[str, Any] = {
        "units": [],
        "counts": [],
        "pendingPodGroups": [],
        "pendingPodGroupMembers": [],
        "revision": "7",
    }
    answers = iter([units, {**units, "counts": [{"state": "UNIT_STATE_ACTIVE", "count": 3}]}])
    last = dict(units)

    async def answer(route: Route) -> None:
        last.update(next(answers, last))
        await route.fulfill(json=last)

    await page.route("**/api/queue*", answer)
    await visit(page, served, "queue")
    await expect(page.locator("main")).to_contain_text("Nothing waits")
    chip = page.get_by_role("link", name="all ")
    await chip.focus()

    await expect(page.get_by_role("link", name="active 3")).to_be_visible()
    await expect(chip).to_be_focused()


async def test_a_live_page_leaves_what_somebody_types_alone(page: Page, served: Served) -> None:
    await page.clock.install()
    await visit(page, served, "topology")
    field = page.get_by_label("Highlight a group")
    await field.press_sequentially("PodGr")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    await page.clock.run_for(10_000)
    kept = await field.input_value()
    asked_meanwhile = [url for url in asked if "/api/topology" in url]
    async with page.expect_response("**/api/topology*"):
        await page.clock.run_for(20_000)

    assert (kept, asked_meanwhile) == ("PodGr", [])


async def test_what_an_object_holds_is_text_and_never_markup(page: Page, served: Served) -> None:
    unit = {
        "unit": {"kind": "PodGroup", "namespace": HOSTILE, "name": HOSTILE},
        "state": "UNIT_STATE_ACTIVE",
        "reasons": [{"code": HOSTILE, "message": HOSTILE}],
        "position": 1,
        "priority": 0,
        "pendingPodCount": 1,
        "attempts": 0,
    }
    body = {
        "units": [unit],
        "counts": [],
        "pendingPodGroups": [],
        "pendingPodGroupMembers": [],
        "revision": "1",
    }

    async def answer(route: Route) -> None:
        await route.fulfill(body=json.dumps(body), content_type="application/json")

    await page.route("**/api/queue*", answer)
    await visit(page, served, "queue")

    await expect(page.get_by_role("cell", name=HOSTILE)).to_be_visible()
    assert await page.evaluate("window.broken") is None
    assert await page.locator("main img, main script").count() == 0


async def test_a_unit_that_is_gone_is_told_and_the_way_on_stays(page: Page, served: Served) -> None:
    await page.goto(f"{served.url}#/unit/PodGroup/default/none?cluster={CLUSTER}")

    await expect(page.get_by_role("alert")).to_contain_text("OBJECT_NOT_FOUND")


async def test_with_tokens_a_reader_signs_in_and_out(page: Page, guarded: Served) -> None:
    await page.goto(guarded.url)
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Topology")

    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


NAMELESS = """() => [...document.querySelectorAll('a, button, input, select, table, [role=region], [role=group]')]
  .filter((element) => !(element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.length
    || element.getAttribute('aria-labelledby')))
  .map((element) => element.outerHTML.slice(0, 200))"""

FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = (colour) => {
    const [r, g, b] = [...rgb(colour)].slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return 'white';
  };
  const faint = [];
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !element.checkVisibility() || element.closest('.skip, noscript, .visually-hidden, option')) continue;
    const [one, two] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) faint.push(`${element.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
