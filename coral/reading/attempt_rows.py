"""Lists the attempts of a run, ranked or latest first, each with the scores of all its grades.

Every screen that shows one score of an attempt shows the median of these. What came of one grade, as `coral eval`
prints it, and the points of a curve are the score of that grade.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from attempts.index import query
from attempts.index.query import Named, Wanted
from attempts.noise import deviation, mean, median, summary, tiny
from attempts.record import Attempt, to_dict
from coral.reading.run_view import RunView

MEASURED = ("median", "mean", "deviation", "count")  # as `attempts.noise.summary` names them
COLUMNS = (*(name for name in Attempt.__slots__ if name != "metrics"), *MEASURED)


@dataclass(frozen=True, slots=True)
class MeasuredAttempt:
    """An attempt with the scores of all its grades: in a ranking those of its tree, else its own and those of its
    confirmations. `scores` is empty where it has none."""

    attempt: Attempt
    scores: tuple[float, ...] = ()

    @property
    def is_seed(self) -> bool:
        """Whether it is where agents began: it has no author."""
        return not self.attempt.agent

    @property
    def median(self) -> float | None:
        """The attempt's score on screens, and the key by which attempts are ranked."""
        return median(self.scores) if self.scores else None

    @property
    def mean(self) -> float | None:
        return mean(self.scores) if self.scores else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the scores; None of fewer than two."""
        return deviation(self.scores) if len(self.scores) > 1 else None

    @property
    def count(self) -> int:
        return len(self.scores)


def ranking(view: RunView, wanted: Wanted, most: int | None) -> list[MeasuredAttempt]:
    """Return the attempts that `wanted` selects, best first, at most `most`. Attempts without a score are left out. Of
    those whose score equals the highest, the lead comes first."""
    found = view.index.with_records(lambda rows: query.ranked(rows, wanted, view.direction, most))
    lines = [MeasuredAttempt(attempt, rank.scores) for rank, attempt in found]
    # Scores that differ by rounding alone are equal, and the lead is the earlier one.
    lead = view.best_and_lead[1].integer("number")
    level = median(lines[0].scores) if lines else 0.0
    equal = [line for line in lines if abs(median(line.scores) - level) <= tiny(level)]
    return sorted(equal, key=lambda line: line.attempt.number != lead) + lines[len(equal) :]


def recent(view: RunView, wanted: Wanted, most: int | None) -> list[MeasuredAttempt]:
    """Return the attempts that `wanted` selects, highest number first, failed ones too, at most `most`."""
    found = view.index.with_records(lambda rows: map(Named, islice(query.recent(rows, wanted), most)))
    return with_scores(view, (attempt for _, attempt in found))


def with_scores(view: RunView, attempts: Iterable[Attempt]) -> list[MeasuredAttempt]:
    """Return the attempts with the scores of all their grades."""
    held = list(attempts)
    numbers = [attempt.number for attempt in held if attempt.score is not None]
    found = view.index.ask(lambda rows: query.scores_of(rows, numbers))
    return [MeasuredAttempt(attempt, _scores(attempt, found)) for attempt in held]


def _scores(attempt: Attempt, found: Mapping[int, tuple[float, ...]]) -> tuple[float, ...]:
    return () if attempt.score is None else found.get(attempt.number, (attempt.score,))


def measured(view: RunView, number: int | None) -> MeasuredAttempt | None:
    """Return an attempt with the scores of all its grades; None if it has no score or the reader may not see it."""
    attempt = view.attempt_or_none(number)
    if attempt is None:
        return None
    found = view.index.ask(lambda rows: query.measured(rows, attempt.number))
    return MeasuredAttempt(attempt, found.scores) if found else None


def nested(line: MeasuredAttempt) -> dict[str, object]:
    """Convert an attempt to an object for JSON: its record, and `measured`, the summary of its grades if it has
    several."""
    return {**to_dict(line.attempt), **measured_again(line.scores)}


def flat(line: MeasuredAttempt) -> dict[str, object]:
    """Convert an attempt to a row of a table: the fields of its record, the columns MEASURED, and one column
    `metrics.NAME` for each metric."""
    data = to_dict(line.attempt)
    metrics = {f"metrics.{name}": value for name, value in line.attempt.metrics.items()}
    scored = dict(summary(line.scores)) if line.scores else {}
    return {**{name: value for name, value in data.items() if name != "metrics"}, **scored, **metrics}


def measured_again(scores: Sequence[float]) -> dict[str, object]:
    """Return `{"measured": summary}` with median, mean, deviation and count of the scores; an empty dictionary for
    fewer than two scores."""
    return {"measured": summary(scores)} if len(scores) > 1 else {}
