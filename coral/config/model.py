"""The sections of task.yaml: every key with its default, its bounds and the sentence that editors show for it."""

import re
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Strict,
    Tag,
    field_validator,
    model_validator,
)

from attempts.record import Direction

DAY = 86400.0
MAX_AGENTS = 1000
Seconds = Annotated[float, Field(gt=0, le=30 * DAY, allow_inf_nan=False)]
Grace = Annotated[float, Field(ge=0, le=DAY, allow_inf_nan=False)]
Minutes = Annotated[float, Field(gt=0, le=1440, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Money = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**15)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]  # YAML gives lists; a tuple cannot change afterwards
Options = dict[str, JsonValue]


class Section(BaseModel):
    """A section is strict and frozen, and refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
    def _is_not_blank(cls, text: str) -> str:
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


def _list_or_text(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "text"


Arguments = Annotated[tuple[str, ...], Strict(False)]
Command = Annotated[Annotated[str, Tag("text")] | Annotated[Arguments, Tag("list")], Discriminator(_list_or_text)]


GRADER_KINDS = ("entry", "command")  # the keys of `grader` of which exactly one is set; see coral.grading.kinds


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


class PricesSection(Section):
    """What a model costs, in US dollars per million tokens. A cost that the program reports counts instead."""

    input: Price = Field(description="What the model reads.")
    output: Price = Field(description="What the model writes.")
    cached: Price | None = Field(default=None, description="What it reads from a cache. Empty: as input.")


class Assignment(Section):
    """Agents that are driven alike."""

    count: int = Field(default=1, ge=1, le=MAX_AGENTS, description="How many agents work on the task.")
    runtime: Text = Field(
        default="native", description="The program that drives them: a name of docs/runtimes.md, or module.path:object."
    )
    model: str = Field(default="", description="The model the program uses. Empty: the program's own default.")
    options: Options = Field(default_factory=dict, description="Options of the runtime itself.")
    role: str = Field(
        default="", description="The role of these agents in the fleet, which is added to their instructions."
    )
    role_file: str = Field(
        default="", description="The role as a text file, relative to the task's folder; it is read when a run starts."
    )
    mounts: dict[Text, Text] = Field(
        default_factory=dict,
        description="Files and folders of this machine that the agents find in their workspace, by their path there. "
        "A path here is relative to the task's folder. Agents never submit them.",
    )
    research: Minutes | None = Field(
        default=None,
        description="Minutes at the start in which the agents read, think and write notes, unless they end their turn "
        "before; nothing that they submit then is graded.",
    )
    account: str = Field(
        default="",
        description="Whose usage the agents spend: at its limit all agents of the account pause until it is reset. "
        "Empty: that of the program's own login; agents that ask no model spend none.",
    )
    prices: PricesSection | None = Field(
        default=None,
        description="What the model costs, if the program reports tokens only. Empty: the prices of the package "
        "genai-prices, if that is installed.",
    )


class AgentsSection(Assignment):
    """The agents that work on the task."""

    assignments: Annotated[tuple[Assignment, ...], Strict(False)] = Field(
        default=(),
        description="A mixed fleet: a list of assignments, each with a runtime, a count, a model ... of its own. "
        "None of those keys may then be given in `agents` itself.",
    )
    on_limit: Literal["park", "stop"] = Field(
        default="park", description="At a usage limit: park the agents until the provider's reset, or stop the run."
    )
    stagger: Grace = Field(default=0.05, description="Seconds between the starts of two agents.")
    stall: Seconds = Field(default=1200.0, description="Seconds of silence after which an agent is interrupted.")
    no_progress: Annotated[float, Field(ge=0, le=30 * DAY, allow_inf_nan=False)] | None = Field(
        default=7200.0,
        description="Seconds of work without an edited file or a submission after which an agent is nudged, then "
        "interrupted, given a fresh session, and parked. 0 or null: never.",
    )
    outage: Seconds = Field(
        default=900.0,
        description="Seconds in which an agent's program only repeats requests to its model, after which it is "
        "ended and waits as after a crash.",
    )
    retries: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="The same after this many retries in a row, for programs that report them.",
    )

    @model_validator(mode="after")
    def _refuse_keys_given_twice(self) -> Self:
        if self.assignments:
            fields = Assignment.model_fields.items()
            twice = [
                name for name, field in fields if getattr(self, name) != field.get_default(call_default_factory=True)
            ]
            if twice:
                raise ValueError(f"has both assignments and {', '.join(twice)}: say those in each assignment")
            if sum(assignment.count for assignment in self.assignments) > MAX_AGENTS:
                raise ValueError(f"has more than {MAX_AGENTS} agents in its assignments")
        return self


class FreshAfterSection(Section):
    """When an agent's next launch begins a new conversation. What is not given does not count."""

    compactions: Count | None = Field(default=None, description="After the conversation was compacted this many times.")
    tokens: Count | None = Field(
        default=None, description="After the conversation used this many tokens, excluding cache reads."
    )


class SessionSection(Section):
    """How long agents keep one conversation."""

    fresh_after: FreshAfterSection = Field(
        default_factory=FreshAfterSection,
        description="When the next launch begins a new conversation, whose prompt tells the story so far. "
        "No agent is interrupted for it.",
    )


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
    """Where the agents work."""

    runs: Text = Field(default="runs", description="The folder of the runs, relative to the current directory.")
    share: bool = Field(default=True, description="Whether agents share knowledge and see each other's attempts.")
    setup: Texts = Field(default=(), description="Shell commands that are run once in each agent's clone.")


class AllowanceSection(Section):
    """A budget for each agent. One that has used it up ends, and the run goes on. What is not given does not limit."""

    attempts: Count | None = Field(default=None, description="Graded attempts.")
    money: Money | None = Field(default=None, description="US dollars.")
    tokens: Count | None = Field(default=None, description="Tokens, excluding cache reads.")


class BudgetSection(Section):
    """When to stop. What is not given does not limit."""

    attempts: int | None = Field(default=None, ge=1, description="Stop after this many graded attempts.")
    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Stop after this many hours.")
    money: Money | None = Field(default=None, description="Stop when the agents have used this many US dollars.")
    tokens: Count | None = Field(
        default=None, description="Stop when the agents have used this many tokens, excluding cache reads."
    )
    plateau: Count | None = Field(
        default=None, description="Stop after this many attempts in a row that did not improve the fleet's best."
    )
    per_agent: AllowanceSection = Field(default_factory=AllowanceSection, description="A budget for each agent.")
    target: float | None = Field(default=None, allow_inf_nan=False, description="Stop when a score is this good.")


class RunSection(Section):
    """How the supervisor behaves. The defaults suit almost every task."""

    poll_seconds: float = Field(
        default=5.0,
        ge=0.05,
        le=3600,
        allow_inf_nan=False,
        description="The longest time between two reads of the inboxes, in seconds.",
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
