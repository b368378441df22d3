"""The agent's memory between launches: blocks of text that it edits, and the figures that its brain works with.

A memory is a value: every change makes a new one, so that whatever is saved, at whatever moment, is whole.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from attempts.noise import median
from attempts.record import Attempt, Direction, Kind
from coral.native.search.bandit import FamilyStats

BLOCK_NAMES = ("plan", "learned")
LONGEST_BLOCK = 4000  # characters; an edit beyond keeps the end
TRIALS = 60
ANSWERED = 200
RECENT = 60  # attempts kept in full
MOST_AWAITED = 200  # numbers still awaited; older ones are given up
LONGEST_REASON = 300  # characters
CLOSE = 1e-6  # relative: scores this close to the best count as equal to it

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempt:
    number: int
    agent: str
    score: float | None
    verdict: str
    title: str
    commit: str
    reason: str = ""
    scores: tuple[float, ...] = ()  # what its commit scored each time; `score` is their median

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        return cls(
            number=attempt.number,
            agent=attempt.agent,
            score=attempt.score,
            verdict=str(attempt.verdict),
            title=attempt.title,
            commit=attempt.commit,
            reason=attempt.reason[:LONGEST_REASON],
            scores=() if attempt.score is None else (attempt.score,),
        )

    def measured_again(self, score: float) -> Self:
        scores = (*self.scores, score)
        return replace(self, scores=scores, score=median(scores))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempts:
    """What is known of the fleet's attempts. `best`: by agent, "" being the seed. `awaited`: numbers below `next` whose
    records were not published yet. The scores of an earlier epoch are forgotten."""

    next: int = 0
    awaited: tuple[int, ...] = ()
    best: Mapping[str, KnownAttempt] = field(default_factory=dict)
    recent: tuple[KnownAttempt, ...] = ()
    count: int = 0
    epoch: int = 1

    def unread(self, numbers: Iterable[int]) -> list[int]:
        """Return those of the published numbers that have not been added."""
        awaited = set(self.awaited)
        return [number for number in numbers if number >= self.next or number in awaited]

    def add(self, records: Iterable[Attempt], direction: Direction) -> Self:
        """Return a copy with more records; the order in which they come does not matter."""
        known, added = self, set[int]()
        highest = self.next
        for record in records:
            added.add(record.number)
            highest = max(highest, record.number + 1)
            known = known._with(record, direction)
        gaps = (number for number in (*self.awaited, *range(self.next, highest)) if number not in added)
        return replace(known, next=highest, awaited=tuple(gaps)[-MOST_AWAITED:])

    def _with(self, record: Attempt, direction: Direction) -> Self:
        known, attempt = self, KnownAttempt.of(record)
        if record.epoch < known.epoch:
            return known
        if record.epoch > known.epoch:
            known = replace(known, epoch=record.epoch, best={}, recent=())
        if record.of is not None and record.score is not None:
            known = known._measured_again(record.of, record.score, direction)
        real = record.kind in (Kind.REAL, Kind.TUNE)
        recent = (*known.recent, attempt)[-RECENT:] if real else known.recent
        best = dict(known.best)
        held = best.get(attempt.agent)
        better = held is None or held.score is None or direction.better(record.score or 0.0, held.score)
        if record.score is not None and record.of is None and better:
            best[attempt.agent] = attempt
        return replace(known, recent=recent, best=best, count=known.count + real)

    def _measured_again(self, number: int, score: float, direction: Direction) -> Self:
        """Return a copy with one more score of attempt `number`, which changes its median and perhaps its agent's
        best."""
        again = [held.measured_again(score) if held.number == number else held for held in self.recent]
        known = replace(self, recent=tuple(again))
        for agent, held in self.best.items():
            if held.number == number:
                others = [other for other in again if other.agent == agent and other.score is not None]
                sign = 1.0 if direction is Direction.MAXIMIZE else -1.0
                best = max([*others, held.measured_again(score)], key=lambda attempt: sign * (attempt.score or 0.0))
                known = replace(known, best={**self.best, agent: best})
        return known

    def find(self, number: int | None) -> KnownAttempt | None:
        """Return the attempt of this number; None if it is not remembered."""
        known = {attempt.number: attempt for attempt in (*self.recent, *self.best.values())}
        return known.get(number) if number is not None else None

    def fleet_best(self, direction: Direction) -> KnownAttempt | None:
        """Return the attempt with the best score of all; of equals, the earliest."""
        best: KnownAttempt | None = None
        for attempt in sorted(self.best.values(), key=lambda attempt: attempt.number):
            if attempt.score is not None and (best is None or direction.better(attempt.score, best.score or 0.0)):
                best = attempt
        return best

    def leader(self, direction: Direction) -> KnownAttempt | None:
        """Return the earliest of the agents' best attempts whose scores equal the best of all, within CLOSE."""
        best = self.fleet_best(direction)
        if best is None or best.score is None:
            return None
        away = CLOSE * max(1.0, abs(best.score))
        held = [attempt for attempt in self.best.values() if attempt.score is not None]
        close = [attempt for attempt in held if abs((attempt.score or 0.0) - best.score) <= away]
        return min(close, key=lambda attempt: attempt.number)

    def best_of_others(self, agent: str, direction: Direction) -> list[KnownAttempt]:
        """Return the best attempts of the other agents, best first."""
        attempts = [attempt for name, attempt in self.best.items() if name not in (agent, "")]
        sign = -1.0 if direction is Direction.MAXIMIZE else 1.0
        return sorted(attempts, key=lambda attempt: (sign * (attempt.score or 0.0), attempt.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt as its author sees it: what was done, what was expected, and the result.

    `start` is the attempt it was made from (None: unknown), `before` its score, `expected` what the check said (None
    without a check). `score` and `verdict` are empty until it is graded.
    """

    title: str
    family: str
    start: int | None = None
    before: float | None = None
    expected: float | None = None
    moves: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    change: str = ""  # what differs from the start, in words
    number: int | None = None
    score: float | None = None
    verdict: str = ""
    reason: str = ""
    noted: bool = False  # whether a note, or a line of memory, was written about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What an episode of search found: the files' texts, and the trial that they become when they are submitted."""

    trial: Trial
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """The decision of a redirect for the next episodes: where to start, which family to try and which to avoid."""

    start: int | None = None
    avoid: str = ""
    family: str = ""
    episodes: int = 0  # for how many more it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    session: str
    episodes: int = 0
    blocks: Mapping[str, str] = field(default_factory=dict)
    stats: Mapping[str, FamilyStats] = field(default_factory=dict)  # by family
    known: KnownAttempts = field(default_factory=KnownAttempts)
    unsubmitted: Candidate | None = None  # the best of the last episode, which an interrupt must not lose
    pending: Trial | None = None  # submitted, or about to be; its result has not been seen
    trials: tuple[Trial, ...] = ()  # with their results
    redirection: Redirection = field(default_factory=Redirection)
    chain: Texts = field(default_factory=dict)  # the files as the last episode of `chain_family` left them
    chain_family: str = ""
    step_sizes: Mapping[str, float] = field(default_factory=dict)  # by family, without a check: how far to move
    answered: tuple[str, ...] = ()  # ids of heartbeats

    @property
    def commits(self) -> Mapping[int, str]:
        return {attempt.number: attempt.commit for attempt in self.known.best.values()}

    def without_attempts(self) -> Self:
        """Return the memory with nothing but its own text of attempts: all records are read again."""
        return replace(self, known=KnownAttempts(), pending=None, unsubmitted=None)

    @property
    def graded_numbers(self) -> set[int | None]:
        return {trial.number for trial in self.trials}

    def for_another_task(self) -> Self:
        """Return the memory without what was learnt of scores under an earlier task."""
        pending = self.pending and replace(self.pending, before=None, expected=None)
        fresh = replace(self, stats={}, redirection=Redirection(), unsubmitted=None, chain={}, chain_family="")
        return replace(fresh, trials=(), pending=pending)

    def edit(self, block: str, text: str, *, add: bool = False) -> Self:
        """Return the memory with one block replaced, or extended by a line."""
        held = self.blocks.get(block, "")
        text = f"{held}\n{text}".strip() if add else text
        return replace(self, blocks={**self.blocks, block: text[-LONGEST_BLOCK:]})

    def add_result(self, trial: Trial) -> Self:
        return replace(self, pending=None, trials=(*self.trials, trial)[-TRIALS:])

    def discard(self, trial: Trial) -> Self:
        """Count a trial that led to no attempt as a failed try of its family, and do not wait for it any longer.

        A redirection to that family ends, for it would lead to the same search again.
        """
        stats = {**self.stats, trial.family: self.stats.get(trial.family, FamilyStats()).add(0.0)}
        redirection = self.redirection
        if redirection.family == trial.family:
            redirection = replace(redirection, family="")
        return replace(self, pending=None, stats=stats, redirection=redirection)

    def mark_answered(self, heartbeat_id: str) -> Self:
        return replace(self, answered=(*self.answered, heartbeat_id)[-ANSWERED:])

    def mark_noted(self, numbers: Collection[int]) -> Self:
        trials = tuple(replace(trial, noted=trial.noted or trial.number in numbers) for trial in self.trials)
        return replace(self, trials=trials)
