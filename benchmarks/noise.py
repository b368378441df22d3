"""Measures how often Coral's claims about noisy scores are wrong, on made-up fleets whose true values are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attempts.record import Verdict
from benchmarks import machine, table
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, number
from benchmarks.noisy_fleet import SEED_GRADES, Drift, NoisyFleet, growing
from benchmarks.results import Result

NAME = "noise"
ATTEMPTS, COPIES, FLEETS, CLIMBS, LONG, GAINS = 200, 1000, 300, 150, 20, 200
SETTINGS = {"attempts": ATTEMPTS, "seed grades": SEED_GRADES}
FALSE, LEAD, BEST, EXTRA = "false bests", "true value of the lead", "true value of the best", "confirmations"
A_COPY, A_DRIFT, A_GROWTH, A_CLIMB, A_STRICT, A_GRADES = (
    *("copies", "copies under drift", "noise that grows", "climb", "climb, strictly greater"),
    "climb, confirmations count as grades",
)
UNTIED, MISSED = f"{COPIES:,} copies: not tied", "a gain of 6 deviations: not the best"


def measure(ask: Ask) -> Iterable[Result]:
    part = 10 if ask.quick else 1
    series: dict[str, Sequence[float]] = {}
    for name, count, fleets in (
        (A_COPY, FLEETS, lambda seed: NoisyFleet(seed, steps=False)),
        (A_DRIFT, FLEETS, lambda seed: NoisyFleet(seed, noise=Drift(), steps=False)),
        (A_GROWTH, CLIMBS, lambda seed: NoisyFleet(seed, noise=growing)),
        (A_CLIMB, CLIMBS, NoisyFleet),
        (A_STRICT, CLIMBS, lambda seed: NoisyFleet(seed, strict=True)),
        (A_GRADES, CLIMBS, NoisyFleet),
    ):
        ask.say(f"{name}: {count // part} fleets of {ATTEMPTS} attempts")
        ran = [fleets(seed) for seed in range(count // part)]
        for fleet in ran:
            fleet.run(ATTEMPTS, confirmations_count=name == A_GRADES)
        series |= {
            f"{name}: {FALSE}": [float(fleet.false_bests) for fleet in ran],
            f"{name}: {LEAD}": [fleet.lead for fleet in ran],
            f"{name}: {BEST}": [fleet.best for fleet in ran],
            f"{name}: {EXTRA}": [float(fleet.confirmations) for fleet in ran],
        }
    ask.say(f"{LONG // part} fleets of {COPIES:,} copies")
    series[UNTIED] = list(_untied(LONG // part))
    series[MISSED] = list(_missed(GAINS // part))
    yield Result(NAME, machine.today(), machine.here(), SETTINGS, series)


def _untied(fleets: int) -> Iterator[float]:
    """Yield how many of the copies in each fleet are not tied."""
    for seed in range(fleets):
        fleet = NoisyFleet(seed, steps=False, planned=COPIES)
        fleet.run(COPIES)
        yield float(sum(verdict is not Verdict.TIED for verdict in fleet.verdicts))


def _missed(gains: int) -> Iterator[float]:
    """Yield, for a first attempt that is six deviations better than the seed, 1 if it is not proven to be so at
    once."""
    for seed in range(gains):
        fleet = NoisyFleet(seed)
        fleet.attempt(0, step=6.0)
        yield float(fleet.best != 6.0)


def full() -> Mapping[str, Full]:
    counts = {A_COPY: FLEETS, A_DRIFT: FLEETS}
    series: dict[str, int | None] = {
        f"{name}: {part}": counts.get(name, CLIMBS)
        for name in (A_COPY, A_DRIFT, A_GROWTH, A_CLIMB, A_STRICT, A_GRADES)
        for part in (FALSE, LEAD, BEST, EXTRA)
    }
    return {NAME: Full(SETTINGS, {**series, UNTIED: LONG, MISSED: GAINS})}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    strict, ours = sum(series[f"{A_STRICT}: {FALSE}"]), sum(series[f"{A_CLIMB}: {FALSE}"])
    lower, error = paired(series[f"{A_STRICT}: {LEAD}"], series[f"{A_CLIMB}: {LEAD}"])
    aims = (
        ("fleets of copies with a false best", share(series[f"{A_COPY}: {FALSE}"]), 5.0, "%"),
        ("the same under a drift of one deviation", share(series[f"{A_DRIFT}: {FALSE}"]), 5.0, "%"),
        ("fleets with a false best, noise grows tenfold", share(series[f"{A_GROWTH}: {FALSE}"]), 10.0, "%"),
        (f"of {COPIES:,} copies, not tied", 100 * sum(series[UNTIED]) / (LONG * COPIES), 0.5, "%"),
        ("gains of 6 deviations not proven at once", share(series[MISSED]), 5.0, "%"),
        ("false bests, of those of strictly greater", 100 * ours / strict, 10.0, "%"),
        ("lead lower than with strictly greater", max(lower - 2 * error, 0.0), 0.0, "deviations beyond 2 errors"),
    )
    return [check(what, [value], Target(median=most), unit, _WHY) for what, value, most, unit in aims]


def share(values: Sequence[float]) -> float:
    """Return how many of the values are above zero, in percent."""
    return 100 * sum(value > 0 for value in values) / len(values)


def paired(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the paired differences, and its standard error."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(differences) / len(differences)
    squares = sum((difference - mean) ** 2 for difference in differences)
    return mean, math.sqrt(squares / (len(differences) - 1) / len(differences))


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    series = result.series
    lines = ["## Noisy scores", "", _ABOUT, "", *table.head("standard deviations, or a count", "fleets of 200")]
    for name in (A_COPY, A_DRIFT, A_GROWTH, A_CLIMB, A_STRICT, A_GRADES):
        lines += [table.row(f"{name}: {part}", series[f"{name}: {part}"]) for part in (FALSE, LEAD, BEST, EXTRA)]
    costs, error = paired(series[f"{A_STRICT}: {LEAD}"], series[f"{A_GRADES}: {LEAD}"])
    lines += ["", _COST.format(cost=number(costs), error=number(error)), ""]
    return [*lines, table.origin(result)]


_ABOUT = f"""Fleets of four agents with {ATTEMPTS} attempts each, judged by the code that judges real ones; the scores
are made up. Confirmations are at most the share that `grader.confirm` allows by default, as where grades take long.
The unit is one standard deviation of a grade; the seed stands at 0. In a fleet of copies every attempt is
the seed once more; else most steps lose, a few gain, and gains get rarer on the way to 40. A best is false if it is not
truly better than the one before. "Strictly greater" takes whatever scores higher for the best and measures nothing
again. What these steps assume is not measured of real fleets: trust the order, not the decimals."""

_COST = """Where confirmations count as grades, honesty costs {cost} ± {error} deviations of the lead: what was measured
again could have been tried instead."""

_WHY = "The rule claims too much or too little: see attempts/standing.py, and what was changed there."
