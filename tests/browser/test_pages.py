"""Every page in a real browser: on a run with a history, an empty one, a damaged one; what is hostile runs nothing."""

import json
import time
from collections.abc import Callable, Iterator

import pytest
from browser_setup import SCRIPT
from dashboard import Served, serving
from files import write_files
from playwright.sync_api import Page, expect
from sample import (
    STEERED_TASK,
    agent_status,
    attempt,
    make_run,
    requests_of,
    stamp,
    write_events,
    write_heartbeats,
    write_status,
)

from attempts.store import Store
from coral.config.load import load
from workspace import knowledge
from workspace.layout import Layout

Tab = Callable[..., Page]
Picture = Callable[[Page, str], None]
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>[x](javascript:window.hacked=3) \x1b[31m'
)
# page -> a text that is on it
PAGES = {
    "fleet": "Score over time",
    "attempts": "1 to 7 of 7",
    "attempts/5": "Lineage",
    "attempts/lineage": "Whose best came from whom",
    "attempts/metrics": "The last new bests",
    "knowledge": "What the agents know",
    "heartbeats/agent-1": "The life of agent-1",
    "transcripts/agent-1": "a whole word",
    "runs": "Choose two to ten runs",
    "steering": "Resume the run",
    "time": "began later",  # this one was never supervised
}


@pytest.fixture(scope="module")
def layout(tmp_path_factory) -> Layout:
    """A run in which everything that agents write is hostile."""
    made = make_run(tmp_path_factory.mktemp("pages") / "runs")
    Store(made.attempts).publish(
        attempt(5, 3.5, verdict="new best", title=HOSTILE, feedback=HOSTILE * 50, metrics={HOSTILE: 1.5, "loss": 2})
    )
    Store(made.attempts).publish(attempt(6, None, title="x" * 400, reason=HOSTILE))
    write_heartbeats(made)
    head = {"title": f"What the agents know {HOSTILE}", "author": "agent-1", "created": stamp(60), "kind": "synthesis"}
    knowledge.write_note(
        made.shared, "synthesis-0", {**head, "created": stamp(90)}, f"## Conclusions\n\n- old {HOSTILE}\n"
    )
    concluded = f"# Found\n\n#4 pays {HOSTILE}\n\n## Conclusions\n\n- #0 to #1, +0.5 {HOSTILE}\n- #4 scores 9\n"
    knowledge.write_note(made.shared, "synthesis-1", {**head, "attempts": [4]}, concluded)
    made.logs("agent-1").mkdir(parents=True, exist_ok=True)
    made.prompt("agent-1", 1).write_text(HOSTILE)
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": f"a whole word {HOSTILE}"}]}}
    broken = b"\xff\xfe broken\n" + b"z" * 20_000_000 + b"\n"
    made.output("agent-1", 1).write_bytes(broken + json.dumps(said).encode() + b"\n")
    alerts = [{"id": "a-1", "number": 1, "text": HOSTILE, "at": stamp(60), "acknowledged": False}]
    write_status(
        made,
        task=HOSTILE,
        alerts=alerts,
        questions=[{"number": 1, "agent": "agent-1", "text": f"may I use #4? {HOSTILE}"}],
        budgets=[{"key": "attempts", "limit": 10, "used": 6}],
        grading={
            "slots": 2,
            "running": [7],
            "queued": [8],
            "beats": [{"number": 7, "progress": 0.5, "message": HOSTILE}],
        },
        agents=[
            agent_status(
                name,
                best_number=5,
                runtime="claude",
                model=HOSTILE,
                beat={"phase": HOSTILE, "message": "y" * 400, "age": 1.0},
            )
            for name in ("agent-1", "agent-2")
        ],
    )
    messages = {name: [{"name": name, "since": 100.0, "attempt": 1}] for name in ("reflect", "redirect", HOSTILE)}
    write_events(
        made,
        {"type": "spawned", "clock": 1.0, "text": HOSTILE, "agent": "agent-1", "launch": 1},
        {"type": "heartbeat", "clock": 110.0, "text": HOSTILE, "agent": "agent-1", "messages": messages["reflect"]},
        {"type": "withdrawn", "clock": 120.0, "text": HOSTILE, "agent": "agent-1", "messages": messages["redirect"]},
        {"type": "skipped", "clock": 130.0, "text": HOSTILE, "agent": "agent-1", "messages": messages[HOSTILE]},
        *(
            {"type": "published", "attempt": n, "clock": 60.0 * n, "text": HOSTILE, "agent": "agent-1"}
            for n in range(1, 7)
        ),
    )
    return made


