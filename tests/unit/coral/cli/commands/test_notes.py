"""`coral notes`: one page that says what holds, what does not, what is new; and what can be asked of it."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from sample import attempt, stamp, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.cli.ui.notes_export import harmless
from workspace import knowledge
from workspace.layout import Layout

Shown = Callable[..., str]


def write(layout: Layout, name: str, age: float, body: str = "text", **front: object) -> Path:
    head = {"title": name.replace("-", " ").capitalize(), "author": "agent-1", "created": stamp(age), **front}
    path = knowledge.write_note(layout.shared, name, head, body)  # type: ignore[arg-type]  # plain values
    os.utime(path, (0, 0))
    return path


@pytest.fixture
def fleet(layout: Layout) -> Layout:
    """The notes of a fleet that got some things wrong. Its records: the seed 1.0, #1 1.5, #2 failed, #3 1.25, #4 2.0,
    a new best."""
    write(layout, "wide-rings-gain", 500, "#1 to #4, +3", attempts=[1, 4])
    write(layout, "narrow-rings-gain", 490, "#0 to #1, +0.5", attempts=[1], contradicts=["narrow-rings-lose"])
    write(layout, "narrow-rings-lose", 480, attempts=[3], author="agent-2")
    write(layout, "trying-is-useless", 470, attempts=[3], kind="dead-end", about=["try"])
    write(layout, "overlaps-fail", 460, attempts=[2], kind="dead-end", about=["overlap"])
    write(layout, "synthesis-2", 300, "## Conclusions\n\n- rows pay\n- edges lose\n", attempts=[1], kind="synthesis")
    body = "## Conclusions\n\n- rows pay\n- rings gain: #0 to #1, +0.5\n\n## Next\n\n1. corners\n"
    write(layout, "synthesis-3", 200, body, attempts=[1, 3], kind="synthesis")
    return layout


def test_the_page_flags_what_is_wrong_contradictory_and_stale(fleet: Layout, shown: Shown) -> None:
    said = shown("notes")
    assert "stale  #4, which is later, is a new best" in said  # the synthesis
    assert "as of #3: 1 attempt came since" in said
    assert "disputed  #1 to #4, +3: the records say +0.5" in said
    conflict = said[said.index("In conflict") : said.index("Dead ends")]
    assert "Narrow rings gain" in conflict
    assert "Narrow rings lose" in conflict
    dead_ends = said[said.index("Dead ends") : said.index("Disputed or stale")].splitlines()
    assert [line.split()[-1] for line in dead_ends if "useless" in line or "Overlaps" in line] == ["#2", "stale"]


def test_what_came_since_a_synthesis_are_attempts_and_no_other_grades(
    fleet: Layout, shown: Shown, tmp_path: Path
) -> None:
    store = Store(fleet.attempts)
    store.publish(attempt(5, 2.0, kind=Kind.CONFIRM, of=4, verdict=Verdict.TIED))
    store.publish(attempt(6, 2.0, kind=Kind.TUNE, verdict=Verdict.TIED))
    store.publish(attempt(7, None, verdict=Verdict.VOID))
    assert "as of #3: 1 attempt came since" in shown("notes")
    shown("notes", "export", str(tmp_path / "page.md"))
    assert "As of #3: 1 attempt came since." in (tmp_path / "page.md").read_text()
    write(fleet, "synthesis-4", 100, "#4 leads", kind="synthesis")
    assert "as of #4: it knows of all attempts" in shown("notes")
    store.publish(attempt(8, None))
    assert "as of #4: 1 attempt came since" in shown("notes"), "one that failed counts"


def test_a_conflict_is_listed_until_an_attempt_decides(fleet: Layout, shown: Shown) -> None:
    write(fleet, "narrow-rings-lose", 480, attempts=[3], decided_by=[3])
    assert "not decided: #3 is no later than what they rest on" in shown("notes")
    write(fleet, "narrow-rings-lose", 480, attempts=[3], decided_by=[4])
    assert "In conflict" not in shown("notes")


def test_what_the_records_speak_against_is_listed(fleet: Layout, shown: Shown) -> None:
    disputed = shown("notes", "--disputed")
    assert "Wide rings gain (disputed)" in disputed
    assert "Synthesis 3 (stale)" in disputed
    assert "Trying is useless (stale)" in disputed
    for quiet in ("Overlaps fail", "Narrow rings lose", "Synthesis 2"):
        assert quiet not in disputed
    states = {note["name"]: note["state"] for note in json.loads(shown("notes", "--json"))}
    assert states["wide-rings-gain"] == "disputed"
    assert states["narrow-rings-gain"] == "supported"
    assert states["narrow-rings-lose"] == "unchecked"


def test_the_median_of_several_grades_is_not_disputed(fleet: Layout, shown: Shown) -> None:
    write(fleet, "medians", 100, "#4 scores 2.5 now, #1 to #4, +1")
    assert "Medians (disputed)" in shown("notes", "--disputed")
    Store(fleet.attempts).publish(attempt(5, 3.0, kind=Kind.CONFIRM, of=4, verdict=Verdict.TIED))
    assert "Medians" not in shown("notes", "--disputed")


def test_a_note_that_another_supersedes_says_so(fleet: Layout, shown: Shown) -> None:
    write(fleet, "rings-again", 100, attempts=[4], supersedes=["wide-rings-gain", "synthesis-3.md"])
    assert "Wide rings gain (superseded by rings-again)" in shown("notes", "--all")
    assert "superseded by rings-again" in shown("notes", "--read", "wide-rings-gain")
    assert "Wide rings gain" not in shown("notes")


def test_the_reader_is_told_what_is_new_since_the_last_look(fleet: Layout, shown: Shown) -> None:
    assert "Notes" in shown("notes")
    assert "nothing is new since you looked 0 s ago; `coral notes --all` lists 7 notes" in shown("notes")
    os.utime(next(fleet.shared.rglob("synthesis-3.md")))  # it is shown in full, above what is new
    assert "nothing else is new since" in shown("notes")
    path = write(fleet, "corners", 100)
    os.utime(path)
    # What programs and agents look at leaves no mark.
    shown("notes", "--json")
    shown("notes", "--all")
    said = shown("notes")
    assert "Corners" in said[said.index("New since you looked") :]
    assert "Narrow rings gain" not in said[said.index("New since you looked") :]


def test_an_agent_s_look_leaves_no_mark(fleet: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fleet.clone("agent-1"))
    assert "New since" not in shown("notes")
    assert not fleet.notes_looked.exists()


def test_notes_are_chosen_by_time_and_by_subject(fleet: Layout, shown: Shown) -> None:
    path = write(fleet, "late", 10, about=["src/rings.py"])
    os.utime(path)
    assert "Late" in shown("notes", "--since", "2h")
    assert "Corners" not in shown("notes", "--since", "2h")
    assert "Late" in shown("notes", "--since", "#4")
    assert "Late" in shown("notes", "--since", "2020-01-01")
    assert shown("notes", "--since", "2999-01-01") == "no note is as new as that"
    assert "cannot tell when 'soon' is" in shown("notes", "--since", "soon", code=1)
    assert "there is no such attempt" in shown("notes", "--since", "#99", code=1)
    for name in ("src/rings.py", "RINGS.py"):
        assert "Late" in shown("notes", "--about", name)
    assert "Narrow rings lose" in shown("notes", "--about", "rings")
    assert shown("notes", "--about", "ring") == "no note is about ring"
    assert "Trying is useless" in shown("notes", "--dead-ends")


def test_two_syntheses_are_compared(fleet: Layout, shown: Shown) -> None:
    said = shown("notes", "diff")
    assert "- - edges lose" in said
    assert "+ - rings gain: #0 to #1, +0.5" in said
    assert "+ 1. corners" in said
    assert "rows pay" not in said
    found = json.loads(shown("notes", "diff", "--json"))
    assert (found["old"], found["new"]) == ("synthesis-2", "synthesis-3")
    assert found["sections"][1] == {"heading": "Next", "gone": [], "new": ["1. corners"]}
    assert "the two say the same" in shown("notes", "diff", "synthesis-3")
    assert "there is none of that number" in shown("notes", "diff", "99", code=1)
    (fleet.shared / "notes" / "synthesis-2.md").unlink()
    assert "cannot compare two syntheses: there is one yet" in shown("notes", "diff", code=1)


def test_a_run_s_knowledge_is_written_as_a_page_and_as_a_folder(fleet: Layout, shown: Shown, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> ![x](http://example.org/x.png) `<b>`\n\n```\n<i>\n```\n\x1b[2J"
    odd = fleet.shared / "notes" / "evil" / "ä]( name.md"
    odd.parent.mkdir()
    odd.write_text(f"---\ntitle: <b>bold</b> [x](y)\n---\n\n{hostile}")
    write(fleet, "old", 600, "Gone.", superseded_by="synthesis-3")
    assert shown("notes", "export", str(tmp_path / "out.md")) == f"1 file in {tmp_path}/out.md"
    page = (tmp_path / "out.md").read_text()
    assert "rings gain: #0 to #1, +0.5" in page
    assert "<script>" not in page.replace("`<b>`", "")
    assert "&lt;script>" in page
    assert "![" not in page
    assert "```\n<i>\n```" in page
    assert "\x1b" not in page
    assert "Gone." not in page
    assert "edges lose" not in page
    assert json.loads(shown("notes", "export", str(tmp_path / "out"), "--json")) == {"written": 8}
    front = (tmp_path / "out" / "README.md").read_text()
    links = [line.partition("](")[2].partition(")")[0] for line in front.splitlines() if line.startswith("- [")]
    assert len(links) == 7
    assert all((tmp_path / "out" / link).is_file() for link in links)
    assert "state: disputed" in (tmp_path / "out" / next(link for link in links if "wide" in link)).read_text()
    assert "there is something already" in shown("notes", "export", str(tmp_path / "out"), code=1)
    assert "there is something already" in shown("notes", "export", str(tmp_path / "out.md"), code=1)


def can_act(text: str) -> list[str]:
    """HTML and images in this Markdown, for readers that know tables and for those that do not."""
    parsers = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table"))
    tokens = [token for parser in parsers for token in parser.parse(text)]
    found = [token for outer in tokens for token in (outer, *(outer.children or ()))]
    return [token.content for token in found if token.type in ("html_block", "html_inline", "image")]


@pytest.mark.parametrize(
    "text",
    [
        '``"`` <script>x</script> `"``',
        "`` ` <b> ` `` <b>",
        "`a\n<script>x</script>\n`",
        "`a` \\` <b> `",
        "````\n```\n````\n<b>",
        "```\n```js\n```\n<script>x</script>\n```",
        "``` a`b\n<script>x</script>\n```",
        "~~~ a`b\n~~~\n<b>",
        "    ```\n<b>",
        "- ```\n<b>\n```",
        "`a | <b> | b`\n-|-|-",
        "a | b\n-|-\n` | b\n` <b> ` | c",
        '[x](/a<b "`") <b> `',
        '\\![x](/a "`") `x` <b> `',
        "!![x](y)",
        "`\n![x](y)",
        "\ufdd05\ufdd1 `\ufdd00\ufdd1`<b>",
    ],
)
def test_nothing_in_an_export_can_act(text: str) -> None:
    assert can_act(harmless(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "`<b>` ``a`<b>`` and `x ![y](z)`",
        "````\n```\n<i>\n````",
        "a < b, a <= b, and what a surprise!",
    ],
)
def test_code_is_exported_as_it_is(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "> - ~~~\n>   <i>\n>   ~~~",
        "text\n\n    <i>",
        "- a\n\n      <img src=x onerror=alert(1)>",
        "```\n\n<script>alert(1)</script>",
        "text\n   ```\n<script>alert(1)</script>\n   ```",
    ],
)
def test_what_not_every_reader_takes_for_code_is_exported_as_text(text: str) -> None:
    assert re.search(r"<(?=[a-z])", harmless(text)) is None


def test_a_title_and_two_notes_together_cannot_act_either(fleet: Layout, shown: Shown, tmp_path: Path) -> None:
    title = "<b>best</b> ![x](y)"
    best = {"number": 4, "agent": "agent-1", "title": title, "score": 2.0, "median": 2.0, "count": 1}
    write_status(fleet, best=best)
    write(fleet, "first", 20, "```\ncode")
    write(fleet, "second", 10, "    <i>", title="`<b>")
    write(fleet, "third", 5, "```\n<script>x</script>\n```")
    shown("notes", "export", str(tmp_path / "out.md"))
    shown("notes", "export", str(tmp_path / "out"))
    pages = [path.read_text() for path in (tmp_path / "out.md", *(tmp_path / "out").rglob("*.md"))]
    assert sum("&lt;b>best&lt;/b>" in page for page in pages) == 2
    assert [can_act(page) for page in pages] == [[]] * len(pages)


def test_ten_questions_about_a_run_are_answered_by_the_page(fleet: Layout, shown: Shown) -> None:
    score = Store(fleet.attempts).read(4).score
    body = (
        "## Conclusions\n\n- Rings gain: #0 to #1, +0.5.\n- The corner radius limits the score at 2.\n"
        "- Overlaps were tried and failed (#2).\n\n## Gaps\n\n- Nobody tried hexagons.\n\n## Next\n\n1. Corners.\n"
    )
    write(fleet, "synthesis-4", 100, body, attempts=[1, 2, 4], kind="synthesis")
    said = shown("notes")
    answers = {
        "What is the best score, and which attempt has it?": f"best {score:g} #4",
        "How much better than the seed is it?": "seed 1 (+1)",
        "Who made it, and by what?": "by agent-1  seed 1 (+1)  try 4",
        "How many attempts were there?": "4 attempts",
        "What pays?": "Rings gain: #0 to #1, +0.5",
        "What limits the score?": "The corner radius limits the score at 2.",
        "What was tried and failed?": "Overlaps fail",
        "What has nobody tried?": "Nobody tried hexagons.",
        "What next?": "1 Corners.",
        "What is in doubt, and how current is all this?": "as of #4: it knows of all attempts",
    }
    assert [question for question, answer in answers.items() if answer not in said] == []
