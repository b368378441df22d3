"""What a checkpoint's prompt gives an agent: the checklist within its limits, and how its work stands."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from sample import attempt
from stage import QUIET_RULES, SEED, Stage

from attempts.progress import Progress
from attempts.record import Attempt, Verdict
from attempts.standing import Measured
from coral.fleet.agent_state import Meter, Spent
from coral.fleet.run_state import Question
from coral.views.checkpoint import CHECKLIST_LINE, CHECKLIST_LINES, checklist_of, items_of, snapshot
from coral.views.scale import Scale
from workspace.notes import Note


def checklist(folder: Path, text: str) -> dict[str, object]:
    (folder / "HEARTBEAT.md").write_text(text)
    return checklist_of(folder)


def test_a_checklist_is_given_line_by_line(tmp_path: Path) -> None:
    found = checklist(tmp_path, "# Checklist\n\n- Is there room?\n<!-- ours -->\n- Is it fast?  \n")
    assert found == {"lines": ["# Checklist", "- Is there room?", "- Is it fast?"], "cut": 0}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# Checklist\n", "<!-- write\nyour points -->\n", "<!-- open\n- no point"]
)
def test_comments_alone_are_no_checklist(tmp_path: Path, text: str) -> None:
    assert checklist(tmp_path, text) == {"lines": [], "cut": 0}


def test_there_may_be_none_and_a_link_to_elsewhere_is_none(tmp_path: Path) -> None:
    assert checklist_of(tmp_path) == {"lines": [], "cut": 0}
    (tmp_path / "secret").write_text("- key")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "HEARTBEAT.md").symlink_to(tmp_path / "secret")
    assert checklist_of(shared) == {"lines": [], "cut": 0}


def test_a_checklist_that_is_too_long_is_cut_and_that_is_said(tmp_path: Path) -> None:
    found = checklist(tmp_path, "".join(f"- point {number}\n" for number in range(CHECKLIST_LINES + 7)))
    assert (len(found["lines"]), found["cut"]) == (CHECKLIST_LINES, 7)  # type: ignore[arg-type]


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    (line,) = checklist(tmp_path, f"- {'x' * 100_000}\n")["lines"]  # type: ignore[misc, attr-defined]
    assert (len(line), line[-2:]) == (CHECKLIST_LINE, "x…")
    assert checklist(tmp_path, f"- {'x' * 400}\n")["lines"] == [f"- {'x' * 400}"]


def note(author: str, body: str) -> Note:
    return Note(path=Path("n.md"), name="n", title="n", author=author, created="", kind="", attempts=(), body=body)


def test_items_of_the_agents_own_notes_are_counted_as_done_and_total() -> None:
    held = [note("ann", "- [x] one\n- [ ] two\n  * [X] three\n- [y] no\ntext - [ ] no"), note("ben", "- [ ] his")]
    assert items_of(held, "ann") == {"done": 2, "total": 3}


def test_a_note_of_nothing_but_lines_is_counted_at_once() -> None:
    """Every prompt counts, in the supervisor's loop."""
    begun = time.process_time()
    assert items_of([note("ann", "\n" * 60_000 + "words\n- [x] one")], "ann") == {"done": 1, "total": 1}
    assert time.process_time() - begun < 5


def test_what_latest_attempts_cost_is_left_out_where_not_all_money_is_known() -> None:
    stage = Stage()
    unpriced = Meter(is_unpriced=True)
    for money, meter, says in ((4.0, Meter(), "about $1.00"), (0.01, Meter(), "about $0.0025"), (4.0, unpriced, "")):
        spending = replace(stage["ann"], spent=Spent(money=money), meter=meter, progress=Progress(4, 0, 4))
        fleet = replace(stage.fleet, agents={"ann": spending})
        found = snapshot(fleet, "ann", [tried(9, Verdict.WORSE)], [], Scale())
        assert found["latest"]["money"] == says


def tried(number: int, verdict: Verdict, **changes: object) -> Attempt:
    times = {"submitted_at": f"2030-01-01T12:{number:02d}:00Z", "published_at": f"2030-01-01T12:{number:02d}:30Z"}
    return replace(attempt(number, 1.0), **{"verdict": verdict, **times, **changes})  # type: ignore[arg-type]


def test_a_snapshot_says_how_the_agents_work_stands() -> None:
    stage = Stage(2, replace(QUIET_RULES, slots=0))
    stage.in_grading(2, "ann", "ben")
    asked = (
        Question(number=1, alert=1, agent="ann", text="may I?", asked_at=1.0),
        Question(number=2, alert=2, agent="ben", text="and I?", asked_at=1.0),
    )
    spending = replace(stage["ann"], spent=Spent(money=4.0), progress=Progress(8, 0, 8))
    fleet = replace(
        stage.fleet, run=replace(stage.fleet.run, questions=asked), agents={**stage.fleet.agents, "ann": spending}
    )
    recent = [
        tried(9, Verdict.FAILED, score=None, reason="two circles\noverlap"),
        tried(8, Verdict.FAILED, score=None, reason="late"),
        tried(7, Verdict.OWN_BEST, score=2.5, delta=0.25, against=3),
        tried(5, Verdict.NEW_BEST, score=2.25, delta=0.5, against=0),
    ]
    found = snapshot(fleet, "ann", recent, [note("ann", "- [ ] x")], Scale())
    assert found == {
        "queue": 2,
        "success": {"number": 7, "score": 2.5, "title": recent[2].title},
        "error": "#9: two circles overlap",
        "failures": 2,
        "questions": ["may I?"],
        "items": {"done": 0, "total": 1},
        "latest": {
            "count": 4, "gains": 2, "gain": "+0.25 against #3", "time": "4 min 30 s", "money": "about $2.00",
        },
    }  # fmt: skip


def test_before_the_first_attempt_only_the_programs_last_error_is_known() -> None:
    stage = Stage(1)
    fleet = replace(stage.fleet, agents={"ann": replace(stage["ann"], last_error="no such model")})
    found = snapshot(fleet, "ann", [], [], Scale())
    assert (found["success"], found["error"], found["failures"]) == (None, "no such model", 0)
    assert found["latest"] == {"count": 0, "gains": 0, "gain": "", "time": "", "money": ""}


def test_the_last_success_has_the_median_of_its_grades() -> None:
    stage, better = Stage(1), tried(7, Verdict.NEW_BEST, score=2.5)
    parts = {"commit": "c" * 40, "tree": "d" * 40, "parent": SEED, "title": better.title}
    measured = Measured(number=7, agent="ann", scores=(2.5, 2.25, 2.0), **parts)
    fleet = replace(stage.fleet, measured={7: measured})
    for held, score in ((fleet, 2.25), (stage.fleet, 2.5)):  # what does not matter any more is in no standing
        assert snapshot(held, "ann", [better], [], Scale())["success"]["score"] == score