@pytest.fixture(scope="module")
def served(layout: Layout) -> Iterator[Served]:
    with serving(layout) as found:
        yield found


def go(page: Page, layout: Layout, where: str) -> None:
    page.evaluate("hash => { location.hash = hash }", f"#/{layout.root.name}/{where}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", PAGES)
def test_a_page_shows_its_content_runs_nothing_and_is_accessible(
    layout: Layout, served: Served, tab: Tab, picture: Picture, where: str, scheme: str
) -> None:
    page = tab(served.address, color_scheme=scheme)
    go(page, layout, where)
    expect(page.locator("main")).to_contain_text(PAGES[where])
    picture(page, f"{where.replace('/', '-')}-{scheme}")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, main a[href^=javascript]").count() == 0
    if not SCRIPT.is_file():
        pytest.skip("npm could not install axe-core here: accessibility was not looked at")
    assert serious(page) == []


def serious(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    # By the protocol, as an extension would: the page's own policy lets no foreign script in.
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": SCRIPT.read_text(encoding="utf-8")})
    found = session.send(
        "Runtime.evaluate",
        {"expression": "axe.run().then(JSON.stringify)", "awaitPromise": True, "returnByValue": True},
    )
    violations = json.loads(found["result"]["value"])["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("where", PAGES)
def test_a_page_fits_a_telephone(layout: Layout, served: Served, tab: Tab, picture: Picture, where: str) -> None:
    page = tab(served.address, viewport={"width": 380, "height": 800})
    go(page, layout, where)
    expect(page.locator("main")).to_contain_text(PAGES[where])
    picture(page, f"{where.replace('/', '-')}-380px")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_pages_are_walked_by_keyboard(layout: Layout, served: Served, tab: Tab) -> None:
    page = tab(served.address)
    expect(page.locator("main")).to_contain_text("Score over time")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator("nav a:focus")).to_have_text("Fleet")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h2")).to_have_text("Attempts")
    expect(page.locator("main")).to_be_focused()
    page.locator("a[data-attempt='4']").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h2")).to_contain_text("#4")


# All that a mouse can use, each numbered; what looks as if a mouse could use it and no key can.
CONTROLS = """() => {
    const focusable = "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])";
    const shown = element => element.checkVisibility() && element.getClientRects().length > 0 && !element.disabled;
    const byKeys = [...document.querySelectorAll(focusable)];
    const controls = byKeys.filter(element => shown(element) && element.tabIndex >= 0);
    controls.forEach((element, number) => { element.dataset.control = number });
    const mouse = [...document.querySelectorAll("main *, header *")].filter(element => shown(element)
        && getComputedStyle(element).cursor === "pointer" && !element.closest(`${focusable}, label, option`));
    return [controls.length, mouse.map(element => element.outerHTML.slice(0, 200))];
}"""
FOCUSED = """() => {
    const element = document.activeElement, style = getComputedStyle(element);
    const inside = element.querySelector(".reach");  // of a node of a graph, whose outline would be hidden by others
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    const drawn = outlined || inside !== null && getComputedStyle(inside).stroke !== "none";
    return [element.dataset.control ?? null, drawn, element.outerHTML.slice(0, 200)];
}"""


@pytest.mark.parametrize("where", PAGES)
def test_everything_on_a_page_is_reached_by_keys_and_shows_that_it_is(
    layout: Layout, served: Served, tab: Tab, where: str
) -> None:
    page = tab(served.address)
    go(page, layout, where)
    expect(page.locator("main")).to_contain_text(PAGES[where])
    expect(page.get_by_role("status").filter(has_text="Loading ...")).to_have_count(0)
    count, by_mouse_alone = page.evaluate(CONTROLS)
    assert by_mouse_alone == []
    reached, unseen = set[str](), list[str]()
    page.evaluate("document.activeElement.blur()")
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        control, drawn, element = page.evaluate(FOCUSED)
        reached.add(control)
        unseen += [] if drawn or control is None else [element]
    assert {str(number) for number in range(count)} - reached == set()
    assert unseen == []


def test_a_published_attempt_is_on_the_page_at_once(tmp_path, tab: Tab) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with serving(layout) as served:
        page = tab(served.address)
        expect(page.locator("main")).to_contain_text("Score over time")
        delays = []
        for number in range(5, 12):
            seen = f"document.querySelector('.timeline').textContent.includes('arrived {number}.')"
            began = time.monotonic()
            Store(layout.attempts).publish(attempt(number, 2.5))
            write_events(layout, {"type": "published", "attempt": number, "clock": 601.0, "text": f"arrived {number}."})
            while not page.evaluate(seen):
                assert time.monotonic() < began + 20
            delays.append(time.monotonic() - began)
        print(f"a published attempt is on the page after {sorted(delays)[len(delays) // 2] * 1000:.0f} ms")


def test_an_empty_and_a_damaged_run_are_shown_for_what_they_are(tmp_path, tab: Tab, picture: Picture) -> None:
    empty = make_run(tmp_path / "runs", scores=())
    with serving(empty) as served:
        page = tab(served.address)
        expect(page.locator("main")).to_contain_text("No agent has been started yet")
        picture(page, "fleet-empty")
        go(page, empty, "attempts")
        expect(page.locator("main")).to_contain_text("No attempt matches")
        Store(empty.attempts).publish(attempt(0, 1.0))  # of the seed: without it the run was never made
        empty.status.write_bytes(b'{"agents": [{"name": "\xff')
        (empty.attempts / "000001.json").write_text("{")
        go(page, empty, "fleet")
        expect(page.locator("main")).to_contain_text("status.json is missing or damaged")


def test_a_budget_of_which_no_use_is_known_has_no_bar(tmp_path, tab: Tab) -> None:
    layout = make_run(tmp_path / "runs")
    budgets = [{"key": "money", "limit": 5.0, "used": None}, {"key": "attempts", "limit": 8, "used": 4}]
    write_status(layout, budgets=budgets, tokens_unknown_of=["agent-1"], money_unknown_of=["agent-1"])
    with serving(layout) as served:
        shown = tab(served.address).get_by_label("Budgets")
        expect(shown).to_contain_text("use not known, limit $5.00")
        expect(shown.locator("progress")).to_have_count(1)


def test_a_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(tmp_path, tab: Tab) -> None:
    layout, token = make_run(tmp_path / "runs"), {"CORAL_UI_TOKEN": "a-token-for-two-starts"}
    write_status(layout)
    with serving(layout, **token) as served:
        page = tab(served.address)
        expect(page.locator(".connection")).to_have_text("dead")  # nobody supervises it
        port = int(served.url.rpartition(":")[2])
        served.process.kill()
        served.process.wait()
        expect(page.locator(".connection")).to_contain_text("connection lost")
    write_status(layout, attempts=77)
    with serving(layout, port=port, **token):
        expect(page.locator(".tiles")).to_contain_text("77")
        layout.root.rename(layout.root.with_name("away"))
        expect(page.get_by_role("alert").first).to_contain_text("is gone")


def test_a_far_seed_does_not_hide_the_steps_of_the_curve(tmp_path, tab: Tab, picture: Picture) -> None:
    layout = make_run(tmp_path / "runs", scores=(-50.0, 2.62, 2.63, 1.5, 2.636))
    write_status(layout)
    write_events(layout, *({"type": "published", "attempt": n, "clock": 100.0 * n} for n in range(1, 5)))
    with serving(layout) as served:
        page = tab(served.address)
        expect(page.locator("main")).to_contain_text("The axis begins at #1, 2.62; the seed, -50, lies below it.")
        expect(page.locator("main")).to_contain_text("At its edge: 1 attempt with a worse score than it shows.")
        picture(page, "fleet-far-seed")
        heights = {number: height_of(page, number, number / 6) for number in (1, 2, 3, 4)}
        assert heights[1] > heights[2] + 0.3 > heights[4] + 0.6, "three steps, and room between them"
        assert heights[3] > 0.9, "at the edge"
        page.get_by_label("Scale").select_option("logarithmic")
        expect(page.locator("main")).not_to_contain_text("The axis begins")


def test_figures_at_an_axis_can_be_told_apart(served: Served, tab: Tab) -> None:
    page = tab(served.address)
    shown = "marks => import('/chart.js').then(chart => chart.figures(marks.isLog)(0, marks.at, 0, 0, marks.step))"
    near = {"at": [2.62842, 2.62844, 2.62846], "step": 2e-5, "isLog": False}
    assert page.evaluate(shown, near) == ["2.62842", "2.62844", "2.62846"]
    plain = {"at": [-1, 0, 0.5, 1], "step": 0.5, "isLog": False}
    assert page.evaluate(shown, plain) == ["-1", "0", "0.5", "1"]
    powers = {"at": [1e-7, None, 0.01, 1000], "step": 0, "isLog": True}
    assert page.evaluate(shown, powers) == ["1e-7", "", "0.01", "1000"]


def height_of(page: Page, number: int, share: float) -> float:
    """Where in a chart, as a share of its height from the top, a click opens an attempt; the page is as it was then."""
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    before = page.url
    for down in range(0, int(box["height"]), 5):
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + down)
        if page.url != before:
            assert page.url.endswith(f"/attempts/{number}")
            page.go_back()
            expect(page.locator(".chart canvas")).to_have_count(1)
            return down / box["height"]
    pytest.fail(f"#{number} was not found")


