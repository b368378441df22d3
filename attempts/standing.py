"""Which attempt leads, which is the best, and what to measure again: computed from the records, in their order.

The lead is the attempt with the highest median of its measurements: agents build on it, but it may only be lucky, since
on a noisy task the highest of many scores is a lucky one. The best is proven: it was measured side by side with the
best before it, and was better by more than the noise explains. Among equals the earlier attempt is ahead. "Higher"
means better throughout: for a task that minimises, differences have the opposite sign.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from attempts.noise import Noise, NoiseSetting, mean, median, noise_at, tiny
from attempts.record import LARGEST, Attempt, Direction, Kind, Verdict

WORTH_MEASURING = 2.5  # standard errors by which a lead must exceed the best, for a pair to be measured
PAIRS = 3  # a lead is measured beside the best at most so many times; once where no noise was ever seen
BEGUN = PAIRS + 2  # ... counting pairs in which a half got no score
FAILURES = 2  # after so many confirmations without a score an attempt cannot lead any more
TRUSTED = 3  # after so many attempts that scored the same again, one score is believed
KEPT = 10  # attempts of each agent that stay in the standing, the highest ones ...
GROUPS = 40  # ... and so many that were measured again, those nearest to the best


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How the task scores: which direction is better, and how noisy its grader is."""

    direction: Direction = Direction.MAXIMIZE
    noise: NoiseSetting = field(default_factory=NoiseSetting)

    def gain(self, score: float, other: float) -> float:
        """Return how much better `score` is than `other`."""
        return difference(score, other) if self.direction is Direction.MAXIMIZE else difference(other, score)


