"""Every page against runs in every state: a live fleet and the same when it has ended, an empty run, a very large one,
a damaged one. No page reports an error of its own (see `tab`)."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import native_task
import pytest
from dashboard import serving
from large_run import make_large_run
from playwright.sync_api import Page, expect
from real_runs import Run, wait_until
from sample import make_run, write_status

from workspace.layout import Layout

Tab = Callable[..., Page]
Picture = Callable[[Page, str], None]
Texts = Mapping[str, str]  # page -> a text that is on it
ATTEMPTS, AGENTS = 100_000, 500
LARGE = {
    "fleet": f"Show all {AGENTS} agents",
    "attempts": f"1 to 50 of {ATTEMPTS + 1}",
    f"attempts/{ATTEMPTS}": "Lineage",
    "knowledge": "What #10000 pays",
    "heartbeats/agent-1": "The life of agent-1",
    f"transcripts/agent-{AGENTS}": "No launch has left anything yet",
    "runs": "Choose two to ten runs",
    "steering": "Tell all",
    "time": "cannot show",  # it has no journal
}
EMPTY = {
    "fleet": "No agent has been started yet",
    "attempts": "No attempt matches",
    "attempts/1": "there is no such attempt",
    "knowledge": "No synthesis yet",
    "heartbeats": "No heartbeat is in force yet",
    "transcripts": "No launch has left anything yet",
    "runs": "Choose two to ten runs",
    "steering": "Tell all",
    "time": "cannot show",
}
LIVE = {
    "attempts": "of ",
    "attempts/1": "Lineage",
    "knowledge": "",
    "heartbeats/agent-1": "The life of agent-1",
    "transcripts/agent-1": "1 to ",
    "runs": "Choose two to ten runs",
    "steering": "Tell all",
    "time": "The fleet at",
    "fleet": "Score over time",
}


def walk(page: Page, layout: Layout, texts: Texts, picture: Callable[[str], None] = lambda _: None) -> None:
    """Go to each page in turn."""
    for where, text in texts.items():
        page.evaluate("hash => { location.hash = hash }", f"#/{layout.root.name}/{where}")
        expect(page.locator("main")).to_contain_text(text)
        picture(where.partition("/")[0])


@pytest.mark.timeout(600)
def test_a_live_fleet_and_the_same_when_it_has_ended(
    tmp_path: Path, start: Callable[..., Run], tab: Tab, picture: Picture
) -> None:
    task = native_task.write_task(tmp_path / "task")
    run = start(task, overrides=("agents.runtime=native", "agents.count=2", "agents.options={seconds: 0.5}"))
    wait_until(lambda: len(run.attempts()) >= 3 and list(run.layout.shared.glob("notes/*")), what="attempts and a note")
    with serving(run.layout) as served:
        page = tab(served.address)
        expect(page.locator(".connection")).to_have_text("running")
        walk(page, run.layout, LIVE, lambda name: picture(page, f"live-{name}"))
        attempts = page.locator(".tiles div", has_text="Attempts").locator(".figure")
        expect(attempts).not_to_have_text(attempts.inner_text())  # another one comes by itself
        run.stop()
        expect(page.locator(".connection")).to_have_text("stopped")
        walk(page, run.layout, LIVE, lambda name: picture(page, f"finished-{name}"))
        run.supervise()
        expect(page.locator(".connection")).to_have_text("running")
        run.stop()
        expect(page.locator(".connection")).to_have_text("stopped")


def test_a_run_in_which_nothing_has_happened(tmp_path: Path, tab: Tab, picture: Picture) -> None:
    layout = make_run(tmp_path / "runs", scores=())
    shutil.rmtree(layout.agents)
    layout.agents.mkdir()
    with serving(layout) as served:
        page = tab(served.address)
        walk(page, layout, EMPTY, lambda name: picture(page, f"empty-{name}"))


def test_a_run_that_is_damaged(tmp_path: Path, tab: Tab, picture: Picture) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    damage(layout)
    with serving(layout) as served:
        page = tab(served.address)
        texts = {
            "fleet": "status.json is missing or damaged",
            "attempts": "1 to 4 of 4",  # the readable ones
            "attempts/1": "cannot",
            "knowledge": "",
            "heartbeats/agent-1": "",
            "transcripts/agent-1": "",
            "runs": "Choose two to ten runs",
            "steering": "Tell all",
            "time": "cannot",
        }
        walk(page, layout, texts, lambda name: picture(page, f"damaged-{name}"))


def damage(layout: Layout) -> None:
    """Whatever a page reads is torn, of another kind, or no text."""
    layout.status.write_bytes(b'{"agents": [{"name": "\xff')
    layout.events.parent.mkdir(parents=True, exist_ok=True)
    layout.events.write_bytes(b'{"type": "published", "attempt": "x", "clock": []}\n\xff\xfe\n[1]\n{"type"')
    (layout.attempts / "000001.json").write_text("{")
    (layout.attempts / "index.sqlite").write_bytes(b"no database")
    (layout.heartbeats / "agent-1.yaml").write_text("{[")
    layout.logs("agent-1").mkdir(parents=True, exist_ok=True)
    layout.prompt("agent-1", 1).mkdir()
    layout.output("agent-1", 1).write_bytes(b"\xff" * 1000)
    notes = layout.shared / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "torn.md").write_bytes(b"---\ntitle: [\xff\n")
    layout.journal.parent.mkdir(parents=True, exist_ok=True)
    layout.journal.write_bytes(b"\x00" * 4096)


@pytest.mark.timeout(600)
def test_a_very_large_run(tmp_path: Path, tab: Tab, picture: Picture) -> None:
    layout = make_large_run(tmp_path / "runs", ATTEMPTS, AGENTS)
    with serving(layout) as served:
        page = tab(served.address)
        walk(page, layout, LARGE)
        walk(page, layout, {"fleet": "more attempts not drawn"})
        assert page.locator("main tr[data-agent]").count() < AGENTS
        page.get_by_role("button", name=f"Show all {AGENTS} agents").click()
        expect(page.locator("main tr[data-agent]")).to_have_count(AGENTS)
        picture(page, "large-fleet")
        page.locator("section", has_text="Score over time").locator("select").first.select_option("agent-50")
        expect(page.locator(".legend")).not_to_contain_text("not drawn")  # all attempts of one agent are
        walk(page, layout, {"attempts": f"1 to 50 of {ATTEMPTS + 1}"})
        assert page.locator("tr[data-row]").count() == 50
        page.get_by_role("button", name="score").click()
        expect(page.locator("tr[data-row]").first).to_have_attribute("data-row", str(ATTEMPTS))
