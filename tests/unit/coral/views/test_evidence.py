"""Figures of notes are compared with the records."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from sample import attempt

from attempts.record import Attempt, Direction
from coral.views.evidence import Evidence, check_evidence
from workspace.notes import Note

RECORDS = {
    record.number: record
    for record in (attempt(0, 1.9), attempt(14, 2.5189), attempt(17, 2.5312), attempt(18, None, reason="no"))
}


SCORES = st.integers(-(10**9), 10**9).map(lambda thousandths: thousandths / 1000)


def note(body: str, *attempts: int) -> Note:
    return Note(Path("n.md"), "n", "Title", "ann", "", "note", attempts, body)


def found(body: str, *attempts: int, direction: Direction = Direction.MAXIMIZE) -> Evidence:
    return check_evidence(note(body, *attempts), RECORDS.get, direction)


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
    "body", ["#14 to #17, +5 %", "#14 to #17 gained", "#17 0.0712 is its radius", "about #99", "#17 scores 40% more"]
)
def test_of_prose_nothing_is_said(body: str) -> None:
    assert found(body) == Evidence()


def test_an_attempt_in_the_head_that_does_not_exist_is_disputed_once() -> None:
    assert found("#99 scores 1.0", 14, 99).disputed == ("#99: there is no such attempt",)


def test_where_lower_is_better_a_gain_may_have_either_sign() -> None:
    for sign in "+-":
        assert found(f"#14 to #17, {sign}0.0123", direction=Direction.MINIMIZE) == Evidence(1)


def test_scores_of_two_epochs_have_no_difference() -> None:
    later = {**RECORDS, 17: replace(RECORDS[17], epoch=2)}
    checked = check_evidence(note("#14 to #17, +0.0123"), later.get, Direction.MAXIMIZE)
    assert checked.disputed == ("#14 to #17, +0.0123: the records have no such difference",)


@given(st.text(alphabet="#0123456789 to,scores+-.e%()\n", max_size=200))
def test_no_text_breaks_it(body: str) -> None:
    def find(number: int) -> Attempt | None:
        return RECORDS.get(number)

    assert check_evidence(note(body), find, Direction.MAXIMIZE).agreeing >= 0


@given(SCORES, SCORES, st.integers(1, 10))
def test_a_difference_agrees_at_any_rounding(first: float, second: float, digits: int) -> None:
    records = {1: attempt(1, first), 2: attempt(2, second)}
    body = f"#1 to #2, {second - first:+.{digits}g}"
    assert check_evidence(note(body), records.get, Direction.MAXIMIZE) == Evidence(1)


def test_a_note_of_many_figures_costs_few_records() -> None:
    asked: list[int] = []
    body = " ".join(f"#{number} to #{number + 1}, +1 #{number} scores 1" for number in range(0, 4000, 2))
    checked = check_evidence(note(body, *range(5000, 5200)), asked.append, Direction.MAXIMIZE)  # type: ignore[func-returns-value]
    assert len(checked.disputed) == 60
    assert len(asked) <= 120
