"""What a runtime is: it says how to start a program, what a line that it prints means, and what its end means.

It is made with its options, keeps no state of a launch, and starts nothing: the same questions get the same answers.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from coral.fleet.events import Ending

__all__ = [
    "Bookkeeper",
    "Command",
    "Counted",
    "Ending",
    "LaunchSpec",
    "LaunchSummary",
    "OutputEvent",
    "Retry",
    "Runtime",
    "Teller",
    "Tool",
    "Tried",
    "Usage",
    "new_session",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One launch of one agent. `session` is the conversation to go on with, None for a new one. `money`: how many US
    dollars it may use, as far as the budget says; for programs that can be told so."""

    agent: str
    launch: int
    session: str | None
    clone: Path
    state: Path
    run_root: Path
    model: str = ""
    editable: tuple[str, ...] = ()
    check: str = ""
    direction: str = "maximize"
    seed: int = 0
    money: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start. `env` is added to the environment; `session` is the conversation's id if that is known already.

    `drop`: variables whose names begin so are taken out of the environment before, but for those that begin as `keep`.

    `files`: settings that the program finds in its state folder, by their path there. `links`: what leads from there
    to a file of the user's, such as a login; where the user has no such file, there is no link.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Path] = field(default_factory=dict)


class Counted(StrEnum):
    """Since when a figure of usage counts."""

    STEP = "step"  # what this step took: to be added
    LAUNCH = "launch"  # everything since the program started
    SESSION = "session"  # everything since the conversation began, in earlier launches too


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money. `input` is without what was read from a cache; `cost` is in US dollars where it is told."""

    counted: Counted = Counted.STEP
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool starts, or has ended (`over`); `id` joins the two. `text`: what it was asked, or what it answered."""

    id: str
    name: str = ""
    text: str = ""
    over: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The program asks its model again after an error."""

    attempt: int = 0
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """What one line of output says; usually one thing.

    `early`: it proves no more than that the program runs; were it interrupted now, its prompt could be lost.
    `part`: a piece of a reply that goes on in the next sign, until one that has none.
    `limit_until`: seconds since the epoch, when the account's limit ends; `exact` where the program gave that figure,
    and not a sentence. `ending`: what the program itself says of its end; the last such word counts.
    `edited`: a file that a tool changed. `compacted`: earlier parts of the conversation were replaced by a summary.
    `unknown`: the kind of a line that nobody knows.
    """

    session: str = ""
    phase: str = ""
    message: str = ""
    progress: float | None = None
    reply: str = ""
    part: str = ""
    limit_until: float | None = None
    exact: bool = False
    ended: bool = False
    ending: Ending | None = None
    error: str = ""
    tool: Tool | None = None
    edited: str = ""
    usage: Usage | None = None
    retry: Retry | None = None
    compacted: bool = False
    early: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """What was read in one launch: whether anything was printed, the last error, the end of its stderr, and what the
    program itself said of its end."""

    output: bool = False
    session: str = ""
    error: str = ""
    stderr: str = ""
    limit_until: float | None = None
    ending: Ending | None = None


class Runtime(Protocol):
    """`instruction_file`: where in the clone the program looks for its instructions.

    `resumes`: whether it can go on with a conversation; if not, every launch is new and is handed the story so far.

    `uses_model`: whether `agents.model` reaches the program; where it does not, a task that sets it is refused.
    """

    @property
    def name(self) -> str: ...

    @property
    def instruction_file(self) -> str: ...

    @property
    def resumes(self) -> bool: ...

    @property
    def uses_model(self) -> bool: ...

    def check(self) -> list[str]:
        """What would keep it from starting on this machine: wrong options, a missing program."""
        ...

    def command(self, job: LaunchSpec) -> Command: ...

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        """What a line says; never raises, whatever the program prints."""
        ...

    def judge(self, code: int, said: LaunchSummary) -> Ending:
        """`code` is Popen's: negative for a signal."""
        ...


@runtime_checkable
class Bookkeeper(Protocol):
    """A runtime that can also read the books which its program keeps. Apart, because most programs keep none, and a
    runtime of somebody's own needs to say nothing of it."""

    def books(self, state: Path, session: str) -> Usage | None:
        """What the conversation has used by the books in the state folder; None where they do not say. Asked once its
        launch has ended: what an interrupted turn has used may be told nowhere else."""
        ...


@runtime_checkable
class Teller(Protocol):
    """A runtime that says which budgets can be kept with it. Apart, because a runtime of somebody's own may say
    nothing of what it uses."""

    @property
    def tells(self) -> str:
        """What is known of its use: `money` (and tokens), `tokens`, or nothing."""
        ...


@runtime_checkable
class Tried(Protocol):
    """A runtime for a program of others, whose manners are known from trying it, or only from what is written of it."""

    @property
    def tried(self) -> str:
        """The version that Coral was tried with; none where it never was."""
        ...


def new_session(job: LaunchSpec) -> str:
    """The id of a conversation that begins with this launch. Never random: whoever asks again gets it again."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"coral/{job.run_root.name}/{job.agent}/{job.launch}"))
