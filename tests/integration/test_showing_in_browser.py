"""The page in a real browser: all of the view is on it, it is live, names are no markup, and a phone shows it whole."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.observe import flux, norfab
from specwire.runtime.observe.filemq import view_server
from specwire.runtime.observe.showing import Showing
from specwire.runtime.observe.view import Fact, Notice, View
from tests.integration.browser import browser, needs_browser
from tests.runtime.observe import statuses
from tests.runtime.observe.shown import ANY, Still, play

pytestmark = needs_browser

EVIL = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
LONG = "a-name-without-any-place-to-break-it-" * 4

TEXT = "document.body.innerText"
NOTED = "performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)"

CONTRAST = """
(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    const opaque = !colour.startsWith("rgba");
    return opaque || !element.parentElement ? colour : behind(element.parentElement);
  };
  let worst = 21;
  for (const element of document.querySelectorAll("h1, h2, p, b, span, td, th, dt, dd, li, a, small, i")) {
    if (!element.textContent.trim() || !element.offsetParent) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    worst = Math.min(worst, (a + 0.05) / (b + 0.05));
  }
  return worst;
})()
"""
"""The least contrast of any text with what is behind it, as the guidelines for accessible pages count it."""

READABLE = 4.5


def test_the_view_is_shown_and_nothing_in_it_is_run(tmp_path: Path) -> None:
    still = Still()
    first, second = still.shown.tables[0].rows
    table = msgspec.structs.replace(still.shown.tables[0], rows=((EVIL, *first[1:]), second))
    still.shown = msgspec.structs.replace(
        still.shown, name=EVIL, tables=(table,), notices=(Notice("2026-01-02T03:04:05+00:00", EVIL),)
    )

    async def story() -> None:
        async with Showing(still.subject(), ANY) as showing, browser(tmp_path) as tab:
            await tab.open(showing.url)
            assert await tab.look("document.title") == f"serving · FILEMQ server {EVIL}"
            text = await tab.look(TEXT)
            assert text.count(EVIL) == 3, "in the head, in the table and among what was refused"
            assert await tab.look("document.images.length") == 0
            for shown in (
                "/docs",
                "40 files, 4.0 kB",
                "ccdd",
                "25 %",
                "12 s",
                "1.5 kB",
                "changes to come",
                "1:02",
            ):
                assert shown in text, shown
            assert "2026-01-02 03:04:05 UTC" in text
            assert not await tab.look("document.getElementById('stale').checkVisibility()")
            assert set(await tab.look(NOTED)) <= {showing.url.rstrip("/")}, (
                "nothing is fetched from elsewhere"
            )

    play(story())


def test_the_page_is_live_and_says_when_it_is_not(tmp_path: Path) -> None:
    still = Still()

    async def story() -> None:
        async with browser(tmp_path) as tab:
            async with Showing(still.subject(), ANY) as showing:
                await tab.open(showing.url)
                more = (Fact("clients", 12345, "count"),)
                still.shown = msgspec.structs.replace(still.shown, gauges=more)
                await tab.until(f"{TEXT}.includes('12,345')")
                await tab.until("document.querySelector('#rates polyline') !== null")
            await tab.until("document.getElementById('stale').checkVisibility()")
            assert "The server does not answer" in await tab.look(TEXT)
            assert "12,345" in await tab.look(TEXT), "what was seen last stays"

    play(story())


def crowded(view: View) -> View:
    """Return a view whose every name is long."""
    cells = view.tables[0].rows[0]
    row = tuple(LONG if isinstance(cell, str) else cell for cell in cells)
    table = msgspec.structs.replace(view.tables[0], rows=(row, *view.tables[0].rows))
    facts = (*view.facts, Fact("long", LONG))
    return msgspec.structs.replace(view, name=LONG, facts=facts, tables=(table,))


@pytest.mark.parametrize(
    "view",
    [
        view_server(statuses.FILEMQ_SERVER),
        flux.view_broker(statuses.FLUX),
        norfab.view_broker(statuses.NORFAB_BROKER),
    ],
    ids=["filemq", "flux", "norfab"],
)
def test_it_is_readable_on_any_screen_light_and_dark(view: View, tmp_path: Path) -> None:
    """Nothing is cut off or has to be pulled sideways, and every text stands out from what is behind it."""

    async def story() -> None:
        async with Showing(Still(crowded(view)).subject(), ANY) as showing, browser(tmp_path) as tab:
            for width, dark in ((1280, False), (1280, True), (390, True), (360, False)):
                await tab.resize(width, 800, dark=dark)
                await tab.open(showing.url)
                shown = json.dumps([width, dark])
                assert await tab.look("document.documentElement.scrollWidth") <= width, shown
                assert await tab.look(CONTRAST) >= READABLE, shown
                outside = (
                    "[...document.querySelectorAll('section *')].filter((one) => one.checkVisibility() && "
                    "one.closest('thead') === null && one.getBoundingClientRect().right > innerWidth + 1).length"
                )
                assert await tab.look(outside) == 0, shown

    play(story())
