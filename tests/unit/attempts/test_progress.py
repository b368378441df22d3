"""Progress counts each attempt for what it counts for, and is a fold over them in their order."""

from functools import reduce

import pytest
import sample
from hypothesis import example, given
from hypothesis import strategies as st

from attempts.progress import Progress, advance
from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.verdict import judge


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


@pytest.mark.parametrize(
    ("later", "noise", "progress"),
    [
        # Real attempts count whatever became of them.
        ([attempt(2, None), attempt(3, 0.5), attempt(4, 1.0)], 0.0, Progress(4, 1.0, 1, 3, 4)),
        ([attempt(2, 0.5), attempt(3, 2.0)], 0.0, Progress(3, 2.0, 3, 0, 3)),
        ([attempt(2, 9.0, Kind.TUNE)], 0.0, Progress(1, 1.0, 1, 0, 2)),
        # A confirmation may raise the best and is no attempt.
        ([attempt(2, 0.9), attempt(3, 1.2, Kind.CONFIRM)], 0.0, Progress(2, 1.2, 3, 1, 3)),
        # A gain within the noise is kept but is no improvement.
        ([attempt(2, 1.2)], 0.5, Progress(2, 1.2, 2, 1, 2)),
        # A tree that was graded before, with a better score: the best so far and still no improvement.
        ([attempt(2, 2.0, verdict=Verdict.TIED)], 0.0, Progress(2, 2.0, 2, 1, 2)),
        # To its author it has improved; to the fleet it is one more try without improvement.
        ([attempt(2, 0.5, verdict=Verdict.IMPROVED)], 0.0, Progress(2, 1.0, 1, 1, 2)),
    ],
)
def test_what_an_attempt_counts_for(later: list[Attempt], noise: float, progress: Progress) -> None:
    assert fold([attempt(1, 1.0), *later], noise=noise) == progress


def test_the_baseline_is_a_mark_to_beat_and_no_attempt() -> None:
    assert fold([attempt(0, 1.0, Kind.BASELINE), attempt(1, 0.9)]) == Progress(1, 1.0, 0, 1, 1)


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_void_changes_nothing(kind: Kind) -> None:
    before = fold([attempt(1, 1.0)])
    assert advance(before, attempt(2, None, kind, Verdict.VOID), UP, 0) == before


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