def test_an_attempt_that_a_text_names_is_shown_where_it_is_pointed_at(layout: Layout, served: Served, tab: Tab) -> None:
    page = tab(served.address)
    go(page, layout, "knowledge")
    page.locator(".prose a[data-attempt='4']").first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("#4 2 new best by agent-1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    go(page, layout, "attempts")
    page.locator("a[data-attempt='0']").hover()
    expect(page.get_by_role("tooltip")).to_have_text("#0 1 the seed")


def test_the_operator_steers_and_is_asked_before_something_ends(tmp_path, tab: Tab) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, "steering")
        page.get_by_label("To all agents").fill("try fewer restarts")
        page.get_by_role("button", name="Tell all").click()
        expect(page.locator("main")).to_contain_text("it takes effect when the run is resumed")
        page.get_by_role("button", name="Retire agent-2").click()
        page.get_by_role("button", name="Leave it").click()
        assert requests_of(layout) == [{"type": "tell", "to": "*", "text": "try fewer restarts"}]
        page.get_by_role("button", name="Retire agent-2").click()
        page.locator("dialog[open]").get_by_role("button", name="Retire", exact=True).click()
        expect(page.locator("td .quiet", has_text="requested")).to_have_count(1)
        assert requests_of(layout)[1:] == [{"type": "retire", "agent": "agent-2"}]


