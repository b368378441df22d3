"""What goes away under an open page - the server, the connection, the run - is named there, and the page goes on by
itself when it is back."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard import serving
from playwright.sync_api import Page, expect
from sample import attempt, make_run, write_heartbeats, write_status

from attempts.store import Store
from workspace.layout import Layout

Tab = Callable[..., Page]
TOKEN = {"CORAL_UI_TOKEN": "a-token-for-two-starts"}
# page -> a text that is on it
PAGES = {
    "fleet": "Score over time",
    "attempts": "1 to 5 of 5",
    "attempts/4": "Lineage",
    "knowledge": "No synthesis yet",
    "heartbeats/agent-1": "The life of agent-1",
    "transcripts/agent-1": "No launch has left anything yet",
    "steering": "Tell all",
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = make_run(tmp_path / "runs")
    write_heartbeats(made)
    write_status(made)
    for agent in ("agent-1", "agent-2"):
        made.logs(agent).mkdir(parents=True, exist_ok=True)
    return made


def go(page: Page, layout: Layout, where: str) -> None:
    page.evaluate("hash => { location.hash = hash }", f"#/{layout.root.name}/{where}")


@pytest.mark.parametrize("where", PAGES)
def test_a_run_that_is_moved_away_and_comes_back(layout: Layout, tab: Tab, where: str) -> None:
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, where)
        expect(page.locator("main")).to_contain_text(PAGES[where])
        away = layout.root.rename(layout.root.with_name("away"))
        expect(page.get_by_role("alert").first).to_contain_text("is gone")
        page.reload()
        expect(page.get_by_role("alert").first).to_contain_text("is gone")
        away.rename(layout.root)
        expect(page.locator("main")).to_contain_text(PAGES[where])
        expect(page.get_by_role("alert").filter(has_text="gone")).to_have_count(0)
        shutil.rmtree(layout.root)
        expect(page.get_by_role("alert").first).to_contain_text("is gone")
    assert not layout.root.exists()  # no page made it again


def test_a_server_that_is_killed_and_started_again(layout: Layout, tab: Tab) -> None:
    with serving(layout, **TOKEN) as served:
        pages = [tab(served.address) for _ in PAGES]
        for page, (where, text) in zip(pages, PAGES.items(), strict=True):
            go(page, layout, where)
            expect(page.locator("main")).to_contain_text(text)
        port = int(served.url.rpartition(":")[2])
        served.process.kill()
        served.process.wait()
        for page in pages:
            expect(page.locator(".connection")).to_contain_text("connection lost")
    Store(layout.attempts).publish(attempt(5, 2.5))  # what happens while no page is told
    write_status(layout, attempts=77)
    with serving(layout, port=port, **TOKEN):
        for page in pages:
            expect(page.locator(".connection")).to_have_text("dead")  # nobody supervises it
        expect(pages[0].locator(".tiles")).to_contain_text("77")
        expect(pages[1].locator("main")).to_contain_text("1 to 6 of 6")


def test_a_server_with_another_token_says_what_to_do(layout: Layout, tab: Tab) -> None:
    with serving(layout, **TOKEN) as served:
        page = tab(served.address)
        expect(page.locator(".connection")).to_have_text("dead")
        port = int(served.url.rpartition(":")[2])
    with serving(layout, port=port, CORAL_UI_TOKEN="another-token-than-before") as other:
        expect(page.locator(".connection")).to_contain_text("open the address that `coral ui` printed")
        beside = page.context.new_page()  # the same browser opens it: its cookie is for both
        beside.goto(other.address)
        expect(page.locator(".connection")).to_have_text("dead")


def test_a_server_that_is_suspended(layout: Layout, tab: Tab) -> None:
    with serving(layout) as served:
        page = tab(served.address)
        expect(page.locator(".connection")).to_have_text("dead")
        served.process.send_signal(signal.SIGSTOP)
        try:
            expect(page.locator(".connection")).to_contain_text("does not answer")
        finally:
            served.process.send_signal(signal.SIGCONT)
        write_status(layout, attempts=78)
        expect(page.locator(".connection")).to_have_text("dead")
        expect(page.locator(".tiles")).to_contain_text("78")


def test_a_network_that_drops(layout: Layout, tab: Tab) -> None:
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, "attempts")
        expect(page.locator("main")).to_contain_text("1 to 5 of 5")
        page.context.set_offline(True)
        page.get_by_role("button", name="score").click()
        expect(page.get_by_role("alert").first).to_contain_text("does not answer")
        page.context.set_offline(False)
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("1 to 5 of 5")
