"""Progress counts each attempt for what it counts for, and is a fold over them in their order."""

from functools import reduce

import pytest
import sample
from hypothesis import given, strategies as st

from attempts.progress import Progress, advance_fleet, advance_own, end_stagnation
from attempts.record import IMPROVED, UNSCORED, Attempt, Kind, Verdict


def attempt(number: int, verdict: Verdict, kind: Kind = Kind.REAL) -> Attempt:
    score = None if verdict in UNSCORED else 1.0
    return sample.attempt(number, score, kind=kind, of=1 if kind is Kind.CONFIRM else None, verdict=verdict)


def own(*attempts: Attempt) -> Progress:
    return reduce(advance_own, attempts, Progress())


def fleet(*attempts: Attempt) -> Progress:
    return reduce(advance_fleet, attempts, Progress())


@pytest.mark.parametrize(
    ("verdict", "own_stagnant", "fleet_stagnant"),
    [
        (Verdict.NEW_BEST, 0, 0),
        (Verdict.OWN_BEST, 0, 3),
        (Verdict.TIED, 3, 3),
        (Verdict.WORSE, 3, 3),
        (Verdict.FAILED, 3, 3),
    ],
)
def test_whose_best_it_is_says_who_no_longer_stagnates(
    verdict: Verdict, own_stagnant: int, fleet_stagnant: int
) -> None:
    history = [attempt(1, Verdict.WORSE), attempt(2, Verdict.FAILED), attempt(3, verdict)]
    assert own(*history) == Progress(evals=3, stagnant=own_stagnant, graded=3)
    assert fleet(*history) == Progress(evals=3, stagnant=fleet_stagnant, graded=3)


def test_a_trial_of_numbers_is_graded_and_no_attempt() -> None:
    assert own(attempt(1, Verdict.TIED), attempt(2, Verdict.OWN_BEST, Kind.TUNE)) == Progress(1, 1, 2)


@pytest.mark.parametrize("kind", [Kind.BASELINE, Kind.CONFIRM])
def test_what_the_supervisor_measures_is_no_attempt_of_anybody(kind: Kind) -> None:
    assert own(attempt(1, Verdict.NEW_BEST, kind)) == fleet(attempt(1, Verdict.NEW_BEST, kind)) == Progress()


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_void_changes_nothing(kind: Kind) -> None:
    before = own(attempt(1, Verdict.WORSE))
    assert advance_own(before, attempt(2, Verdict.VOID, kind)) == before


def test_a_proven_best_ends_stagnation_and_counts_nothing() -> None:
    assert end_stagnation(Progress(evals=7, stagnant=4, graded=9)) == Progress(evals=7, stagnant=0, graded=9)


histories = st.lists(
    st.tuples(st.sampled_from(Verdict), st.sampled_from([Kind.REAL, Kind.REAL, Kind.TUNE])), max_size=40
).map(lambda rows: [attempt(number, verdict, kind) for number, (verdict, kind) in enumerate(rows, 1)])


@given(histories)
def test_the_fold_is_what_counting_would_give(history: list[Attempt]) -> None:
    progress, valid = own(*history), [attempt for attempt in history if attempt.verdict is not Verdict.VOID]
    real = [attempt for attempt in valid if attempt.kind is Kind.REAL]
    gains = [place for place, attempt in enumerate(real, 1) if attempt.verdict in IMPROVED]
    assert progress == Progress(len(real), len(real) - max(gains, default=0), len(valid))
    assert fleet(*history).stagnant >= progress.stagnant