def test_an_agents_life_is_drawn_and_listed_and_a_prompt_is_previewed(
    layout: Layout, served: Served, tab: Tab, picture: Picture
) -> None:
    page = tab(served.address)
    go(page, layout, "heartbeats/agent-1")
    drawing = page.get_by_role("region", name="The life of agent-1 over time")
    expect(drawing.locator(".lane-attempt")).to_have_count(6)
    expect(drawing.locator("rect")).to_have_count(2)  # a launch, and the work on one heartbeat
    width = drawing.evaluate("box => box.scrollWidth")
    page.get_by_role("button", name="Zoom in").click()
    expect(page.get_by_role("button", name="Its whole life")).to_be_enabled()
    assert drawing.evaluate("box => box.scrollWidth") > 1.5 * width
    drawing.locator(".lane-attempt").last.click()
    expect(page.locator(".lane-list [aria-current]")).to_contain_text("#")
    page.get_by_label("Show").select_option("heartbeats")
    page.locator("summary", has_text="Its answer").press("Enter")
    expect(page.locator(".lane-list pre")).to_contain_text("a whole word")
    page.locator("summary", has_text="Change it").first.press("Enter")
    card = page.locator("article", has_text="consolidate").first
    expect(card).to_contain_text("Protected: it cannot be removed")
    card.get_by_label("Prompt").fill("{{ nothing }}")
    card.get_by_role("button", name="Preview").press("Enter")
    expect(card.get_by_role("status").first).to_contain_text("has not begun")  # nobody ever supervised this one
    picture(page, "heartbeats-lane")


def test_conclusions_stand_beside_their_evidence_and_a_synthesis_beside_the_one_before(
    layout: Layout, served: Served, tab: Tab, picture: Picture
) -> None:
    page = tab(served.address)
    go(page, layout, "knowledge")
    conclusions = page.locator(".conclusions > li")
    expect(conclusions.nth(0)).to_contain_text("the records bear it out")
    expect(conclusions.nth(1)).to_contain_text("the records say otherwise")
    expect(conclusions.nth(1)).to_contain_text("the record says 2")
    page.locator("summary", has_text="How the synthesis changed").press("Enter")
    changes = page.locator(".changes").last
    expect(changes.locator(".removed")).to_contain_text("old")
    expect(changes.locator(".added")).to_have_count(2)
    picture(page, "knowledge-changes")
    assert page.evaluate("window.hacked") is None
    page.get_by_label("From").select_option(index=1)
    expect(page.locator("main")).to_contain_text("The two say the same.")


