"""Records of attempts that nobody made: a long history without the days it takes. Only for what reads records."""

from __future__ import annotations

from collections.abc import Iterator

from attempts.files import write_json
from attempts.record import Attempt, Kind, Verdict, to_dict
from benchmarks.arena import Started


def fill(run: Started, count: int, agents: int) -> None:
    """Write records 1 to `count` beside the real ones, in turn for each agent; about one in fifty is an improvement."""
    for attempt in _attempts(count, agents):
        write_json(run.record(attempt.number), to_dict(attempt), durable=False)


def _attempts(count: int, agents: int) -> Iterator[Attempt]:
    for number in range(1, count + 1):
        improved = number % 50 == 1
        yield Attempt(
            number=number,
            agent=f"agent-{number % agents + 1}",
            kind=Kind.REAL,
            commit=f"{number:040x}",
            tree=f"{number:040x}",
            parent=f"{number - 1:040x}",
            title=f"move the boundary by {number} and look again",
            submission=f"{number:020d}",
            submitted_at="2030-01-01T00:00:00.000Z",
            published_at="2030-01-01T00:00:01.000Z",
            order=number,
            verdict=Verdict.IMPROVED if improved else Verdict.REGRESSED,
            score=float(number if improved else number % 50),
            feedback="the second half is worse than the first",
            metrics={"loss": number / 7},
        )
