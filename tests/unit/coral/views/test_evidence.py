"""Figures of notes are compared with the records."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from sample import attempt

from attempts.noise import mean, median
from attempts.record import Attempt, Direction
from coral.views import format
from coral.views.evidence import Evidence, Find, NoteState, Records, as_of, check_evidence, judge
from workspace.notes import Note

RECORDS = {
    record.number: record
    for record in (attempt(0, 1.9), attempt(14, 2.5189), attempt(17, 2.5312), attempt(18, None, reason="no"))
}


SCORES = st.integers(-(10**9), 10**9).map(lambda thousandths: thousandths / 1000)


def note(body: str, *attempts: int) -> Note:
    return Note(Path("n.md"), "n", "Title", "ann", "", "note", attempts, body)


def graded_once(find: Find, direction: Direction = Direction.MAXIMIZE) -> Records:
    return Records(find, lambda _: (), direction)


def found(body: str, *attempts: int, direction: Direction = Direction.MAXIMIZE) -> Evidence:
    return check_evidence(note(body, *attempts), graded_once(RECORDS.get, direction))


@pytest.mark.parametrize(
    "body",
    [
        "A wider ring gains: #14 to #17, +0.0123.",
        "#14 to #17, +0.012",
        "#14 to #17, +1.23e-2",
        "#17 to #14 (-0.01)",
        "#17 scores 2.5312, as said",
        "#17 scores 2.53.",
        "#0 scores 1.9",
    ],
)
def test_a_figure_that_the_records_bear_out_agrees(body: str) -> None:
    assert found(body) == Evidence(1)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("#14 to #17, +0.03", "#14 to #17, +0.03: the records say +0.0123"),
        ("#14 to #17, -0.0123", "#14 to #17, -0.0123: the records say +0.0123"),
        ("#14 to #99, +0.1", "#99: there is no such attempt"),
        ("#14 to #18, +0.1", "#14 to #18, +0.1: the records have no such difference"),
        ("#17 scores 2.56", "#17 scores 2.56: the record says 2.5312"),
        ("#18 scores 2.54", "#18 scores 2.54: the record has no score"),
        ("#99 scores 2.54", "#99: there is no such attempt"),
    ],
)
def test_a_figure_that_they_do_not_bear_out_is_disputed(body: str, problem: str) -> None:
    assert found(body) == Evidence(0, (problem,))


@pytest.mark.parametrize(
    "body",
    [
        "#14 to #17, +5 %",
        "#14 to #17 gained",
        "#17 0.0712 is its radius",
        "about #99",
        "#17 scores 40% more",
        "#17 scores 1,250 in all",
        "#17 scores 1.2.3",
    ],
)
def test_of_prose_nothing_is_said(body: str) -> None:
    assert found(body) == Evidence()


def test_an_attempt_in_the_head_that_does_not_exist_is_disputed_once() -> None:
    assert found("#99 scores 1.0", 14, 99).disputed == ("#99: there is no such attempt",)


def test_where_lower_is_better_a_gain_may_have_either_sign() -> None:
    for sign in "+-":
        assert found(f"#14 to #17, {sign}0.0123", direction=Direction.MINIMIZE) == Evidence(1)


@pytest.mark.parametrize("figure", ["1e400", "0e400", "1e999", "1e-999"])
def test_a_figure_beyond_all_numbers_is_disputed(figure: str) -> None:
    for text in (f"#14 scores {figure}", f"#14 to #17, +{figure}"):
        assert len(found(text).disputed) == 1


@pytest.mark.parametrize("score", [12345678901.5, 123456789012345.0, -1.2345678901234567e-05, 0.00012345678901234567])
def test_a_score_of_many_digits_agrees_as_it_is_written_in_prompts(score: float) -> None:
    checked = check_evidence(note(f"#14 scores {score}"), graded_once({14: attempt(14, score)}.get))
    assert checked == Evidence(1)


# What a noisy grader gave: #17 was judged when #14 had two grades. #20 is a copy of #17, which is one more grade.
GRADES = {14: (2.5, 2.54, 2.53), 17: (2.56, 2.5, 2.54), 20: (2.54,)}
NOISY = {
    14: attempt(14, 2.5),
    17: attempt(17, 2.56, against=14, delta=0.04),
    20: attempt(20, 2.54, of=17, against=17),
}


def found_noisy(body: str, direction: Direction = Direction.MAXIMIZE) -> Evidence:
    return check_evidence(note(body), Records(NOISY.get, lambda number: GRADES.get(number, ()), direction))


@pytest.mark.parametrize(
    "body",
    [
        "#14 scores 2.5",  # in `coral eval`
        "#14 scores 2.52",  # the median of two grades, as a prompt had it then
        "#14 scores 2.53",  # the median now
        "#14 scores 2.54",  # one grade, as in `coral show`
        "#14 scores 2.5233",  # the mean
        "#14 to #17, +0.04",  # the verdict, against the median of two
        "#17 to #14, -0.04",
        "#14 to #17, +0.06",  # of the first scores
        "#14 to #17, +0.01",  # of the medians
        "#20 scores 2.54",
        "#14 to #20, +0.02",
    ],
)
def test_of_an_attempt_that_was_graded_again_every_figure_that_was_shown_agrees(body: str) -> None:
    assert found_noisy(body) == Evidence(1)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("#14 scores 2.58", "#14 scores 2.58: the record says 2.53"),
        ("#14 to #17, +0.3", "#14 to #17, +0.3: the records say +0.01"),
        ("#14 to #17, -0.3", "#14 to #17, -0.3: the records say +0.01"),
        ("#14 scores 1e400", "#14 scores 1e400: the record says 2.53"),
    ],
)
def test_no_other_figure_of_it_agrees(body: str, problem: str) -> None:
    assert found_noisy(body) == Evidence(0, (problem,))


def test_a_difference_of_verdicts_may_have_either_sign_where_lower_is_better() -> None:
    for sign in "+-":
        assert found_noisy(f"#14 to #17, {sign}0.04", Direction.MINIMIZE) == Evidence(1)


@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(SCORES, min_size=1, max_size=8), st.data())
def test_what_the_terminal_showed_after_any_grade_agrees(
    first: list[float], second: list[float], data: st.DataObject
) -> None:
    then = [grades[: data.draw(st.integers(1, len(grades)))] for grades in (first, second)]
    shown = data.draw(st.sampled_from([median, mean]))
    before, after = map(shown, then)
    known = {1: attempt(1, first[0]), 2: attempt(2, second[0])}
    records = Records(known.get, {1: first, 2: second}.__getitem__, Direction.MAXIMIZE)
    body = f"#1 to #2, {format.delta(after, before)}; #2 scores {format.score(after)}"
    assert check_evidence(note(body), records) == Evidence(2)


def test_scores_of_two_epochs_have_no_difference() -> None:
    later = {**RECORDS, 17: replace(RECORDS[17], epoch=2)}
    checked = check_evidence(note("#14 to #17, +0.0123"), graded_once(later.get))
    assert checked.disputed == ("#14 to #17, +0.0123: the records have no such difference",)


@given(st.text(alphabet="#0123456789 to,scores+-.e%()\n", max_size=200))
def test_no_text_breaks_it(body: str) -> None:
    def find(number: int) -> Attempt | None:
        return RECORDS.get(number)

    assert check_evidence(note(body), graded_once(find)).agreeing >= 0


@given(SCORES, SCORES, st.integers(1, 10))
def test_a_difference_agrees_at_any_rounding(first: float, second: float, digits: int) -> None:
    records = {1: attempt(1, first), 2: attempt(2, second)}
    body = f"#1 to #2, {second - first:+.{digits}g}"
    assert check_evidence(note(body), graded_once(records.get)) == Evidence(1)


def test_a_note_of_many_figures_costs_few_records() -> None:
    asked: list[int] = []
    body = " ".join(f"#{number} to #{number + 1}, +1 #{number} scores 1" for number in range(0, 4000, 2))
    checked = check_evidence(note(body, *range(5000, 5200)), graded_once(asked.append))  # type: ignore[func-returns-value]
    assert len(checked.disputed) == 60
    assert len(asked) <= 120


def claim(kind: str = "note", body: str = "", *attempts: int, about: tuple[str, ...] = (), name: str = "n") -> Note:
    return Note(Path("n.md"), name, "Title", "ann", "", kind, attempts, body, about=about)


LATER = {**RECORDS, 20: attempt(20, 2.6, title="a wider ring, lr=0.3")}


@pytest.mark.parametrize(
    ("judged", "state", "why"),
    [
        (claim("synthesis", "", 14, 17), NoteState.STALE, "#20, which is later, is a new best"),
        (claim("synthesis", "#20 is best", 14), NoteState.UNCHECKED, ""),
        (claim("synthesis", "#17 scores 2.5312"), NoteState.STALE, "#20, which is later, is a new best"),
        (claim("synthesis", "#20 scores 9"), NoteState.DISPUTED, ""),
        (claim("note", "", 17), NoteState.UNCHECKED, ""),
        (claim("note", "#17 scores 2.5312", 17, about=("momentum",)), NoteState.SUPPORTED, ""),
        (claim("dead-end", "", 17, about=("wider", "LR")), NoteState.STALE, "#20, which is later, is a new best"),
        (claim("dead-end", "", 17, about=("momentum", "LR")), NoteState.UNCHECKED, ""),
        (claim("dead-end", "", 17, about=("ring",)), NoteState.STALE, "#20, which is later, is a new best"),
        (claim("dead-end", "", 17, about=("rin",)), NoteState.UNCHECKED, ""),
        (claim("note", "", 99, about=("ring",)), NoteState.DISPUTED, ""),
        (claim("note", "#17 scores 2.5312", 17, about=("ring",), name="earlier/x/n"), NoteState.ELSEWHERE, ""),
    ],
)
def test_a_note_is_stale_where_a_later_new_best_is_about_the_same(judged: Note, state: NoteState, why: str) -> None:
    evidence = judge(judged, graded_once(LATER.get), 1, [0, 17, 20])
    assert (evidence.state, evidence.stale) == (state, why)


def test_a_note_of_the_task_before_is_stale() -> None:
    evidence = judge(claim("note", "", 17), graded_once(RECORDS.get), 2, [])
    assert (evidence.state, evidence.stale) == (NoteState.STALE, "the task has changed since #17")


def test_a_synthesis_is_as_of_the_last_attempt_that_it_names() -> None:
    assert as_of(claim("synthesis", "#17 leads, #99 does not exist", 14), RECORDS.get) == 17
    assert as_of(claim("synthesis"), RECORDS.get) is None