def test_runs_are_compared_side_by_side(tmp_path, tab: Tab, picture: Picture) -> None:
    first, second = (make_run(tmp_path / "runs", scores=scores) for scores in ((1.0, 2.0), (1.0, 1.5, 1.75)))
    for run, used in ((first, {"money": 1.5}), (second, {"money": 20.0})):
        write_status(run, spent=used)
        events = [{"type": "published", "attempt": number, "clock": 30.0 * number} for number in (1, 2)]
        write_events(run, *events)
    with serving(first) as served:
        page = tab(served.address)
        go(page, first, "runs")
        expect(page.get_by_role("checkbox")).to_have_count(2)
        for box in page.get_by_role("checkbox").all():
            box.press("Space")
        figures = page.get_by_role("region", name="Comparison")
        expect(figures).to_contain_text("$20")
        expect(page.locator("main")).to_contain_text("gained 0.25")
        page.get_by_label("Over").select_option("attempts")
        page.get_by_label("Scale").select_option("gap to the best of all")
        expect(page.locator(".chart canvas")).to_have_count(1)
        picture(page, "runs-compared")
        if SCRIPT.is_file():
            assert serious(page) == []


def test_a_stopped_run_is_resumed_once_that_is_confirmed(tmp_path, tab: Tab) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, "steering")
        page.get_by_label("Larger budgets").fill("grader.setup=x")
        page.get_by_role("button", name="Resume the run").click()
        dialog = page.locator("dialog[open]")
        expect(dialog).to_contain_text("spend until a budget is used up")
        dialog.get_by_role("button", name="Resume the run").press("Enter")
        expect(page.locator("main")).to_contain_text("budgets alone, as in budget.hours=4")
        page.get_by_label("Limit").fill("12")
        page.get_by_role("button", name="Set the budget").click()
        page.locator("dialog[open]").get_by_role("button", name="Set the budget").click()
        expect(page.locator(".quiet", has_text="requested")).to_have_count(1)
        assert requests_of(layout) == [{"type": "set_budget", "key": "hours", "limit": 12.0}]


def test_an_agent_is_added_and_moved_by_keyboard_once_that_is_confirmed(tmp_path, tab: Tab, picture: Picture) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    write_files(tmp_path, {"seed/x": "", "task.yaml": STEERED_TASK})
    layout.task_file.write_text(load(tmp_path, ()).text)
    with serving(layout) as served:
        page = tab(served.address)
        go(page, layout, "steering")
        opens, dialog = page.get_by_role("button", name="Add an agent"), page.get_by_role("dialog")
        opens.press("Enter")
        expect(dialog.get_by_label("Runtime")).to_be_focused()
        expect(dialog.get_by_label("Role")).to_have_value("Draft.")
        dialog.get_by_label("Model").fill("opus")
        dialog.get_by_label("Model").press("Enter")  # asks first: it would spend by mistake
        expect(dialog.get_by_role("status")).to_contain_text("spends as the others do")
        expect(dialog.get_by_role("button", name="Add it")).to_be_focused()
        picture(page, "add-an-agent")
        if SCRIPT.is_file():
            assert serious(page) == []
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_have_text(
            "cannot start scripted: scripted uses no model; agents.model is 'opus' - see runtime and options under"
            " agents in task.yaml"
        )
        expect(dialog.get_by_label("Runtime")).to_be_focused()
        if SCRIPT.is_file():
            assert serious(page) == []
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(opens).to_be_focused()
        assert requests_of(layout) == []
        opens.press("Enter")
        expect(dialog.get_by_role("alert")).to_have_count(0)
        dialog.get_by_label("Name").fill("zoe")
        dialog.get_by_label("Runtime").select_option("command")
        expect(dialog.get_by_label("Model")).to_have_value("opus")
        dialog.get_by_label("Role").fill("Review.")
        dialog.get_by_role("button", name="Add ...").press("Enter")
        expect(dialog.get_by_role("status")).to_contain_text("Add zoe, driven by command, opus?")
        expect(dialog.get_by_role("button", name="Add it")).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator("main .act", has=opens)).to_contain_text("requested")
        added = {"type": "add_agent", "name": "zoe", "runtime": "command", "role": "Review."}
        assert requests_of(layout) == [added]
        page.get_by_role("button", name="Move agent-2").press("Enter")
        dialog.get_by_role("button", name="Move ...").click()
        expect(dialog.get_by_role("alert")).to_contain_text("nothing is to change")
        dialog.get_by_label("Model").fill("sonnet")
        dialog.get_by_role("button", name="Move ...").press("Enter")
        dialog.get_by_role("button", name="Change it").press("Enter")
        expect(dialog.get_by_label("Runtime")).to_be_focused()
        dialog.get_by_label("Model").press("Enter")
        expect(dialog.get_by_role("status")).to_contain_text("From its next launch on it spends")
        dialog.get_by_role("button", name="Move it").press("Enter")
        expect(page.locator("td .quiet", has_text="requested")).to_have_count(1)
        assert requests_of(layout)[1:] == [{"type": "move_agent", "agent": "agent-2", "model": "sonnet"}]
