"""The knowledge page: the synthesis first, notes beside what the records say of them, and nothing that runs."""

import pytest
from dashboard import visitor
from sample import make_run, stamp, write_status

from workspace import knowledge
from workspace.layout import Layout

HOSTILE = "<script>x()</script> [a](javascript:x()) ![b](http://evil.example/x.png)"


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    write(made, "rings-gain", 300, f"#0 to #1, +0.5 {HOSTILE}", attempts=[1])
    write(made, "rings-lose", 250, "#1 to #4, +3", attempts=[1, 4], author="agent-2", contradicts=["rings-gain"])
    write(made, "corners-fail", 200, "no", attempts=[4], kind="dead-end", about=["corner"])
    write(made, "synthesis-1", 100, "## Conclusions\n\n- #1 pays, see `x`\n", attempts=[4], kind="synthesis")
    return made


def write(layout: Layout, name: str, age: float, body: str, **front: object) -> None:
    head = {"title": name.replace("-", " "), "author": "agent-1", "created": stamp(age), **front}
    knowledge.write_note(layout.shared, name, head, body)  # type: ignore[arg-type]  # plain values


def got(layout: Layout, path: str, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_one_page_says_what_the_agents_know(layout: Layout) -> None:
    page = got(layout, "knowledge")
    assert page["synthesis"]["title"] == "synthesis 1"
    assert [one["attempts"] for one in page["synthesis"]["conclusions"]] == [
        [{"number": 1, "score": "1.5", "verdict": "new best"}]
    ]
    assert [note["title"] for note in page["dead_ends"]] == ["corners fail"]
    assert [(one["claim"]["title"], one["other"]["title"]) for one in page["conflicts"]] == [
        ("rings lose", "rings gain")
    ]
    assert [note["title"] for note in page["notes"]][::-1][:2] == ["rings gain", "rings lose"]


def test_a_note_stands_beside_what_the_records_say(layout: Layout) -> None:
    states = {note["title"]: note["state"] for note in got(layout, "knowledge")["notes"]}
    assert states["rings lose"] == "disputed"
    number = next(note["number"] for note in got(layout, "knowledge")["notes"] if note["title"] == "rings lose")
    note = got(layout, f"knowledge/notes/{number}")
    assert note["disputed"] == ["#1 to #4, +3: the records say +0.5"]
    assert note["attempts"] == [1, 4]


def test_markdown_of_agents_becomes_no_markup_of_theirs(layout: Layout) -> None:
    page = got(layout, "knowledge", text="rings gain")
    (number,) = [note["number"] for note in page["notes"] if note["title"] == "rings gain"]
    markup = got(layout, f"knowledge/notes/{number}")["html"]
    assert "&lt;script&gt;" in markup
    assert not any(part in markup for part in ("<script", "<img", 'href="javascript'))


def test_a_search_narrows_the_notes(layout: Layout) -> None:
    page = got(layout, "knowledge", text="corners")
    assert [note["title"] for note in page["notes"]] == ["corners fail"]
    assert got(layout, "knowledge", text="nothing has this")["total"] == 0


def test_a_skill_is_shown_and_one_that_is_not_there_is_named(layout: Layout) -> None:
    folder = layout.shared / "skills" / "line-search"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: line-search\ndescription: how to search\n---\n# Steps\n\n1. go\n")
    assert [skill["name"] for skill in got(layout, "knowledge")["skills"]] == ["line-search"]
    assert "<li>go</li>" in got(layout, "knowledge/skill", name="line-search")["html"]
    for path in ("knowledge/notes/99", "knowledge/skill"):
        answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{path}", params={"name": "../../private"})
        assert (answer.status_code, answer.json()["error"].startswith("cannot show")) == (404, True)


def test_a_note_that_is_a_link_to_something_private_is_not_read(layout: Layout) -> None:
    layout.private.mkdir(exist_ok=True)
    (layout.private / "answer.md").write_text("# the secret answer")
    (layout.shared / "notes" / "linked.md").symlink_to(layout.private / "answer.md")
    assert "secret" not in str(got(layout, "knowledge"))