def difference(score: float, other: float) -> float:
    """Return `score - other`, limited to the largest finite number."""
    return min(max(score - other, -LARGEST), LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An attempt with all scores of its commit, its own score first."""

    number: int
    agent: str
    commit: str
    tree: str
    parent: str
    title: str
    scores: tuple[float, ...]
    gains: tuple[float, ...] = ()  # by how much it was better than the present best, in each pair
    begun: int = 0  # pairs with the present best, counting those in which a half got no score
    failures: int = 0  # confirmations of it that gave no score

    @property
    def is_refuted(self) -> bool:
        """Whether its confirmations failed so often that its score is not believed."""
        return self.failures >= FAILURES

    @property
    def is_seed(self) -> bool:
        return not self.agent

    @property
    def value(self) -> float:
        return self.scores[0] if len(self.scores) == 1 else median(self.scores)


@dataclass(frozen=True, slots=True)
class Scored:
    """An attempt and its own score."""

    number: int
    score: float


@dataclass(frozen=True, slots=True)
class Half:
    """The first half of a pair: attempt `of` was measured and got `score`; attempt `against` is measured next to
    compare them."""

    of: int
    against: int
    score: float


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A measurement that is wanted: of attempt `of`, again, to compare it with `against`; None for a single one."""

    of: int
    against: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the attempts stand to each other after the published records. `measured`: the attempts that still matter,
    because they are or may become lead, best or an agent's own best, or because they show the noise."""

    best: int | None = None
    half: Half | None = None
    measured: Mapping[int, Measured] = field(default_factory=dict)

    @property
    def best_measured(self) -> Measured | None:
        return None if self.best is None else self.measured[self.best]

    @property
    def seed(self) -> Measured | None:
        return next((attempt for attempt in self.measured.values() if attempt.is_seed), None)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a score. `against`: the attempt that it was compared with; `delta`: the score less that
    attempt's."""

    verdict: Verdict
    against: int | None = None
    delta: float | None = None


def judge(standing: Standing, agent: str, score: float, scoring: Scoring, built_on: Scored | None = None) -> Judgement:
    """Judge the first score of an attempt. It is compared with the higher of its agent's own best and of the attempt
    that it was built on, so that a copy of another agent's work is no gain."""
    best = standing.best_measured
    if best is None:
        return Judgement(Verdict.NEW_BEST)
    references = [
        attempt
        for attempt in (own_best(standing, agent, scoring), _measured(standing, built_on))
        if attempt is not None
    ]
    reference = max(references, key=lambda attempt: scoring.gain(attempt.value, 0.0), default=best)
    gain, noise = scoring.gain(score, reference.value), noise_of(standing, scoring, reference.value)
    bar = noise.bar(reference.value, math.sqrt(1 + 1 / len(reference.scores)))
    verdict = Verdict.OWN_BEST if gain > bar else Verdict.WORSE if gain < -bar else Verdict.TIED
    if verdict is Verdict.OWN_BEST and is_exact(standing, noise, scoring) and _is_highest(standing, score, scoring):
        verdict = Verdict.NEW_BEST
    return Judgement(verdict, reference.number, difference(score, reference.value))


def judge_confirmation(standing: Standing, asked: Confirmation, score: float, scoring: Scoring) -> Judgement:
    """Judge the score of a confirmation. It proves a new best if all pairs with the best so far, this one included,
    show a gain beyond the noise."""
    half, attempt = standing.half, standing.measured.get(asked.of)
    if half is None or attempt is None or half != Half(asked.against or 0, asked.of, half.score):
        return Judgement(Verdict.TIED, asked.against)
    gain = scoring.gain(score, half.score)
    gains = (*attempt.gains, gain)
    bar = noise_of(_with_score(standing, asked.of, score), scoring).bar(half.score, math.sqrt(2 / len(gains)))
    is_proven = mean(gains) > bar
    return Judgement(Verdict.NEW_BEST if is_proven else Verdict.TIED, asked.against, difference(score, half.score))


def advance(standing: Standing, record: Attempt, scoring: Scoring) -> Standing:
    """Return the standing after one more record. A baseline begins an epoch: the attempts before it are dropped."""
    if record.kind is Kind.BASELINE:
        standing = Standing()
    if record.kind is Kind.CONFIRM:
        standing = _with_confirmation(standing, record, scoring)
    elif record.kind is Kind.TUNE:
        return standing
    elif record.score is not None:
        standing = _with_attempt(standing, record, record.score)
    if record.verdict is Verdict.NEW_BEST or (record.kind is Kind.BASELINE and record.score is not None):
        standing = _with_best(standing, record.number if record.of is None else record.of)
    return _pruned(standing, scoring)


def lead(standing: Standing, scoring: Scoring) -> Measured | None:
    """Return the attempt with the highest median; the best itself if none is higher."""
    return _first_among_highest(_believed(standing), standing.best_measured, scoring)


def own_best(standing: Standing, agent: str, scoring: Scoring) -> Measured | None:
    """Return the agent's attempt with the highest median; the seed, while none of its attempts is higher."""
    own = [attempt for attempt in _believed(standing) if attempt.agent == agent or attempt.is_seed]
    return _first_among_highest(own, None, scoring)


def own_bests(standing: Standing, scoring: Scoring) -> dict[str, Measured]:
    """Return the own best of each agent that has a score."""
    seed = [attempt for attempt in standing.measured.values() if attempt.is_seed]
    of_agents: dict[str, list[Measured]] = {}
    for attempt in _believed(standing):
        of_agents.setdefault(attempt.agent, [*seed]).append(attempt)
    found = {agent: _first_among_highest(own, None, scoring) for agent, own in of_agents.items()}
    return {agent: best for agent, best in found.items() if best is not None}


def ranked(standing: Standing, scoring: Scoring) -> list[Measured]:
    """Return the attempts by their medians, the highest first; of equal ones the earlier is ahead. The seed is left
    out."""
    attempts = [attempt for attempt in _believed(standing) if not attempt.is_seed]
    return sorted(attempts, key=lambda attempt: (-scoring.gain(attempt.value, 0.0), attempt.number))


def without_half(standing: Standing) -> Standing:
    """Return the standing without the first half of a pair, as if that pair had not begun."""
    half = standing.half
    if half is None:
        return standing
    standing = _change(standing, half.against, lambda attempt: replace(attempt, begun=max(attempt.begun - 1, 0)))
    return replace(standing, half=None)


def _believed(standing: Standing) -> list[Measured]:
    """Return the attempts whose score is believed: confirmations did not fail too often. The best and the seed are
    always among them."""
    attempts = standing.measured.values()
    return [
        attempt for attempt in attempts if attempt.number == standing.best or attempt.is_seed or not attempt.is_refuted
    ]


def noise_of(standing: Standing, scoring: Scoring, level: float | None = None) -> Noise:
    """Return the noise of scores near `level`; without it, near the best."""
    best = standing.best_measured
    if level is None:
        level = best.value if best else 0.0
    groups = [attempt.scores for attempt in standing.measured.values() if len(attempt.scores) > 1]
    return noise_at(scoring.noise, level, groups)


def is_exact(standing: Standing, noise: Noise, scoring: Scoring) -> bool:
    """Return whether one score is enough: the task says so, or enough attempts were measured again and none scored
    differently."""
    if scoring.noise.deviation is not None:
        return scoring.noise.deviation == 0
    if noise.deviation or not noise.freedom:
        return False
    again = sum(len(attempt.scores) > 1 for attempt in standing.measured.values() if not attempt.is_seed)
    return again >= TRUSTED


def next_confirmation(standing: Standing, scoring: Scoring) -> Confirmation | None:
    """Return the next measurement that is wanted: the other half of a pair, or the first half of a new pair of the best
    and the lead, as long as a pair can still tell which is better; None if none is."""
    best, half = standing.best_measured, standing.half
    if half is not None and half.against in standing.measured:
        return Confirmation(half.against, half.of)
    candidate = lead(standing, scoring)
    if best is None or candidate is None or candidate is best or scoring.noise.deviation == 0:
        return None
    noise = noise_of(standing, scoring)
    pairs = 1 if noise.freedom and not noise.deviation else PAIRS
    if candidate.begun >= BEGUN or (len(candidate.gains) >= pairs and not _shows(candidate.gains, noise, best.value)):
        return None
    error = noise.deviation * math.sqrt(1 / len(candidate.scores) + 1 / len(best.scores))
    if noise.freedom and scoring.gain(candidate.value, best.value) < WORTH_MEASURING * error:
        return None
    return Confirmation(best.number, candidate.number)


def _shows(gains: Sequence[float], noise: Noise, level: float) -> bool:
    """Return whether the gains of pairs show that the lead is better. If they did not when they were measured, they may
    once the noise is known better: then one more pair is worth its grades."""
    return bool(gains) and mean(gains) > noise.bar(level, math.sqrt(2 / len(gains)))


def _with_attempt(standing: Standing, record: Attempt, score: float) -> Standing:
    """Return the standing with a new attempt. A duplicate counts as one more measurement of the first attempt with its
    tree, if that still matters, and never by itself: otherwise an agent could submit the same tree until it is
    lucky."""
    if record.of is not None:
        return _with_score(standing, record.of, score)
    measured = Measured(
        number=record.number, agent=record.agent, commit=record.commit, tree=record.tree, parent=record.parent,
        title=record.title, scores=(score,),
    )  # fmt: skip
    return replace(standing, measured={**standing.measured, record.number: measured})


def _with_score(standing: Standing, number: int, score: float) -> Standing:
    return _change(standing, number, lambda attempt: replace(attempt, scores=(*attempt.scores, score)))


def _with_confirmation(standing: Standing, record: Attempt, scoring: Scoring) -> Standing:
    """Return the standing with a confirmation's score, or its failure. A pair begins with the best; the second half
    gives the lead its gain, and a half without a score drops the pair. The pair counts as begun even then: else a
    broken grader would be asked for ever."""
    half, of, against = standing.half, record.of, record.against
    if of is None:
        return standing
    if record.score is not None:
        standing = _with_score(standing, of, record.score)
    elif record.verdict is Verdict.FAILED or not record.agent:
        standing = _change(standing, of, lambda attempt: replace(attempt, failures=attempt.failures + 1))
    if against is None:
        return standing
    if of == standing.best:
        standing = without_half(standing)  # a pair that a resume has dropped: no record says so
        standing = _change(standing, against, lambda attempt: replace(attempt, begun=attempt.begun + 1))
        return replace(standing, half=None if record.score is None else Half(of, against, record.score))
    standing = replace(standing, half=None)
    if record.score is None or half is None or half.of != against or half.against != of:
        return standing
    gain = scoring.gain(record.score, half.score)
    return _change(standing, of, lambda attempt: replace(attempt, gains=(*attempt.gains, gain)))


def _is_highest(standing: Standing, score: float, scoring: Scoring) -> bool:
    """Return whether the score is higher than the best, and higher than a lead that could not be proven."""
    highest = [attempt for attempt in (standing.best_measured, lead(standing, scoring)) if attempt is not None]
    return all(scoring.gain(score, attempt.value) > tiny(attempt.value) for attempt in highest)


def _with_best(standing: Standing, number: int) -> Standing:
    """Return the standing with another best. The gains of pairs with the one before are dropped: they say nothing about
    the new one."""
    if number == standing.best or number not in standing.measured:
        return standing
    measured = {
        key: replace(attempt, gains=(), begun=0) if attempt.begun else attempt
        for key, attempt in standing.measured.items()
    }
    return Standing(best=number, measured=measured)


def _change(standing: Standing, number: int, change: Callable[[Measured], Measured]) -> Standing:
    attempt = standing.measured.get(number)
    return standing if attempt is None else replace(standing, measured={**standing.measured, number: change(attempt)})


def _measured(standing: Standing, scored: Scored | None) -> Measured | None:
    """Return the attempt with all its scores, if it still matters; else with this score alone."""
    if scored is None:
        return None
    alone = Measured(number=scored.number, agent="", commit="", tree="", parent="", title="", scores=(scored.score,))
    return standing.measured.get(scored.number, alone)


def _first_among_highest(candidates: list[Measured], default: Measured | None, scoring: Scoring) -> Measured | None:
    """Return the earliest of the attempts that equal the highest; `default` if it is one of them."""
    if not candidates:
        return default
    highest = max(candidates, key=lambda attempt: scoring.gain(attempt.value, 0.0)).value
    equal = [attempt for attempt in candidates if scoring.gain(highest, attempt.value) <= tiny(highest)]
    return default if default in equal else min(equal, key=lambda attempt: attempt.number)


def _pruned(standing: Standing, scoring: Scoring) -> Standing:
    """Return the standing without attempts that do not matter any more, so that a decision costs the same at any length
    of a run."""
    kept = set(_kept(standing, scoring))
    if len(kept) == len(standing.measured):
        return standing
    return replace(standing, measured={key: attempt for key, attempt in standing.measured.items() if key in kept})


def _kept(standing: Standing, scoring: Scoring) -> Iterator[int]:
    best, counts = standing.best_measured, dict[str, int]()
    level = best.value if best else 0.0
    for attempt in sorted(
        standing.measured.values(), key=lambda attempt: (-scoring.gain(attempt.value, 0.0), attempt.number)
    ):
        counts[attempt.agent] = counts.get(attempt.agent, 0) + 1
        if counts[attempt.agent] <= KEPT or attempt.number == standing.best:
            yield attempt.number
    again = [attempt for attempt in standing.measured.values() if len(attempt.scores) > 1]
    yield from (attempt.number for attempt in sorted(again, key=lambda attempt: abs(attempt.value - level))[:GROUPS])
