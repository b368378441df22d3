"""How long a grade usually takes: the median of those that gave a score, of the present epoch."""

import pytest
from sample import attempt

from attempts.record import Attempt, Kind, Verdict
from coral.records.recent import RECENT, RecentResults

SEED = attempt(0, 1.0, seconds=10.0)


def results(*later: Attempt, seed: Attempt = SEED) -> RecentResults:
    return RecentResults([seed, *later])


def graded(number: int, seconds: float, score: float | None = 1.5, **fields: object) -> Attempt:
    return attempt(number, score, seconds=seconds, **fields)


@pytest.mark.parametrize(
    ("later", "seconds"),
    [
        ((), 10.0),
        ((graded(1, 20.0),), 15.0),
        ((graded(1, 20.0), graded(2, 12.0)), 12.0),
        ((graded(1, 0.1, None), graded(2, 300.0, None, verdict=Verdict.VOID)), 10.0),  # they gave no score
        ((graded(1, 0.0, verdict=Verdict.TIED),), 10.0),  # the copy of a graded tree is not graded
        ((graded(1, 90.0, kind=Kind.TUNE),), 50.0),
        ((graded(1, 90.0), graded(2, 4.0, kind=Kind.BASELINE, agent="", epoch=2)), 4.0),  # the task has changed
    ],
)
def test_the_usual_seconds_are_the_median_of_what_was_scored(later: tuple[Attempt, ...], seconds: float) -> None:
    assert results(*later).usual_seconds() == seconds


def test_without_a_graded_seed_they_are_not_known() -> None:
    assert RecentResults().usual_seconds() is None
    assert results(seed=attempt(0, None, seconds=9.0)).usual_seconds() is None


def test_they_follow_what_the_agents_do_now() -> None:
    slower = [graded(number, 1.0 if number <= RECENT else 50.0, agent="agent-1") for number in range(1, 2 * RECENT + 1)]
    assert results(*slower).usual_seconds() == 50.0
