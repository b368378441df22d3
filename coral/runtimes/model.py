"""Defines a runtime: it says how to start a program, what a line of its output means, and what its exit means.

A runtime is made with its options, keeps no state of a launch and starts no process: its methods return the same for
the same arguments.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from coral.fleet.events import Ending as Ending  # for the runtimes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One launch of one agent.

    `session`: the conversation to resume; None begins a new one. `money`: the US dollars that the launch may spend;
    None if no budget limits them. Pass it on to a program that has such an option.
    """

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
    """The process of a launch.

    `env` is added to the environment, from which variables whose names begin with one of `drop` were removed before,
    except those that begin with one of `keep`. `session`: the conversation's id, if it is known before the program
    says it.

    `files`: the text of settings files, by their path in the state folder. `links`: symbolic links in the state folder
    to files of the user, such as a login; a link is left out where the user has no such file. `locks`: empty folders in
    the state folder by which the program locks it, and which it leaves there when it is killed. `writes`: folders of
    the user in which the program keeps what cannot be moved; a sealed one may change them. `scratch`: those that it
    writes to whenever it starts, by their path in a home; what a sealed one changes there is dropped.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Path] = field(default_factory=dict)
    locks: tuple[str, ...] = ()
    writes: tuple[Path, ...] = ()
    scratch: Mapping[str, Path] = field(default_factory=dict)


class Counted(StrEnum):
    """The period that a figure of usage covers."""

    STEP = "step"  # this step alone: steps are added up
    LAUNCH = "launch"  # everything since the program started
    SESSION = "session"  # everything since the conversation began, earlier launches included


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and US dollars. `input` leaves out `cached`, the tokens read from a cache. `cost`: None if unknown."""

    counted: Counted = Counted.STEP
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = None


def total(before: Usage | None, usage: Usage) -> Usage:
    """Return the usage of a launch after one more figure: steps are added up, any other figure includes all before
    it."""
    if usage.counted is not Counted.STEP:
        return usage
    one = before or Usage()
    return Usage(
        counted=Counted.LAUNCH,
        input=one.input + usage.input,
        cached=one.cached + usage.cached,
        output=one.output + usage.output,
        cost=one.cost if usage.cost is None else (one.cost or 0.0) + usage.cost,
    )


def highest(before: Usage | None, usage: Usage) -> Usage:
    """Return the usage of a conversation by two sources, each of which may lack some of it: the higher of each
    figure."""
    if before is None or before.counted is not usage.counted:
        return usage
    costs = [figure.cost for figure in (before, usage) if figure.cost is not None]
    return Usage(
        counted=usage.counted,
        input=max(before.input, usage.input),
        cached=max(before.cached, usage.cached),
        output=max(before.output, usage.output),
        cost=max(costs, default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool call that starts, or has ended (`over`), with the same `id`. `text`: the call's input, or its output."""

    id: str
    name: str = ""
    text: str = ""
    over: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The program repeats a request to its model after an error, in `seconds`."""

    attempt: int = 0
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """What one line of output says; usually one thing.

    `early`: the line proves only that the program runs; after an interrupt at this point the prompt may be lost.
    `proves_prompt`: false if the line shows only that the turn has begun, and the prompt may still be lost: the program
    has not saved it yet, or gives up a conversation that is too long.
    `part`: a piece of a reply, which goes on in the next event until one has no part.
    `limit_until`: when the account's limit ends, in seconds since the epoch; `exact` where the program gave that number
    and not a sentence. `ending`: what the program says of its own end; the last event that has one counts.
    `edited`: a file that a tool changed. `compacted`: a summary replaced earlier parts of the conversation.
    `unknown`: the kind of a line that the runtime does not know.
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
    proves_prompt: bool = True
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """The output of a whole launch: whether anything was printed, the last error, the end of its stderr, and what the
    program said of its own end."""

    output: bool = False
    session: str = ""
    error: str = ""
    stderr: str = ""
    limit_until: float | None = None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What an agent would find in a task's files, as `coral validate` shows it. `hint`: what to change, if the agent
    could do nothing with these files."""

    name: str
    text: str
    hint: str = ""


class Runtime(ABC):
    """Describes a program that drives agents. A subclass defines its name, how it is started, what its output means and
    what its exit means; everything else has a default.

    `instruction_file`: the file in the clone where the program looks for its instructions.
    `resumes`: whether it can resume a conversation; if not, every launch is new, and its prompt tells the story so far.
    `uses_model`: whether `agents.model` reaches it. `can_research`: whether its agents can read before they work
    (`agents.research`). A task that sets one of these keys for a runtime without it is refused.
    `path_options`: the options that are paths; a relative one begins at the task's folder.
    `costs_money`: whether its agents use a model that somebody pays for.
    `reports`: the use that it reports: `money` (and tokens), `tokens`, or nothing.
    `reports_interrupted`: whether that includes a step of the model that an interrupt ends.
    `verified_version`: the version that Coral was tried with; empty if Coral only follows its documentation; None if
    there is no one program whose version could be tried.
    """

    instruction_file: str = "AGENTS.md"
    resumes: bool = True
    uses_model: bool = True
    can_research: bool = True
    path_options: tuple[str, ...] = ()
    costs_money: bool = False
    reports: str = ""
    reports_interrupted: bool = True
    verified_version: str | None = None

    def __init__(self, options: Mapping[str, object]) -> None:
        self.options = options

    @property
    @abstractmethod
    def name(self) -> str:
        """The runtime's name in messages and tables."""

    @property
    def account(self) -> str:
        """The account whose usage the agents spend, together with all other agents of it; empty if they spend none."""
        return self.name

    def check(self) -> list[str]:
        """Return what would keep the program from starting on this machine: wrong options, a missing program."""
        return []

    def missing_login(self) -> str:
        """Name the login that the program needs and does not have. Empty if it has one, or if Coral cannot tell."""
        return ""

    @property
    def how_to_log_in(self) -> str:
        """The advice that is printed if the program has no login: the command to type, or the variable to set."""
        return ""

    def inspect(self, seed: Path, editable: tuple[str, ...]) -> Inspection | None:  # noqa: ARG002
        """Return what the agents would find in the task's files; None where only trying can tell."""
        return None

    @abstractmethod
    def command(self, spec: LaunchSpec) -> Command:
        """Return how a launch is started."""

    @abstractmethod
    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        """Return what a line of output says. It never raises an error: a program may print anything."""

    @abstractmethod
    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        """Return what the end of a launch means. `code`: the exit code; negative for a signal, as Popen has it."""

    def usage(self, state: Path, session: str) -> Usage | None:  # noqa: ARG002
        """Return what the conversation has used by the program's own log in its state folder; None if no log says it.
        It is called when a launch has ended: an interrupted turn may be reported nowhere else."""
        return None


def new_session(spec: LaunchSpec) -> str:
    """Return the id of a conversation that begins with this launch: always the same for the same launch."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"coral/{spec.run_root.name}/{spec.agent}/{spec.launch}"))
