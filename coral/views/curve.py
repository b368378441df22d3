"""A run's score over time: the fleet's best, each agent's own best, and every attempt as a point. Charts draw it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from attempts.index.history import GradedRecord
from attempts.noise import median
from attempts.record import IMPROVED, Direction, Kind, Verdict
from attempts.standing import FAILURES, difference
from coral.views import axis

OUTERMOST = 1.7e308  # beyond it a value with its margin would be no finite float
HOUR = 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class BestStep:
    """From `at` (seconds of the run's clock) on, attempt `number` is the best; `value` is the median of its grades."""

    at: float
    number: int
    value: float


@dataclass(frozen=True, slots=True)
class Point:
    """One attempt, when it was published, and its own score: None where it failed."""

    at: float
    number: int
    agent: str
    verdict: Verdict
    score: float | None

    @property
    def improved(self) -> bool:
        return self.verdict in IMPROVED


@dataclass(frozen=True)
class Curve:
    """The scores of one epoch over time. `steps`: each change of the fleet's proven best. `own`: each change of an
    agent's own best, by agent. Both begin with the seed if `has_seed`; it is False if the seed has failed. `end`: the
    seconds that the run has lasted."""

    direction: Direction
    steps: Sequence[BestStep] = ()
    own: Mapping[str, Sequence[BestStep]] = field(default_factory=dict)
    points: Sequence[Point] = ()
    end: float = 0.0
    has_seed: bool = True

    @property
    def best(self) -> float | None:
        return self.steps[-1].value if self.steps else None

    def gap(self, value: float) -> float:
        """How much worse a score is than the best; below 0 where a single score is better."""
        return self.gain(self.best or 0.0, value)

    def gain(self, value: float, before: float) -> float:
        """How much better a score is than one before; below 0 where it is worse."""
        return difference(value, before) if self.direction is Direction.MAXIMIZE else difference(before, value)

    @property
    def to_best(self) -> float | None:
        """Seconds until the best was found and proven; None while it is the seed."""
        return None if not self.steps or self.is_seed(self.steps[-1]) else self.steps[-1].at

    @property
    def gained(self) -> Sequence[BestStep]:
        """The steps that attempts of agents made, without those to the seed."""
        return [step for step in self.steps if not self.is_seed(step)]

    def is_seed(self, step: BestStep) -> bool:
        """Return whether the best was the seed from this step on: at first, or again because what had beaten it was
        worse when it was measured again."""
        return self.has_seed and step.number == self.steps[0].number


@dataclass(frozen=True, slots=True)
class LinearAxis:
    """A linear axis from the score `low` to the score `high`; scores outside are drawn at its edge. `begins`: the step
    of the best at which the axis begins, if earlier steps are left outside because they would hide the others; else
    None."""

    direction: Direction
    low: float
    high: float
    begins: BestStep | None = None

    @property
    def worst(self) -> float:
        return self.low if self.direction is Direction.MAXIMIZE else self.high

    def is_worse(self, score: float) -> bool:
        """Return whether a score is worse than the worst score on the axis."""
        return self.direction.better(self.worst, score)


def reach(lines: Iterable[Sequence[float]], scores: Iterable[float] = ()) -> tuple[float, float] | None:
    """Return the lowest and the highest score that a linear axis must show; None if no line has a step. `lines`: the
    values of the curves; first values that would hide the later ones are left out, see `axis.first_shown`. If all
    values that remain are equal, the half of `scores` nearest to them is included."""
    held = [value for values in lines for value in values[axis.first_shown(values) :]]
    if held and min(held) == max(held):
        near = sorted(scores, key=lambda score: abs(score / 4 - held[0] / 4))
        held += near[: (len(near) + 1) // 2]
    return (min(held), max(held)) if held else None


def linear_axis(curve: Curve, agents: Sequence[str] = ()) -> LinearAxis | None:
    """Return the linear axis of the fleet's curve and of the own bests of `agents`, with a margin; None if there is
    nothing to draw. It also includes the scores of attempts that improved and are better than the best."""
    shown = [curve.steps, *(curve.own.get(name, ()) for name in agents)]
    scores = [(point, point.score) for point in curve.points if point.score is not None]
    found = reach([[step.value for step in steps] for steps in shown], (score for _, score in scores))
    if found is None:
        return None
    held = [*found, *(score for point, score in scores if point.improved and curve.gap(score) < 0)]
    start = axis.first_shown([step.value for step in curve.steps])
    begins = curve.steps[start] if start else None
    return LinearAxis(curve.direction, *with_margin(min(held), max(held)), begins)


def with_margin(low: float, high: float) -> tuple[float, float]:
    """Return the range extended by a twentieth on both sides, so that no point lies on the edge."""
    margin = (high / 20 - low / 20) or abs(high) / 20 or 1.0
    return max(low - margin, -OUTERMOST), min(high + margin, OUTERMOST)


def curve_of(
    direction: Direction,
    bests: Iterable[tuple[str, int, float]],
    records: Sequence[GradedRecord],
    at: Callable[[int], float],
    end: float = 0.0,
) -> Curve:
    """Make the curve. `bests`: from `query.curve`; `records`: in the order of publication; `at`: when a record was
    published, in seconds of the run's clock."""
    steps = steps_of(bests, records, at)
    points = [
        point_of(record, at(record.number))
        for record in records
        if record.agent and record.kind in (Kind.REAL, Kind.TUNE) and record.verdict is not Verdict.VOID
    ]
    own, last = own_steps(direction, records, at), last_of(end, steps, points)
    return Curve(direction, steps, own, points, last, has_seed(records))


def has_seed(records: Iterable[GradedRecord]) -> bool:
    """Return whether the seed has a score. `records`: at least those that proved a best, of one epoch."""
    return any(record.kind is Kind.BASELINE and record.score is not None for record in records)


def steps_of(
    bests: Iterable[tuple[str, int, float]], records: Iterable[GradedRecord], at: Callable[[int], float]
) -> list[BestStep]:
    """Return the steps of the fleet's best. `bests`: from `query.curve`; `records`: at least those that proved one of
    the `bests`; `at`: when a record was published."""
    measured = {record.number: record.of for record in records if record.kind is Kind.CONFIRM}
    return [
        BestStep(at(number), number if (of := measured.get(number)) is None else of, value)
        for _, number, value in bests
    ]


def point_of(record: GradedRecord, at: float) -> Point:
    return Point(at, record.number, record.agent, record.verdict, record.score)


def last_of(end: float, steps: Sequence[BestStep], points: Sequence[Point]) -> float:
    """Return the time at which a curve ends: `end`, or that of the last step or point if it is later."""
    return max([end, *(step.at for step in steps[-1:]), *(point.at for point in points[-1:])])


def own_steps(
    direction: Direction, records: Iterable[GradedRecord], at: Callable[[int], float]
) -> dict[str, list[BestStep]]:
    """Return for each agent the steps of its own best, as `standing.own_best` defines it at each moment: the highest
    median among its attempts, and the seed's until one is higher. `records`: in the order of publication."""
    agents: dict[str, _Own] = {}
    seed = _Own(direction)
    author: dict[int, str] = {}
    best: int | None = None
    for record in records:
        if record.kind is Kind.TUNE:
            continue
        if record.verdict is Verdict.NEW_BEST:
            best = record.number if record.of is None else record.of
        number = record.number if record.of is None else record.of
        name = author.setdefault(number, record.agent)
        if not name:
            seed.take(record, number, at(record.number), keep=True)
            for own in agents.values():
                own.seed_is(seed, at(record.number))
            continue
        if name not in agents:
            agents[name] = _Own(direction)
            agents[name].seed_is(seed, 0.0)
        agents[name].take(record, number, at(record.number), keep=number == best)
    return {name: own.steps for name, own in agents.items()}


class _Own:
    """The scores of one agent's attempts, and the steps of its own best."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction
        self._scores: dict[int, list[float]] = {}
        self._failures: dict[int, int] = {}
        self._seed: int | None = None
        self.steps: list[BestStep] = []

    def seed_is(self, seed: "_Own", at: float) -> None:
        """Take over the scores of the seed, as if it were an attempt of this agent."""
        for number, scores in seed._scores.items():
            self._seed, self._scores[number] = number, scores
            self._step(number, at)

    def take(self, record: GradedRecord, number: int, at: float, *, keep: bool) -> None:
        """Add a grade of attempt `number`. `keep`: the attempt is not dropped, even if its measurements fail
        repeatedly."""
        if record.score is None:
            again = record.kind is Kind.CONFIRM and record.verdict is Verdict.FAILED
            self._failures[number] = self._failures.get(number, 0) + again
            if self._failures[number] >= FAILURES and not keep and number in self._scores:
                del self._scores[number]
                self._step(number, at)
        elif record.of is None or number in self._scores:
            self._scores.setdefault(number, []).append(record.score)
            self._step(number, at)

    def _step(self, changed: int, at: float) -> None:
        """Add a step if the own best has changed. If the changed attempt was the best itself, all attempts are
        compared, else only this one with the best."""
        held = self.steps[-1] if self.steps else None
        if held is None or held.number == changed:
            found = self._highest()
        elif changed in self._scores and self._direction.better(median(self._scores[changed]), held.value):
            found = (changed, median(self._scores[changed]))
        else:
            return
        if found is not None and (held is None or found != (held.number, held.value)):
            self.steps.append(BestStep(at, *found))

    def _highest(self) -> tuple[int, float] | None:
        best: tuple[int, float] | None = None
        for number, scores in self._scores.items():
            value = median(scores)
            if best is None or self._direction.better(value, best[1]):
                best = (number, value)
        return best
