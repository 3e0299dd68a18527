"""Headless Chromium of the system, driven over the DevTools protocol."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox where tests run as root, and no look-ups of its maker's hosts.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MILLISECONDS = 30_000

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser; without one on this machine the test is skipped."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def page_of(
    browser: Browser, *, scheme: Literal["light", "dark"] = "light", width: int = 1280
) -> AsyncIterator[Page]:
    """A page in a context of its own. What its scripts get wrong fails the test, whatever else it sees."""
    context = await browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = await context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if _is_fault(told) else None)
    yield page
    await context.close()
    assert faults == []


def _is_fault(told: ConsoleMessage) -> bool:
    """Whether the page is to blame; that an answer is a refusal is logged by the browser itself."""
    return told.type == "error" and not told.text.startswith(
        "Failed to load resource: the server responded with a status of 4"
    )
