"""The sections of task.yaml: every key with its default, its bounds and the sentence that editors show for it."""

import re
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Strict, Tag, field_validator

from attempts.record import Direction
from coral.config.agents import AgentsSection, SessionSection
from coral.config.section import DAY, Grace, Options, Seconds, Section, Text, Texts


class TaskSection(Section):
    """What the agents work on."""

    name: Text = Field(description="A short name. Runs are kept in a folder named after it.")
    description: Text = Field(description="The objective, told to every agent word for word.")
    tips: str = Field(default="", description="Advice for the agents: what is known to help, what is known to fail.")
    seed: Text = Field(
        default="seed",
        description="Where agents start: a folder or a git repository, relative to the task's folder. Never changed.",
    )
    editable: Texts = Field(
        default=(), description="Globs of the files that agents may change, relative to the seed. Empty: all of them."
    )
    check: str = Field(
        default="",
        description="A public check in the seed, file.py:function. It takes the folder to check and returns a number, "
        "or {score, slack}: slack is a list of numbers, at least 0 where a constraint is met.",
    )

    @field_validator("name", "description")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("is blank")
        return text

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not slug(name):
            raise ValueError("needs at least one letter a-z or digit: it names a folder")
        return name


def slug(name: str) -> str:
    """The name as a folder: lower case, letters, digits and single dashes, at most 60 characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")


def _shape(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "text"


Arguments = Annotated[tuple[str, ...], Strict(False)]
Command = Annotated[Annotated[str, Tag("text")] | Annotated[Arguments, Tag("list")], Discriminator(_shape)]


class GraderSection(Section):
    """How an attempt is scored: exactly one of `entry` and `command`."""

    entry: str = Field(
        default="",
        description="A Python function, file.py:function, relative to the task's folder. It returns a number, "
        "or a score with metrics and feedback.",
    )
    command: Command = Field(
        default="",
        description="Any program, as a line for the shell or as a list of arguments. "
        "It writes its result as JSON to the path in $CORAL_RESULT.",
    )
    timeout: Seconds = Field(default=300.0, description="Seconds that one grade may take before it is killed.")
    args: Options = Field(default_factory=dict, description="Values that the grader receives.")
    private: Texts = Field(
        default=(),
        description="Files and folders of the task that the grader needs and agents must not see: "
        "hidden data, modules that the entry imports.",
    )
    direction: Direction = Field(
        default=Direction.MAXIMIZE, strict=False, description="Whether a larger or a smaller score is better."
    )
    noise: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="How far two grades of the same commit may differ. 0: the grader is deterministic.",
    )
    slots: int = Field(default=1, ge=1, le=1000, description="How many attempts are graded at the same time.")


class HeartbeatEntry(Section):
    """When to step in, and what to say. A built-in of the same name is changed, not doubled."""

    name: Text = Field(description="reflect, consolidate, redirect, checkpoint, or a name of your own.")
    every: int | None = Field(default=None, ge=1, le=1_000_000, description="After this many attempts.")
    stagnant: int | None = Field(
        default=None, ge=1, le=1_000_000, description="After this many attempts in a row that did not improve."
    )
    minutes: float | None = Field(
        default=None, gt=0, le=30 * 1440, allow_inf_nan=False, description="After this many minutes."
    )
    seconds: float | None = Field(
        default=None, ge=1, le=30 * DAY, allow_inf_nan=False, description="After this many seconds."
    )
    scope: Literal["own", "fleet"] | None = Field(
        default=None, description="Whose attempts count: the agent's own (the default), or those of the whole fleet."
    )
    delivery: Literal["interrupt", "inline"] | None = Field(
        default=None,
        description="interrupt (the default): the agent is stopped and resumed with the prompt; "
        "inline: the prompt appears in the output of `coral eval`.",
    )
    prompt: str = Field(default="", description="What it says, as a Jinja template. Empty: the built-in's own prompt.")


class WorkspaceSection(Section):
    """Where they work."""

    runs: Text = Field(default="runs", description="The folder of the runs, relative to the current directory.")
    share: bool = Field(default=True, description="Whether agents share knowledge and see each other's attempts.")
    setup: Texts = Field(default=(), description="Shell commands that are run once in each agent's clone.")


Money = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**15)]


class AllowanceSection(Section):
    """What each agent may use of its own: it ends there, and the run goes on. What is not given does not limit."""

    attempts: Count | None = Field(default=None, description="Graded attempts.")
    money: Money | None = Field(default=None, description="US dollars.")
    tokens: Count | None = Field(default=None, description="Tokens, without those that are read from a cache.")


class BudgetSection(Section):
    """When to stop. What is not given does not limit."""

    attempts: int | None = Field(default=None, ge=1, description="Stop after this many graded attempts.")
    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Stop after this many hours.")
    money: Money | None = Field(default=None, description="Stop when the agents have used this many US dollars.")
    tokens: Count | None = Field(
        default=None, description="Stop when the agents have used this many tokens, without those read from a cache."
    )
    plateau: Count | None = Field(
        default=None, description="Stop after this many attempts in a row that did not improve the fleet's best."
    )
    per_agent: AllowanceSection = Field(
        default_factory=AllowanceSection, description="What each agent may use of its own."
    )
    target: float | None = Field(default=None, allow_inf_nan=False, description="Stop when a score is this good.")


class RunSection(Section):
    """How the supervisor behaves. The defaults suit almost every task."""

    poll_seconds: float = Field(
        default=5.0,
        ge=0.05,
        le=3600,
        allow_inf_nan=False,
        description="The longest time between two looks at the inboxes.",
    )
    watch: bool = Field(
        default=True, description="Whether file notifications wake the supervisor before the poll does."
    )
    interrupt_grace: Grace = Field(default=10.0, description="Seconds from an interrupt (SIGINT) to SIGTERM.")
    terminate_grace: Grace = Field(default=5.0, description="Seconds from SIGTERM to SIGKILL.")
    start_grace: Grace = Field(
        default=60.0,
        description="The longest wait for a launch's first output before a heartbeat interrupts it anyway.",
    )
    max_defer: Grace = Field(
        default=600.0, description="The longest time that a clock heartbeat waits for the end of a turn."
    )
    backoff: Seconds = Field(default=5.0, description="Seconds before an agent that crashed starts again; they double.")
    backoff_max: Seconds = Field(default=600.0, description="The most that this waiting grows to.")
    breaker_crashes: int = Field(default=6, ge=1, description="This many crashes of the fleet ...")
    breaker_window: Seconds = Field(default=60.0, description="... within this many seconds ...")
    breaker_pause: Seconds = Field(default=300.0, description="... pause the whole fleet for this many seconds.")


class TaskFile(Section):
    """A task for a fleet of coding agents."""

    task: TaskSection
    grader: GraderSection
    agents: AgentsSection = Field(default_factory=AgentsSection)
    session: SessionSection = Field(default_factory=SessionSection)
    heartbeats: Annotated[tuple[HeartbeatEntry, ...], Strict(False)] = Field(
        default=(), description="Changes to the built-in heartbeats, and heartbeats of your own."
    )
    workspace: WorkspaceSection = Field(default_factory=WorkspaceSection)
    budget: BudgetSection = Field(default_factory=BudgetSection)
    run: RunSection = Field(default_factory=RunSection)
