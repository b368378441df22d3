"""One Chromium for all tests; each test has a browser profile of its own. Pictures go to build/screenshots."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_setup import chromium
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
PATIENCE_MS = 30_000
HEIGHT, MOST_PIXELS = "document.documentElement.scrollHeight", 6000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    sandbox = os.geteuid() != 0  # Chromium's own sandbox does not work for root
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium(), chromium_sandbox=sandbox)
        yield launched
        launched.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a new profile; the test fails if the page reports an error of its own."""
    contexts, problems = [], list[str]()

    def note(message: ConsoleMessage) -> None:
        # Chromium reports each answer that is an error; a page that shows one is no broken page.
        if message.type == "error" and "Failed to load resource" not in message.text and "ERR_" not in message.text:
            problems.append(message.text)

    def opened(address: str, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def picture() -> Callable[[Page, str], None]:
    def take(page: Page, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        before = page.viewport_size
        assert before is not None
        # A picture of the whole page makes the window larger while it is taken: charts would be empty in it.
        page.set_viewport_size({**before, "height": min(page.evaluate(HEIGHT), MOST_PIXELS)})
        # Some text is there before all of it, and all text before the figures.
        expect(page.get_by_role("status").filter(has_text="Loading ...")).to_have_count(0)
        expect(page.locator(".chart:not(:has(canvas))")).to_have_count(0)
        page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        page.screenshot(path=PICTURES / f"{name}.png")
        page.set_viewport_size(before)

    return take
