"""Makes up a fleet on a noisy task, judged by Coral's own rule, to see whether what that calls the best is better.

The true value of every attempt is known, in standard deviations of a grade above the seed. Most steps lose, a few gain,
and gains get rarer on the way to `CEILING`: this is assumed, and not measured of real fleets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from attempts.noise import NoiseSetting
from attempts.record import Attempt, Kind, Verdict
from attempts.standing import (
    Confirmation,
    Judgement,
    Scoring,
    Standing,
    advance,
    judge,
    judge_confirmation,
    lead,
    next_confirmation,
)
from coral.config.model import GraderSection
from coral.fleet.attempts.confirmations import PAIR

AGENTS, CEILING, ON_THE_LEAD = 4, 40.0, 0.8
SEED_GRADES = 10
MEMORY = 0.98  # the share of a drift that is left at the next grade
SHARE: float = GraderSection.model_fields["confirm"].default
ESTIMATED = Scoring(noise=NoiseSetting(deviation=None))
Noise = Callable[[random.Random, float], float]  # of one grade, by the true value


def plain(chance: random.Random, level: float) -> float:  # noqa: ARG001 - as other noises
    return chance.gauss(0, 1)


def growing(chance: random.Random, level: float) -> float:
    """Draw noise that is ten times as large at the ceiling as at the seed."""
    return chance.gauss(0, 1 + 9 * max(level, 0.0) / CEILING)


class Drift:
    """A machine whose speed changes slowly: it shifts all grades, by one standard deviation besides their noise."""

    def __init__(self) -> None:
        self._state = 0.0

    def __call__(self, chance: random.Random, level: float) -> float:  # noqa: ARG002 - as above
        self._state = MEMORY * self._state + math.sqrt(1 - MEMORY**2) * chance.gauss(0, 1)
        return self._state + chance.gauss(0, 1)


@dataclass
class NoisyFleet:
    """Attempts by a few agents, one after the other.

    `steps`: whether attempts differ from what they were built on; if not, each is a copy of the seed. `strict`: the
    best is whatever scores higher, and nothing is measured again. `planned`: attempts in the budget, of which
    confirmations may be a share, as where grades take long.
    """

    seed: int
    noise: Noise = plain
    steps: bool = True
    strict: bool = False
    planned: int = 200
    values: list[float] = field(default_factory=lambda: [0.0])  # the true value of each record
    verdicts: list[Verdict] = field(default_factory=list)  # of the attempts
    false_bests: int = 0
    confirmations: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._standing = Standing()
        self._highest = (-math.inf, 0)
        self._last = [0] * AGENTS
        self._publish(Kind.BASELINE, Judgement(Verdict.NEW_BEST), self._grade(0))
        while not self.strict and len(self._standing.measured[0].scores) < SEED_GRADES:
            self._confirm(Confirmation(0))

    @property
    def lead(self) -> float:
        """The true value of the lead, on which agents build."""
        if self.strict:
            return self.values[self._highest[1]]
        found = lead(self._standing, ESTIMATED)
        return self.values[found.number] if found else 0.0

    @property
    def best(self) -> float:
        """The true value of the proven best."""
        return self.values[self._highest[1]] if self.strict else self.values[self._standing.best or 0]

    def run(self, grades: int, *, confirmations_count: bool = False) -> None:
        """Make attempts until there are `grades` of them, or of attempts and confirmations together."""
        while len(self.verdicts) + self.confirmations * confirmations_count < grades:
            self.attempt(len(self.verdicts) % AGENTS)

    def attempt(self, agent: int, step: float | None = None) -> None:
        built_on = self.lead if self._chance.random() < ON_THE_LEAD else self.values[self._last[agent]]
        true = built_on + (self._step(built_on) if step is None else step)
        number = len(self.values)
        self.values.append(true)
        score = self._grade(number)
        if self.strict:
            judgement = self._judge_strictly(number, score)
        else:
            judgement = judge(self._standing, f"agent-{agent}", score, ESTIMATED)
        self.verdicts.append(judgement.verdict)
        self._publish(Kind.REAL, judgement, score, number, f"agent-{agent}")
        self._last[agent] = number
        while not self.strict and (asked := next_confirmation(self._standing, ESTIMATED)) and self._affords(asked):
            self._confirm(asked)

    def _affords(self, asked: Confirmation) -> bool:
        grades = PAIR if asked.of == self._standing.best else 1  # of a pair that has begun, one grade is left
        return self.confirmations + grades <= max(PAIR, SHARE * self.planned)

    def _step(self, level: float) -> float:
        if not self.steps:
            return -level  # a copy of the seed
        kind, size, left = self._chance.random(), self._chance.expovariate(1.0), max(0.0, 1 - level / CEILING)
        return -3 * size if kind < 0.45 else 0.0 if kind < 0.7 else size * left if kind < 0.95 else 6 * size * left

    def _grade(self, number: int) -> float:
        return self.values[number] + self.noise(self._chance, self.values[number])

    def _judge_strictly(self, number: int, score: float) -> Judgement:
        if score <= self._highest[0]:
            return Judgement(Verdict.WORSE)
        self.false_bests += self.values[number] <= self.values[self._highest[1]]
        self._highest = (score, number)
        return Judgement(Verdict.NEW_BEST)

    def _confirm(self, asked: Confirmation) -> None:
        score, before = self._grade(asked.of), self._standing.best or 0
        judgement = judge_confirmation(self._standing, asked, score, ESTIMATED)
        self.confirmations += 1
        if judgement.verdict is Verdict.NEW_BEST:
            self.false_bests += self.values[asked.of] <= self.values[before]
        self.values.append(self.values[asked.of])
        self._publish(Kind.CONFIRM, judgement, score, len(self.values) - 1, of=asked.of)

    def _publish(
        self, kind: Kind, judgement: Judgement, score: float, number: int = 0, agent: str = "", of: int | None = None
    ) -> None:
        if self.strict:
            self._highest = (score, 0) if kind is Kind.BASELINE else self._highest
            return
        record = Attempt(
            number=number, agent=agent, kind=kind, commit=f"{number:040x}", tree=f"{number:040x}", parent="", title="",
            submission="", submitted_at="", published_at="", order=number, verdict=judgement.verdict, score=score,
            of=of, against=judgement.against,
        )  # fmt: skip
        self._standing = advance(self._standing, record, ESTIMATED)
