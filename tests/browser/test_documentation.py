"""The pictures of docs/dashboard.md: the main pages on a real run of the demo's kind, as somebody sees them.

`make pictures` writes them into docs/images. Otherwise they are made of a shorter run, and go to build/documentation.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from dashboard import Served, serving
from PIL import Image
from playwright.sync_api import Page, expect
from real_runs import coral_process, wait_until

from coral.reading.run_view import RunView
from workspace import notes
from workspace.layout import Layout, runs_under

Tab = Callable[..., Page]
ROOT = Path(__file__).parents[2]
IMAGES, DOCUMENT = ROOT / "docs/images", ROOT / "docs/dashboard.md"
WRITES = os.environ.get("PICTURES") == "write"
FOLDER = IMAGES if WRITES else ROOT / "build" / "documentation"
AGENTS = 4
SECONDS = 75.0 if WRITES else 20.0  # of the run, before the pictures
EARLIER = "budget.attempts=6" if WRITES else "budget.attempts=4"  # the run that it is compared with
WIDTH, HEIGHT, SHARPNESS, COLOURS = 1200, 860, 1.25, 128  # pixels of the page, and of the picture for each of them
LARGEST = 150_000  # bytes
ELSEWHERE = re.compile(r"/(?:tmp|root|home|Users|work|private)/")


@dataclass(frozen=True)
class Shown:
    """A page: where it is, a text that it has, and what is done before it is drawn."""

    where: Callable[[RunView], str]
    text: str
    prepare: Callable[[Page], None] = lambda _: None
    height: int = HEIGHT


def _without_load(page: Page) -> None:
    """How busy the machine is that draws is no matter of the page."""
    for notice in page.locator(".notice", has_text="programs share each core").all():
        notice.evaluate("part => { part.style.display = 'none' }")


def _compare(page: Page) -> None:
    expect(page.get_by_role("checkbox")).to_have_count(2)
    for box in page.get_by_role("checkbox").all():
        box.press("Space")
        box.blur()
    expect(page.locator(".chart canvas")).to_have_count(1)
    page.get_by_label("Scale").select_option("gap to the best of all")


SHOWN = {
    "fleet": Shown(lambda _: "fleet", "Score over time", _without_load, 1000),
    "attempts": Shown(lambda _: "attempts", "1 to "),
    "attempt": Shown(lambda run: f"attempts/{run.proven or 1}", "Lineage", height=1000),
    "lineage": Shown(lambda _: "attempts/lineage", "Whose best came from whom"),
    "knowledge": Shown(lambda _: "knowledge", "Conclusions"),
    "heartbeats": Shown(lambda _: "heartbeats/agent-1", "The life of agent-1"),
    "transcript": Shown(lambda _: "transcripts/agent-1/2", "says", height=1040),
    "runs": Shown(lambda _: "runs", "Choose two to ten runs", _compare, 1000),
}


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A run that goes on, with a synthesis, beside one that has ended."""
    folder = tmp_path_factory.mktemp("demo")
    task = str(ROOT / "examples/circle_packing")
    done = coral_process("start", task, "--plain", "agents.count=2", EARLIER, cwd=folder, seconds=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (earlier,) = runs_under(folder / "runs")
    try:
        done = coral_process("start", task, "--detach", f"agents.count={AGENTS}", "budget.hours=0.2", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        (found,) = (run for run in runs_under(folder / "runs") if run.root != earlier.root)
        wait_until(lambda: is_old_enough(found), 600)
        yield found
    finally:
        coral_process("stop", cwd=folder)


def is_old_enough(layout: Layout) -> bool:
    clock = RunView(layout).status.number("clock") or 0.0
    return clock >= SECONDS and notes.latest_synthesis(layout.shared) is not None


@pytest.fixture(scope="module")
def served(layout: Layout) -> Iterator[Served]:
    with serving(layout) as found:
        yield found


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_is_drawn_for_the_documentation(name: str, layout: Layout, served: Served, tab: Tab) -> None:
    shown = SHOWN[name]
    page = tab(
        served.address,
        color_scheme="light",
        viewport={"width": WIDTH, "height": shown.height},
        device_scale_factor=SHARPNESS,
    )
    page.evaluate("hash => { location.hash = hash }", f"#/{layout.root.name}/{shown.where(RunView(layout))}")
    expect(page.locator("main")).to_contain_text(shown.text)
    expect(page.locator(".connection")).to_have_text("running")
    shown.prepare(page)
    expect(page.get_by_role("status").filter(has_text="Loading ...")).to_have_count(0)
    expect(page.locator(".chart:not(:has(canvas))")).to_have_count(0)
    page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    picture = small(page.screenshot())
    assert ELSEWHERE.findall(page.locator("body").inner_text()) == []
    assert len(picture) < LARGEST
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"dashboard-{name}.png").write_bytes(picture)


def small(drawn: bytes) -> bytes:
    """The picture with few colours: a page has few."""
    held = BytesIO()
    Image.open(BytesIO(drawn)).convert("RGB").quantize(
        COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    ).save(held, "PNG", optimize=True)
    return held.getvalue()


def test_the_document_shows_each_page_and_says_what_is_on_it() -> None:
    shown = dict(re.findall(r"!\[([^\]]{30,})\]\(images/dashboard-(\w+)\.png\)", DOCUMENT.read_text(encoding="utf-8")))
    assert sorted(shown.values()) == sorted(SHOWN)
    assert "](docs/images/dashboard-fleet.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for name in SHOWN:
        with Image.open(IMAGES / f"dashboard-{name}.png") as picture:
            assert picture.width == WIDTH * SHARPNESS
        assert (IMAGES / f"dashboard-{name}.png").stat().st_size < LARGEST
