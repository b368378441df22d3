"""Views over the records: who leads, what was built on what, how far it went."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.board import curve, leaderboard, lineage, record
from attempts.record import Attempt, Direction, Kind, Verdict

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE


def attempt(
    number: int, score: float | None, agent: str = "agent-1", kind: Kind = Kind.REAL, **more: object
) -> Attempt:
    plain = Attempt(
        number=number,
        agent="" if kind is Kind.BASELINE else agent,
        kind=kind,
        commit=f"{number:040x}",
        tree=f"{number:040x}",
        parent="",
        title="",
        submission="",
        submitted_at="",
        published_at=f"t{number}",
        order=number,
        verdict=Verdict.FAILED if score is None else Verdict.TIED,
        score=score,
        seconds=2.0,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


SEED = attempt(0, 1.0, kind=Kind.BASELINE)


def again(of: Attempt, number: int, score: float) -> Attempt:
    return attempt(number, score, of.agent, Kind.CONFIRM, of=of.number, tree=of.tree, commit=of.commit)


def test_the_best_are_first_and_of_equals_the_earlier() -> None:
    attempts = [
        SEED,
        attempt(1, 2.0),
        attempt(2, 3.0),
        attempt(3, None),
        attempt(4, 2.0),
        attempt(5, 9.0, kind=Kind.TUNE),
    ]
    assert [each.attempt.number for each in leaderboard(attempts[::-1], UP, 10)] == [2, 1, 4]
    assert [each.attempt.number for each in leaderboard(attempts, DOWN, 10)] == [1, 4, 2]
    assert [each.attempt.number for each in leaderboard(attempts, UP, 1)] == [2]
    assert leaderboard([], UP, 10) == []


def test_one_candidate_measured_several_times_stands_at_its_mean() -> None:
    lucky, steady = attempt(1, 4.0), attempt(2, 3.0)
    attempts = [lucky, steady, again(lucky, 3, 1.0), attempt(4, 3.2, "agent-2", tree=steady.tree)]
    first, second = leaderboard(attempts, UP, 10)
    assert (first.attempt.number, first.score, first.measurements, first.confirmed) == (2, 3.1, 2, False)
    assert (second.attempt.number, second.score, second.measurements, second.confirmed) == (1, 2.5, 2, True)


def test_huge_scores_have_a_mean_too() -> None:
    one = attempt(1, 1.7e308)
    assert leaderboard([one, again(one, 2, 1.7e308)], UP, 1)[0].score == pytest.approx(1.7e308)


def test_a_record_is_confirmed_where_the_task_is_noisy() -> None:
    lucky, steady = attempt(1, 4.0), attempt(2, 3.0)
    attempts = [SEED, lucky, steady]
    assert record(attempts, UP, 0.0) == lucky
    assert record(attempts, UP, 0.5) is None
    assert record([*attempts, again(steady, 3, 3.1)], UP, 0.5) == steady
    assert record([*attempts, again(steady, 3, 3.1), again(lucky, 4, 3.9)], UP, 0.5) == lucky


def test_a_record_beats_the_seed() -> None:
    assert record([SEED, attempt(1, 1.0)], UP, 0.0) is None
    assert record([SEED, attempt(1, 0.9)], UP, 0.0) is None
    assert record([SEED, attempt(1, 0.9)], DOWN, 0.0) is not None
    assert record([SEED, attempt(1, None)], UP, 0.0) is None
    assert record([attempt(1, 0.9)], UP, 0.0) is not None


def test_a_lineage_goes_back_to_the_seed() -> None:
    one = attempt(1, 2.0, parent=SEED.commit)
    two = attempt(2, None, "agent-2", parent=one.commit)
    three = attempt(3, 3.0, parent=two.commit)
    attempts = [three, SEED, again(two, 5, 1.0), two, one, attempt(4, 1.0)]
    assert [each.number for each in lineage(attempts, 3)] == [0, 1, 2, 3]
    assert [each.number for each in lineage(attempts, 5)] == [5]
    assert [each.number for each in lineage(attempts, 4)] == [4]
    assert lineage(attempts, 9) == []


def test_a_lineage_that_bites_its_tail_ends() -> None:
    one = attempt(1, 2.0, parent=f"{2:040x}")
    assert [each.number for each in lineage([one, attempt(2, 2.0, parent=one.commit)], 2)] == [1, 2]


def test_the_curve_has_a_point_where_the_best_rises() -> None:
    attempts = [
        attempt(5, 2.5, kind=Kind.CONFIRM),
        attempt(4, 9.0, kind=Kind.TUNE),
        attempt(3, None),
        attempt(1, 2.0),
        SEED,
    ]
    attempts.append(attempt(2, 1.5))
    assert curve(attempts, UP) == [("t0", 0, 1.0), ("t1", 1, 2.0), ("t5", 5, 2.5)]
    assert curve([], UP) == []


@given(st.lists(st.none() | st.floats(-9, 9), max_size=30), st.sampled_from(Direction))
def test_the_views_agree_about_the_best(scores: list[float | None], direction: Direction) -> None:
    attempts = [attempt(number, score, f"agent-{number % 3}") for number, score in enumerate(scores, 1)]
    board, line = leaderboard(attempts, direction, 99), curve(attempts, direction)
    assert len(board) == sum(score is not None for score in scores)
    if board:
        assert board[0].score == line[-1][2]
        assert board[0].attempt == record(attempts, direction, 0.0)
