"""The agent's memory between launches: blocks of text that it edits, and the figures that its brain works with.

A memory is a value: every change makes a new one, so that whatever is saved, at whatever moment, is whole.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from attempts.noise import median
from attempts.record import Attempt, Direction, Kind
from coral.native.prompt import HeartbeatSection

BLOCK_NAMES = ("plan", "learned")
LONGEST_BLOCK = 4000  # characters; an edit beyond keeps the end
TRIALS = 60
UNUSABLE = 200  # attempts that are remembered as unusable
ANSWERED = 200
RECENT = 60  # attempts kept in full
MOST_AWAITED = 200  # numbers still awaited; older ones are given up
LONGEST_REASON = 300  # characters

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempts:
    """What is known of the fleet's attempts in the present epoch. `best`: by agent, "" being the seed. `awaited`:
    numbers below `next` whose records were not published yet. `scores`: of attempts that were measured again, by
    number; the score of such an attempt here is their median."""

    next: int = 0
    awaited: tuple[int, ...] = ()
    best: Mapping[str, Attempt] = field(default_factory=dict)
    recent: tuple[Attempt, ...] = ()
    scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    epoch: int = 1

    def unread(self, numbers: Iterable[int]) -> list[int]:
        """Return those of the published numbers that have not been added."""
        awaited = set(self.awaited)
        return [number for number in numbers if number >= self.next or number in awaited]

    def add(self, records: Iterable[Attempt], direction: Direction) -> Self:
        """Return a copy with more records; the order in which they come does not matter."""
        records = sorted(records, key=lambda record: record.number)
        epoch = max([self.epoch, *(record.epoch for record in records)])
        held = {attempt.number: attempt for attempt in self.all} if epoch == self.epoch else {}
        scores = dict(self.scores) if held else {}
        for record in records:
            if record.epoch == epoch and record.of in held and record.score is not None:
                first = held[record.of]
                again = scores[str(record.of)] = (*scores.get(str(record.of), (first.score or 0.0,)), record.score)
                held[record.of] = replace(first, score=median(again))
            if record.epoch == epoch and record.kind is not Kind.CONFIRM:
                held[record.number] = replace(record, feedback="", metrics={}, reason=record.reason[:LONGEST_REASON])
        best: dict[str, Attempt] = {}
        for attempt in held.values():
            if attempt.score is not None:
                best[attempt.agent] = min(best.get(attempt.agent, attempt), attempt, key=rank(direction))
        recent = tuple(held[number] for number in sorted(held) if held[number].agent)[-RECENT:]
        added, highest = {record.number for record in records}, max([self.next, *(r.number + 1 for r in records)])
        gaps = [number for number in (*self.awaited, *range(self.next, highest)) if number not in added]
        kept = {str(attempt.number) for attempt in (*recent, *best.values())}
        return type(self)(
            next=highest,
            awaited=tuple(gaps[-MOST_AWAITED:]),
            best=best,
            recent=recent,
            scores={number: again for number, again in scores.items() if number in kept},
            epoch=epoch,
        )

    @property
    def all(self) -> list[Attempt]:
        """Every attempt that is remembered, the seed among them, by number."""
        held = {attempt.number: attempt for attempt in (*self.best.values(), *self.recent)}
        return [held[number] for number in sorted(held)]

    def find(self, number: int | None) -> Attempt | None:
        """Return the attempt of this number; None if it is not remembered."""
        return next((attempt for attempt in self.all if attempt.number == number), None)

    @property
    def seed(self) -> int | None:
        """The number of the seed's attempt; None if that is not known."""
        found = self.best.get("")
        return found.number if found is not None else None

    def leader(self, direction: Direction) -> Attempt | None:
        """Return the attempt with the best score of all; of equals, the earliest."""
        return min(self.best.values(), key=rank(direction), default=None)

    def best_of_others(self, agent: str, direction: Direction) -> list[Attempt]:
        """Return the best attempts of the other agents, best first."""
        others = (attempt for name, attempt in self.best.items() if name not in (agent, ""))
        return sorted(others, key=rank(direction))


def rank(direction: Direction) -> Callable[["Attempt | Trial"], tuple[float, int]]:
    """Return a key that sorts attempts with a score, best first; of those that differ by rounding, the earliest."""
    sign = -1.0 if direction is Direction.MAXIMIZE else 1.0
    return lambda attempt: (sign * float(f"{attempt.score or 0.0:.10g}"), attempt.number or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt as its author sees it: what was done, what was expected, and the result.

    `start` is the attempt it was made from (None: unknown), `before` its score, `expected` what the check said (None
    without a check). What follows `number` is empty until it is graded, and for good if it led to no attempt.
    """

    title: str
    family: str
    start: int | None = None
    before: float | None = None
    expected: float | None = None
    step: float = 0.0  # without a check: how far numbers were moved, in scales
    change: str = ""  # what differs from the start, in words
    number: int | None = None
    score: float | None = None
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What an episode of search found: the files' texts, and the trial that they become when they are submitted."""

    trial: Trial
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """The decision of a redirect for the episodes until a number: where to start, and which family to try."""

    start: int | None = None
    family: str = ""
    until: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    session: str
    episodes: int = 0
    blocks: Mapping[str, str] = field(default_factory=dict)
    known: KnownAttempts = field(default_factory=KnownAttempts)
    unsubmitted: Candidate | None = None  # the best of the last episode, which an interrupt must not lose
    pending: Trial | None = None  # submitted, or about to be; its result has not been seen
    trials: tuple[Trial, ...] = ()  # with their results
    reflected: int = -1  # the last own attempt that was looked at
    redirection: Redirection = field(default_factory=Redirection)
    unusable: tuple[int, ...] = ()  # attempts whose files cannot be searched
    waiting: tuple[HeartbeatSection, ...] = ()  # heartbeats that have come and are not answered yet
    answered: tuple[str, ...] = ()  # ids of heartbeats

    @property
    def graded(self) -> dict[int, Trial]:
        """The trials that led to an attempt, by its number, in the order of their results."""
        return {trial.number: trial for trial in self.trials if trial.number is not None}

    @property
    def redirected(self) -> Redirection:
        """The redirection as long as it holds, then an empty one."""
        return self.redirection if self.episodes < self.redirection.until else Redirection()

    @property
    def commits(self) -> Mapping[int, str]:
        return {attempt.number: attempt.commit for attempt in self.known.best.values()}

    def without_attempts(self) -> Self:
        """Return the memory without what it knows of attempts and their scores: its texts, and the heartbeats."""
        kept = {name: getattr(self, name) for name in ("session", "episodes", "blocks", "waiting", "answered")}
        return type(self)(**kept)

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
        redirection = self.redirection
        if redirection.family == trial.family:
            redirection = replace(redirection, family="")
        return replace(self.add_result(trial), redirection=redirection)

    def mark_unusable(self, number: int) -> Self:
        return replace(self, unusable=(*self.unusable, number)[-UNUSABLE:])

    def receive(self, sections: Iterable[HeartbeatSection]) -> Self:
        """Return the memory with these heartbeats, but none that waits or was answered: they are sent again after a
        death."""
        known = {*self.answered, *(section.id for section in self.waiting)}
        return replace(self, waiting=(*self.waiting, *(section for section in sections if section.id not in known)))

    def mark_answered(self, heartbeat_id: str) -> Self:
        waiting = tuple(section for section in self.waiting if section.id != heartbeat_id)
        return replace(self, waiting=waiting, answered=(*self.answered, heartbeat_id)[-ANSWERED:])
