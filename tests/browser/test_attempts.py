"""The attempts of a real run in a browser: a metric's range, one attempt with its files and changes, the lineage by
keyboard and by mouse, two figures against each other; and what a page of attempts makes of a damaged run."""

import base64
from collections.abc import Callable, Iterator

import pytest
from dashboard import Served, serving
from playwright.sync_api import Page, expect
from real_runs import coral_process, wait_until, write_task
from sample import attempt, make_run, write_events, write_status

from attempts.store import Store
from workspace.layout import Layout, runs_under

Tab = Callable[..., Page]
Picture = Callable[[Page, str], None]
# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
GRADE = f"""import base64

from coral.grader import Result


def grade(workspace, artifacts):
    score = float((workspace / "x.txt").read_text())
    (artifacts / "plot.png").write_bytes(base64.b64decode("{PNG}"))
    (artifacts / "page.html").write_text("<script>window.hacked = 1</script>")
    return Result(score, metrics={{"speed": score * 10, "loss": 1 / (1 + score)}}, feedback="<b>well</b>")
"""
PROGRAM = "def solve(rows):\n    # {0} rows\n    return [row * {0} for row in rows]\n"


@pytest.fixture(scope="module")
def layout(tmp_path_factory) -> Layout:
    """A finished run of three attempts, each with a program."""
    folder = tmp_path_factory.mktemp("attempts")
    steps = [
        step
        for value in (1, 3, 2)
        for step in (
            {"edit": {"file": "x.txt", "content": str(value)}},
            {"edit": {"file": "solve.py", "content": PROGRAM.format(value)}},
            {"submit": f"value {value}"},
        )
    ]
    task = write_task(folder / "task", steps, grade=GRADE)
    settings = ("agents.count=1", "budget.attempts=3")
    done = coral_process("start", str(task), "--plain", *settings, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = runs_under(folder / "runs")
    return found


@pytest.fixture(scope="module")
def served(layout: Layout) -> Iterator[Served]:
    with serving(layout) as found:
        yield found


def go(page: Page, layout: Layout, where: str) -> None:
    page.evaluate("hash => { location.hash = hash }", f"#/{layout.root.name}/{where}")


def best_of(layout: Layout) -> int:
    return next(number for number in Store(layout.attempts).numbers() if Store(layout.attempts).read(number).score == 3)


def test_the_table_is_narrowed_by_a_metric(layout: Layout, served: Served, tab: Tab) -> None:
    page = tab(served.address)
    go(page, layout, "attempts")
    page.get_by_label("Metric").select_option("speed")
    expect(page.get_by_role("button", name="speed")).to_be_visible()
    page.get_by_label("at least").fill("20")
    expect(page.locator("p[class=bar] [role=status]")).to_have_text("1 to 2 of 2")
    page.get_by_label("at least").fill("twenty")
    expect(page.get_by_role("alert")).to_contain_text("give a number")


def test_a_change_is_coloured_and_files_are_shown_and_run_nothing(
    layout: Layout, served: Served, tab: Tab, picture: Picture
) -> None:
    page, number = tab(served.address), best_of(layout)
    go(page, layout, f"attempts/{number}")
    expect(page.locator("h2").first).to_contain_text("(the best)")
    page.get_by_label("against").select_option("the seed")
    added = page.locator(".diff .added", has_text="return [row * 3 for row in rows]")
    expect(added.locator(".t-keyword", has_text="return")).to_have_count(1)
    expect(page.locator("summary", has_text="solve.py")).to_contain_text("+3")
    colours = page.evaluate(
        "[...document.querySelectorAll('.t-keyword, .t-comment')].map(one => getComputedStyle(one).color)"
    )
    assert len(set(colours)) == 2
    page.get_by_role("button", name="Show plot.png").click()
    drawn = page.locator("img.artifact")
    expect(drawn).to_be_visible()
    assert drawn.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    page.get_by_role("button", name="Show page.html").click()
    expect(page.locator("pre", has_text="<script>window.hacked = 1</script>")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save plot.png").click()
    assert saved.value.path().read_bytes() == base64.b64decode(PNG)
    assert page.evaluate("window.hacked") is None
    picture(page, "attempt-of-a-real-run")


def test_the_lineage_is_walked_by_keyboard_and_opened_by_a_click(
    layout: Layout, served: Served, tab: Tab, picture: Picture
) -> None:
    page, number = tab(served.address), best_of(layout)
    go(page, layout, "attempts/lineage")
    best = page.locator(f"svg a[data-attempt='{number}']")
    expect(best).to_have_attribute("tabindex", "0")
    author = Store(layout.attempts).read(number).agent
    assert str(best.get_attribute("aria-label")).startswith(f"#{number} by {author}: 3, the best, built on #")
    picture(page, "lineage-of-a-real-run")
    best.focus()
    page.keyboard.press("Home")
    expect(page.locator("svg a:focus")).to_have_attribute("data-attempt", "0")
    expect(page.get_by_role("tooltip")).to_contain_text("#0")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("h2")).to_contain_text("#")
    page.go_back()
    best.click()
    expect(page.locator("h2")).to_contain_text(f"#{number}")
    page.get_by_role("link", name="as a graph").click()
    expect(page.locator(f"svg a.chosen[data-attempt='{number}']")).to_be_visible()


def test_a_point_of_two_metrics_opens_its_attempt(layout: Layout, served: Served, tab: Tab, picture: Picture) -> None:
    page = tab(served.address)
    go(page, layout, "attempts/metrics")
    page.get_by_label("Up").select_option("speed")
    page.get_by_label("Across").select_option("loss")
    expect(page.get_by_role("img", name="speed against loss")).to_be_visible()
    picture(page, "metrics-of-a-real-run")
    # The point that lies highest and to the left: the best has the highest speed and the smallest loss.
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    for down in range(0, int(box["height"]), 8):
        for right in range(0, int(box["width"]) // 4, 8):
            page.mouse.click(box["x"] + right, box["y"] + down)
            if "/attempts/metrics" not in page.url:
                expect(page.locator("h2")).to_contain_text("3 ")
                return
    pytest.fail("no point was found")


def test_a_part_of_two_metrics_is_seen_larger(layout: Layout, served: Served, tab: Tab) -> None:
    page = tab(served.address)
    go(page, layout, "attempts/metrics")
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    drawn = "document.querySelector('.chart canvas').toDataURL()"
    whole, left = page.evaluate(drawn), box["x"] + box["width"] / 2
    page.mouse.move(left, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(left, box["y"] + 120, steps=5)
    page.mouse.up()
    # Not `wait_for_function`: it makes code of text in the page, which the page's policy forbids.
    wait_until(lambda: page.evaluate(drawn) != whole, what="the part that is larger")
    assert "/attempts/metrics" in page.url
    page.mouse.dblclick(left, box["y"] + 60)
    wait_until(lambda: page.evaluate(drawn) == whole, what="the whole again")


def test_pages_follow_a_run_that_goes_on_and_say_what_is_damaged(tmp_path, tab: Tab) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, "attempts/metrics")
        expect(page.locator("main")).to_contain_text("the grader gives a score alone")
        go(page, layout, "attempts/lineage")
        expect(page.locator("svg a")).to_have_count(5)
        Store(layout.attempts).publish(attempt(5, 9.0, verdict="new best"))
        write_events(layout, {"type": "published", "attempt": 5, "clock": 601.0, "text": "arrived", "agent": "agent-2"})
        expect(page.locator("svg a[data-attempt='5']")).to_be_visible()
        (layout.attempts / "000004.json").write_text("{torn")
        go(page, layout, "attempts/4")
        expect(page.get_by_role("alert")).to_contain_text("cannot read attempt #4")
        go(page, layout, "attempts/lineage/99")
        expect(page.get_by_role("alert")).to_contain_text("there is no such attempt")
