"""The latest results of each agent, added record by record, so that a prompt costs the same at any size of a run."""

from collections import deque
from collections.abc import Iterable
from statistics import median

from attempts.record import Attempt, Kind

RECENT = 10


class RecentResults:
    """The seed's record and each agent's latest ones. Built from all records, or from the few of `Ledger.outline`: the
    result is the same."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self.baseline: Attempt | None = None
        self.of_agent: dict[str, deque[Attempt]] = {}
        for attempt in sorted(attempts, key=lambda attempt: attempt.order):
            self.add(attempt)

    def add(self, attempt: Attempt) -> None:
        """Add a record; call in the order of publication. Adding one again has no effect."""
        if attempt.kind is Kind.BASELINE:
            self.baseline = attempt
            return
        if attempt.kind is Kind.CONFIRM:
            return  # the supervisor's own
        recent = self.of_agent.setdefault(attempt.agent, deque(maxlen=RECENT))
        if all(other.number != attempt.number for other in recent):
            recent.append(attempt)

    def since(self, agent: str, order: int) -> list[Attempt]:
        """Return the agent's attempts that were published after this order, oldest first."""
        return [attempt for attempt in self.of_agent.get(agent, ()) if attempt.order > order]

    def usual_seconds(self) -> float | None:
        """Return how many seconds a grade usually takes: the median over the seed's grade and the agents' latest grades
        with a score, in the seed's epoch; None if there is none. Attempts that were not graded, as duplicates, are left
        out."""
        if (seed := self.baseline) is None:
            return None
        latest = [attempt for recent in self.of_agent.values() for attempt in recent]
        graded = [record for record in (seed, *latest) if record.score is not None and record.epoch == seed.epoch]
        return median(seconds) if (seconds := [record.seconds for record in graded if record.seconds > 0]) else None
