"""What Coral claims of noisy scores holds on made-up fleets, judged by the code that judges real ones; the same fleets
each time. `python -m benchmarks noise` plays more of them.
"""

from collections.abc import Callable

import pytest

from attempts.record import Verdict
from benchmarks.noise import paired
from benchmarks.noisy_fleet import Drift, NoisyFleet, growing

pytestmark = pytest.mark.slow

FLEETS, ATTEMPTS = 100, 200


def played(make: Callable[[int], NoisyFleet], count: int = FLEETS) -> list[NoisyFleet]:
    fleets = [make(seed) for seed in range(1000, 1000 + count)]
    for fleet in fleets:
        fleet.run(ATTEMPTS)
    return fleets


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda seed: NoisyFleet(seed, steps=False), 5),
        (lambda seed: NoisyFleet(seed, noise=Drift(), steps=False), 5),
        (lambda seed: NoisyFleet(seed, noise=growing), 10),
    ],
    ids=["copies", "copies under drift", "noise that grows tenfold"],
)
def test_few_fleets_have_a_false_best(make: Callable[[int], NoisyFleet], most: int) -> None:
    assert sum(fleet.false_bests > 0 for fleet in played(make)) <= most


def test_of_identical_submissions_almost_all_are_tied() -> None:
    verdicts = list[Verdict]()
    for seed in range(1000, 1020):
        fleet = NoisyFleet(seed, steps=False, planned=1000)
        fleet.run(1000)
        verdicts += fleet.verdicts
    assert len(verdicts) == 20_000
    assert verdicts.count(Verdict.TIED) >= 0.995 * len(verdicts)


def test_a_gain_of_six_deviations_is_the_best_within_three_pairs() -> None:
    proven = 0
    for seed in range(1000, 1000 + FLEETS):
        fleet = NoisyFleet(seed)
        before = fleet.confirmations
        fleet.attempt(0, step=6.0)
        proven += fleet.best == 6.0 and fleet.confirmations - before <= 6
    assert proven >= 95


def test_against_strictly_greater_false_bests_are_a_tenth_and_the_lead_is_no_lower() -> None:
    ours, strict = played(NoisyFleet, 150), played(lambda seed: NoisyFleet(seed, strict=True), 150)
    assert 10 * sum(fleet.false_bests for fleet in ours) <= sum(fleet.false_bests for fleet in strict)
    lower, error = paired([fleet.lead for fleet in strict], [fleet.lead for fleet in ours])
    assert lower <= 2 * error
