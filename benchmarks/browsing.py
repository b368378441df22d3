"""Opens pages of the dashboard in Chromium, as a visitor does, and reads the times that were taken in them.

Times are taken in the page, by observers that are added before its own scripts: asking from outside would be late.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.arena import BenchmarkError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Makes a promise of the milliseconds until the frame that shows an element of `selector`.
_SHOWN = """
window.shown = (selector, began) => new Promise((resolve, reject) => {
  const observer = new MutationObserver(() => {
    if (!document.querySelector(selector)) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - began));
  });
  // An element that stays may change its text or role.
  observer.observe(document, { childList: true, subtree: true, attributes: true, characterData: true });
  setTimeout(() => reject(new Error(`${selector} was not shown`)), 30000);
});
"""
_OPENED = "window.opened = window.shown(%s, 0);"
_MOVED = """([hash, selector]) => {
  const moved = window.shown(selector, performance.now());
  location.hash = hash;
  return moved;
}"""

# Wraps uPlot's constructor, so that the points that a chart draws are compared with those that it drew before.
_DRAWN = """
window.drawn = new Map();
let plot;
const note = (chart) => {
  const [times, , , ...groups] = chart.data;
  const fresh = times.filter((time, place) => !window.drawn.has(time) && groups.some((group) => group[place] !== null));
  fresh.forEach((time) => window.drawn.set(time, null));
  requestAnimationFrame(() => fresh.forEach((time) => window.drawn.set(time, Date.now())));
};
const watched = (made) => Object.assign(function (options, data, box) {
  return new made({ ...options, hooks: { draw: [note] } }, data, box);
}, made);
Object.defineProperty(window, "uPlot", { get: () => plot, set: (made) => (plot = watched(made)) });
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of this machine, without a window. BenchmarkError if there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BenchmarkError("playwright is not installed: make .venv/.browser") from None
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        raise BenchmarkError("there is no Chromium on this machine")
    with sync_playwright() as started:
        # Chromium's own sandbox does not work for root.
        launched = started.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def opened(browser: Browser, address: str, *scripts: str) -> Iterator[Page]:
    """Open a page in a new profile, which has nothing of the dashboard in its cache. `scripts` run before the page's
    own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        for script in scripts:
            context.add_init_script(script)
        page = context.new_page()
        page.goto(address, wait_until="commit")
        yield page
    finally:
        context.close()


def first_content(browser: Browser, address: str, selector: str) -> float:
    """Return the milliseconds from the begin of the navigation to the frame that shows `selector`, in a new profile."""
    with opened(browser, address, _SHOWN, _OPENED % json.dumps(selector)) as page:
        return _number(_evaluate(page, "window.opened"))


@contextmanager
def visit(browser: Browser, address: str, selector: str = "h2") -> Iterator[Page]:
    """Open a page and wait until it shows `selector`; `content_after_move` moves it to another address."""
    with opened(browser, address, _SHOWN, _OPENED % json.dumps(selector)) as page:
        _evaluate(page, "window.opened")
        yield page


def content_after_move(page: Page, hash: str, selector: str) -> float:
    """Return the milliseconds from a change of an open page's address to the frame that shows `selector`."""
    return _number(_evaluate(page, _MOVED, [hash, selector]))


@contextmanager
def watched_curve(browser: Browser, address: str, *scripts: str) -> Iterator[Page]:
    """Open the fleet's page, of which `drawn` returns what its curve has drawn. `scripts` run before the page's own."""
    with opened(browser, address, _SHOWN, _DRAWN, _OPENED % json.dumps(".chart canvas"), *scripts) as page:
        _evaluate(page, "window.opened")
        yield page


def drawn(page: Page) -> dict[float, float]:
    """Return when each point was on the screen, in milliseconds of the wall clock, by its time on the run's clock."""
    rows = _evaluate(page, "[...window.drawn].filter(([, at]) => at !== null)")
    return {_number(time): _number(at) for time, at in rows}


def _evaluate(page: Page, script: str, given: object = None) -> Any:
    from playwright.sync_api import Error

    try:
        return page.evaluate(script, given)
    except Error as error:
        raise BenchmarkError(f"a page failed: {error.message}") from None


def _number(found: Any) -> float:
    return float(found)
