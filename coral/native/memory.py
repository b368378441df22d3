"""What the agent remembers between launches: blocks of text that it edits, and the figures its brain works with.

A memory is a value: every change makes a new one, so that whatever is saved, at whatever moment, is whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from coral.native.known_attempts import Board
from coral.native.search.bandit import Credit

BLOCK_NAMES = ("persona", "task", "plan", "learned")
LONGEST_BLOCK = 4000  # characters; an edit beyond keeps the end
TRIALS = 60
ANSWERED = 200

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt as its author sees it: what was done, what was expected, what came of it.

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
    noted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """An episode in progress: the best candidate so far, which an interrupt must not lose."""

    trial: Trial
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """What a heartbeat has decided for the next episodes: where to start, what to do first and what not."""

    start: int | None = None
    avoid: str = ""
    family: str = ""
    episodes: int = 0  # for how many more it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    session: str
    launches: int = 0
    episodes: int = 0
    blocks: Mapping[str, str] = field(default_factory=dict)
    credit: Mapping[str, Credit] = field(default_factory=dict)
    board: Board = field(default_factory=Board)
    work: Work | None = None
    pending: Trial | None = None  # handed in, or about to be; its result has not been seen
    trials: tuple[Trial, ...] = ()
    steer: Steer = field(default_factory=Steer)
    chain: Texts = field(default_factory=dict)  # where the moves stand
    chain_family: str = ""
    steps: Mapping[str, float] = field(default_factory=dict)  # per family, without a check: how far to move
    skills: tuple[str, ...] = ()  # loaded, as `name: what it said`
    answered: tuple[str, ...] = ()  # ids of heartbeats
    consolidated: int = 0  # attempts of the fleet at the last synthesis of ours

    def edit(self, block: str, text: str, *, add: bool = False) -> Memory:
        """The memory with one block replaced, or extended by a line."""
        held = self.blocks.get(block, "")
        text = f"{held}\n{text}".strip() if add else text
        return replace(self, blocks={**self.blocks, block: text[-LONGEST_BLOCK:]})

    def settle(self, trial: Trial) -> Memory:
        """Take in a trial whose result is known."""
        return replace(self, pending=None, trials=(*self.trials, trial)[-TRIALS:])

    def answer(self, identity: str) -> Memory:
        return replace(self, answered=(*self.answered, identity)[-ANSWERED:])

    def noted(self, numbers: Collection[int]) -> Memory:
        """There is a note on these attempts."""
        trials = tuple(replace(trial, noted=trial.noted or trial.number in numbers) for trial in self.trials)
        return replace(self, trials=trials)

    def give_up(self, trial: Trial) -> Memory:
        """The trial was not accepted: it costs its family credit, and is not waited for."""
        credit = {**self.credit, trial.family: self.credit.get(trial.family, Credit()).after(0.0)}
        return replace(self, pending=None, credit=credit)
