"""The leaderboard and each agent's results, updated record by record: a prompt costs the same at any size of a run."""

from bisect import insort
from collections import deque
from collections.abc import Iterable

from attempts.record import Attempt, Direction, Kind, Verdict

TOP = 10
RECENT = 10


class Standings:
    """Built from all records, or from the few of `Ledger.outline`: the result is the same."""

    def __init__(self, direction: Direction, attempts: Iterable[Attempt] = ()) -> None:
        self.direction = direction
        self.baseline: Attempt | None = None
        self.top: list[Attempt] = []
        self.best_of: dict[str, Attempt] = {}
        self.recent_of: dict[str, deque[Attempt]] = {}
        self._deltas: dict[int, str] = {}
        self._improved_by: dict[str, int] = {}
        for attempt in sorted(attempts, key=lambda attempt: attempt.order):
            self.add(attempt)

    def add(self, attempt: Attempt) -> None:
        """Adds a record, in the order of publication; a second time has no effect."""
        if attempt.kind is Kind.BASELINE:
            self.baseline = attempt
        else:
            recent = self.recent_of.setdefault(attempt.agent, deque(maxlen=RECENT))
            if any(other.number == attempt.number for other in recent):
                return
            self._remember_delta(attempt, recent)
            recent.append(attempt)
            if attempt.verdict is Verdict.IMPROVED and attempt.kind is not Kind.TUNE:
                self._improved_by[attempt.agent] = attempt.number
        if attempt.score is not None and attempt.kind in (Kind.REAL, Kind.CONFIRM):
            self._rank(attempt, attempt.score)

    @property
    def best(self) -> Attempt | None:
        """The fleet's best attempt; None while nobody has scored."""
        return self.top[0] if self.top else None

    def last_improvement(self, agent: str) -> int | None:
        """The attempt that the agent's next one is compared with: its last improvement, or the baseline."""
        return self._improved_by.get(agent, None if self.baseline is None else self.baseline.number)

    def results_since(self, agent: str, order: int) -> list[Attempt]:
        """The agent's attempts published after that order of publication, oldest first."""
        return [attempt for attempt in self.recent_of.get(agent, ()) if attempt.order > order]

    def delta(self, attempt: Attempt) -> str:
        """How the score differed from the agent's best before, as text; empty where there is nothing to compare."""
        return self._deltas.get(attempt.number, "")

    def rank(self, agent: str) -> int | None:
        """The agent's place among the agents by their best attempts, from 1."""
        mine = self.best_of.get(agent)
        if mine is None or mine.score is None:
            return None
        scores = [best.score for best in self.best_of.values() if best.score is not None]
        return 1 + sum(self.direction.better(score, mine.score) for score in scores)

    def _rank(self, attempt: Attempt, score: float) -> None:
        best = self.best_of.get(attempt.agent)
        if best is None or best.score is None or self.direction.better(score, best.score):
            self.best_of[attempt.agent] = attempt
        insort(self.top, attempt, key=self.place)
        del self.top[TOP:]

    def place(self, attempt: Attempt) -> tuple[float, int]:
        """What attempts that have a score are sorted by, the best first; among equal scores the first is ahead."""
        score = attempt.score or 0.0
        return (-score if self.direction is Direction.MAXIMIZE else score, attempt.order)

    def _remember_delta(self, attempt: Attempt, recent: "deque[Attempt]") -> None:
        if len(recent) == RECENT:
            self._deltas.pop(recent[0].number, None)
        before = self.best_of.get(attempt.agent, self.baseline)
        if attempt.score is not None and before is not None and before.score is not None:
            self._deltas[attempt.number] = f"{attempt.score - before.score:+.6g} against #{before.number}"
