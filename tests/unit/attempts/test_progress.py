"""Progress counts each attempt for what it counts for, and is a fold over them in their order."""

from functools import reduce

import pytest
import sample
from hypothesis import example, given
from hypothesis import strategies as st

from attempts.progress import Progress, advance, judge
from attempts.record import Attempt, Direction, Kind, Verdict


def attempt(number: int, score: float | None, kind: Kind = Kind.REAL, verdict: Verdict | None = None) -> Attempt:
    given = {"verdict": verdict} if verdict else {}
    return sample.attempt(number, score, kind=kind, of=1 if kind is Kind.CONFIRM else None, **given)


UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE


def fold(attempts: list[Attempt], direction: Direction = UP, noise: float = 0.0) -> Progress:
    return reduce(lambda progress, attempt: advance(progress, attempt, direction, noise), attempts, Progress())


@pytest.mark.parametrize(
    ("best", "score", "direction", "noise", "verdict"),
    [
        (None, None, UP, 0, Verdict.FAILED),
        (1.0, None, UP, 0, Verdict.FAILED),
        (None, -5.0, UP, 9, Verdict.IMPROVED),
        (1.0, 1.0, UP, 0, Verdict.TIED),
        (1.0, 1.1, UP, 0, Verdict.IMPROVED),
        (1.0, 0.9, UP, 0, Verdict.REGRESSED),
        (1.0, 0.9, DOWN, 0, Verdict.IMPROVED),
        (1.0, 1.1, DOWN, 0, Verdict.REGRESSED),
        (1.0, 1.5, UP, 0.5, Verdict.TIED),
        (1.0, 0.5, UP, 0.5, Verdict.TIED),
        (1.0, 1.6, UP, 0.5, Verdict.IMPROVED),
        (-1.7e308, 1.7e308, UP, 0.5, Verdict.IMPROVED),
        (0.0, 5e-324, UP, 0, Verdict.IMPROVED),
        (0.0, -0.0, UP, 0, Verdict.TIED),
    ],
)
def test_judging_a_score(
    best: float | None, score: float | None, direction: Direction, noise: float, verdict: Verdict
) -> None:
    assert judge(best, score, direction, noise) is verdict


def test_real_attempts_count_whatever_became_of_them() -> None:
    done = fold([attempt(1, 1.0), attempt(2, None), attempt(3, 0.5), attempt(4, 1.0)])
    assert done == Progress(evals=4, best=1.0, best_attempt=1, stagnant=3, graded=4)


def test_an_improvement_ends_a_stagnation() -> None:
    done = fold([attempt(1, 1.0), attempt(2, 0.5), attempt(3, 2.0)])
    assert (done.stagnant, done.best, done.best_attempt) == (0, 2.0, 3)


def test_the_baseline_is_a_mark_to_beat_and_no_attempt() -> None:
    done = fold([attempt(0, 1.0, Kind.BASELINE), attempt(1, 0.9)])
    assert done == Progress(evals=1, best=1.0, best_attempt=0, stagnant=1, graded=1)


def test_tuning_costs_budget_and_changes_nothing_else() -> None:
    assert fold([attempt(1, 1.0), attempt(2, 9.0, Kind.TUNE)]) == Progress(1, 1.0, 1, 0, 2)


def test_a_confirmation_may_raise_the_best_and_is_no_attempt() -> None:
    assert fold([attempt(1, 1.0), attempt(2, 0.9), attempt(3, 1.2, Kind.CONFIRM)]) == Progress(2, 1.2, 3, 1, 3)


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_void_changes_nothing(kind: Kind) -> None:
    before = fold([attempt(1, 1.0)])
    assert advance(before, attempt(2, None, kind, Verdict.VOID), UP, 0) == before


def test_a_gain_within_the_noise_is_kept_but_is_no_improvement() -> None:
    assert fold([attempt(1, 1.0), attempt(2, 1.2)], noise=0.5) == Progress(2, 1.2, 2, 1, 2)


def test_a_copy_of_better_work_is_the_best_so_far_and_still_no_improvement() -> None:
    # The same tree as another agent's attempt: tied at once with that attempt's score.
    assert fold([attempt(1, 1.0), attempt(2, 2.0, verdict=Verdict.TIED)]) == Progress(2, 2.0, 2, 1, 2)


def test_the_fleet_s_progress_compares_with_the_fleet_s_best() -> None:
    # The author's own verdict is `improved`; to the fleet it is one more try without improvement.
    attempts = [attempt(1, 2.0), attempt(2, 1.0, verdict=Verdict.IMPROVED)]
    assert fold(attempts).stagnant == 1


scores = st.none() | st.floats(-100, 100) | st.integers(-3, 3).map(float)
histories = st.lists(
    st.tuples(scores, st.sampled_from([Kind.REAL, Kind.REAL, Kind.TUNE, Kind.CONFIRM]), st.booleans()), max_size=40
).map(
    lambda rows: [
        attempt(n, None if void else score, kind, Verdict.VOID if void else None)
        for n, (score, kind, void) in enumerate(rows, 1)
    ]
)


@given(histories, st.sampled_from(list(Direction)), st.sampled_from([0.0, 0.5, 10.0]))
@example([attempt(1, 1.0), attempt(2, 1.0, Kind.CONFIRM)], UP, 0.0)
def test_the_fold_is_what_counting_would_give(history: list[Attempt], direction: Direction, noise: float) -> None:
    done = fold(history, direction, noise)
    valid = [attempt for attempt in history if attempt.verdict is not Verdict.VOID]
    real = [attempt for attempt in valid if attempt.kind is Kind.REAL]
    measured = [attempt.score for attempt in valid if attempt.kind is not Kind.TUNE and attempt.score is not None]
    assert done.evals == len(real)
    assert done.graded == len(valid)
    assert 0 <= done.stagnant <= done.evals
    assert done.best == (max if direction is UP else min)(measured, default=None)
    if done.best_attempt is not None:
        assert history[done.best_attempt - 1].score == done.best


@given(histories, st.integers(0, 40), st.sampled_from(list(Direction)))
def test_a_fold_can_be_cut_anywhere(history: list[Attempt], cut: int, direction: Direction) -> None:
    halfway = fold(history[:cut], direction)
    assert reduce(lambda p, a: advance(p, a, direction, 0.0), history[cut:], halfway) == fold(history, direction)


@given(histories, st.sampled_from(list(Direction)))
def test_without_noise_stagnation_is_the_distance_to_the_last_gain(
    history: list[Attempt], direction: Direction
) -> None:
    progress, since = Progress(), 0
    for attempt in history:
        after = advance(progress, attempt, direction, 0.0)
        if attempt.kind is Kind.REAL and attempt.verdict is not Verdict.VOID:
            since = 0 if after.best != progress.best else since + 1
        assert after.stagnant == since
        progress = after
