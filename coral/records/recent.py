"""The latest results of each agent, added record by record: a prompt costs the same at any size of a run."""

from collections import deque
from collections.abc import Iterable
from statistics import median

from attempts.record import Attempt, Kind

RECENT = 10


class RecentResults:
    """Built from all records, or from the few of `Ledger.outline`: the result is the same."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self.baseline: Attempt | None = None
        self.of_agent: dict[str, deque[Attempt]] = {}
        for attempt in sorted(attempts, key=lambda attempt: attempt.order):
            self.add(attempt)

    def add(self, attempt: Attempt) -> None:
        """Adds a record, in the order of publication; a second time has no effect."""
        if attempt.kind is Kind.BASELINE:
            self.baseline = attempt
            return
        if attempt.kind is Kind.CONFIRM:
            return  # the supervisor's own
        recent = self.of_agent.setdefault(attempt.agent, deque(maxlen=RECENT))
        if all(other.number != attempt.number for other in recent):
            recent.append(attempt)

    def since(self, agent: str, order: int) -> list[Attempt]:
        """The agent's attempts published after that order of publication, oldest first."""
        return [attempt for attempt in self.of_agent.get(agent, ()) if attempt.order > order]

    def usual_seconds(self) -> float | None:
        """How long a grade takes: the median of the seed's and of each agent's latest grades that gave a score, in the
        seed's epoch. None before the first. What was not graded, as a copy of a graded tree, took no time."""
        if (seed := self.baseline) is None:
            return None
        latest = [attempt for recent in self.of_agent.values() for attempt in recent]
        graded = [one for one in (seed, *latest) if one.score is not None and one.epoch == seed.epoch]
        return median(seconds) if (seconds := [one.seconds for one in graded if one.seconds > 0]) else None
