"""Each conclusion beside what the records say of it, and two syntheses side by side."""

import time

import pytest
from dashboard import visitor
from sample import attempt, make_run, stamp, write_status

from attempts.record import Kind
from attempts.store import Store
from coral.web.synthesis_data import CONCLUSIONS, divided
from workspace import knowledge
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    return made


def write(layout: Layout, name: str, age: float, body: str) -> None:
    head = {"title": name, "author": "agent-1", "created": stamp(age), "kind": "synthesis"}
    knowledge.write_note(layout.shared, name, head, body)


def got(layout: Layout, path: str, status: int = 200, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{path}", params=asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_what_a_conclusion_cites_is_shown_with_its_median(layout: Layout) -> None:
    Store(layout.attempts).publish(attempt(5, 3.0, kind=Kind.CONFIRM, of=4, verdict="tied"))
    write(layout, "one", 60, "## Conclusions\n\n- #4 scores 2.5\n")
    (told,) = got(layout, "knowledge")["synthesis"]["conclusions"]
    assert (told["state"], [held["score"] for held in told["attempts"]]) == ("supported", ["2.5"])


def test_each_conclusion_is_judged_by_its_own_figures(layout: Layout) -> None:
    conclusions = "- #0 to #1, +0.5\n- #4 scores 9, see #4\n* words\n1. #99 pays\n   and goes on\n"
    write(layout, "one", 60, f"Before\n\n## Conclusions\n\nIn short:\n{conclusions}\n## Next\n\nAfter\n")
    page = got(layout, "knowledge")["synthesis"]
    told = page["conclusions"]
    assert [one["state"] for one in told] == ["supported", "disputed", "unchecked", "disputed"]
    assert [[held["number"] for held in one["attempts"]] for one in told] == [[0, 1], [4], [], []]
    assert [held["verdict"] for held in told[0]["attempts"]] == ["the seed", "new best"]
    assert told[1]["disputed"] == ["#4 scores 9: the record says 2"]
    assert told[3]["disputed"] == ["#99: there is no such attempt"]
    assert "In short:" in page["html"]
    assert ("Before" in page["html"], "After" in page["rest"], "pays" in page["html"]) == (True, True, False)
    assert told[3]["html"] == "<p>#99 pays\nand goes on</p>\n"


def test_who_works_alone_is_not_told_of_attempts_of_others(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    own = layout.shared_of("agent-2", share=False)
    knowledge.create(own)
    head = {"title": "one", "author": "agent-2", "created": stamp(60), "kind": "synthesis"}
    knowledge.write_note(own, "one", head, "## Conclusions\n\n- #2 to #4, +9\n- #1 scores 9\n")
    monkeypatch.chdir(layout.clone("agent-2"))
    told = got(layout, "knowledge")["synthesis"]["conclusions"]
    assert [(one["state"], one["disputed"]) for one in told] == [("unchecked", [])] * 2


@pytest.mark.parametrize("body", ["", "no heading", "## Conclusions\n\nin prose\n", "## Conclusions\n" + "- x\n" * 41])
def test_a_note_without_a_list_of_conclusions_stays_whole(body: str) -> None:
    assert len(divided("## Conclusions\n" + "- x\n" * CONCLUSIONS)[1]) == CONCLUSIONS
    assert divided(body) == (body, [], "")


def test_two_syntheses_are_compared_the_last_ones_if_none_is_named(layout: Layout) -> None:
    assert got(layout, "knowledge/syntheses") == {"syntheses": [], "old": "", "new": "", "sections": []}
    for age, word in ((90, "one"), (80, "two"), (70, "three")):
        write(layout, word, age, f"## Conclusions\n\n- {word}\n- the same\n")
    last = got(layout, "knowledge/syntheses")
    assert [one["title"] for one in last["syntheses"]] == ["one", "two", "three"]
    assert last["sections"] == [{"heading": "Conclusions", "gone": ["- two"], "new": ["- three"]}]
    ids = [one["id"] for one in last["syntheses"]]
    assert (last["old"], last["new"]) == (ids[1], ids[2])
    first = got(layout, "knowledge/syntheses", old=ids[2], new=ids[0])
    assert first["sections"] == [{"heading": "Conclusions", "gone": ["- three"], "new": ["- one"]}]
    assert "is there no more" in got(layout, "knowledge/syntheses", status=404, old="x")["error"]


def test_a_heading_of_nothing_but_blanks_is_read_at_once() -> None:
    begun = time.process_time()
    heading = f"# a{' ' * 100_000}b"
    assert divided(f"{heading}\n##   Conclusions  \n- one")[1] == ["one"]
    assert time.process_time() - begun < 5
