"""The sections of task.yaml: every key with its default, its bounds and the sentence that editors show for it."""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Strict, Tag, field_validator, model_validator

from attempts.noise import NoiseSetting
from attempts.record import Direction
from coral.config.alerts import AlertsSection
from coral.config.budget import BudgetSection
from coral.config.cluster import (
    MOST_SLOTS,
    AgentsRaySection,
    PlaceSection,
    RaySection,
    Slots,
    SlurmSection,
    check_executor,
)
from coral.config.section import (
    DAY,
    AttemptsOrSpan,
    Finite,
    Gigabytes,
    Grace,
    Minutes,
    NoiseValue,
    Options,
    Price,
    Seconds,
    Section,
    Text,
    Texts,
    key,
)
from coral.config.session import SessionSection
from workspace.layout import slug

MAX_AGENTS = 1000


class TaskSection(Section):
    """What the agents work on."""

    name: Text = key("A short name. Runs are kept in a folder named after it.")
    description: Text = key("The objective, told to every agent word for word.")
    tips: str = key("Advice for the agents: what is known to help, what is known to fail.", "")
    seed: Text = key(
        "Where agents start: a folder or a git repository, relative to the task's folder. Never changed.", "seed"
    )
    editable: Texts = key("Globs of the files that agents may change, relative to the seed. Empty: all of them.", ())
    check: str = key(
        "A public check in the seed, file.py:function. It takes the folder to check and returns a number, or {score, "
        "slack}: slack is a list of numbers, at least 0 where a constraint is met. `coral check` runs it.",
        "",
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


def _list_or_text(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "text"


Arguments = Annotated[tuple[str, ...], Strict(False)]
Command = Annotated[Annotated[str, Tag("text")] | Annotated[Arguments, Tag("list")], Discriminator(_list_or_text)]


AUTO = "auto"

GRADER_KINDS = ("entry", "command")  # the keys of `grader` of which exactly one is set; see coral.grading.kinds


class GraderSection(Section):
    """How an attempt is scored: exactly one of `entry` and `command`."""

    entry: str = key(
        "A Python function, file.py:function, relative to the task's folder. It returns a number, or a score with "
        "metrics and feedback. Or package.module:function, which is installed; or a class, see docs/import.md.",
        "",
    )
    command: Command = key(
        "Any program, as a line for the shell or as a list of arguments. It writes its result as JSON to the path in "
        "$CORAL_RESULT.",
        "",
    )
    timeout: Seconds = key("Seconds that one grade may take before it is killed.", 300.0)
    args: Options = key("Values that the grader receives.", dict)
    private: Texts = key(
        "Files and folders of the task that the grader needs and agents must not see: hidden data, modules that the "
        "entry imports.",
        (),
    )
    setup: Texts = key(
        "Shell commands that install what the grader imports. They run once, when a run is made, in a copy of the "
        "task's folder without its seed, and with a virtual environment of the grader's own.",
        (),
    )
    pass_env: Texts = key(
        "Names of environment variables that the grader gets besides the usual ones: PATH, HOME, the language, those "
        "of Python, of libraries and of graphics cards. A candidate may read them.",
        (),
    )
    network: bool = key("Whether a sealed grader has the network.", False)
    readable: Texts = key("Files and folders of your home or /tmp that a sealed grader may read, such as ~/data.", ())
    writable: Texts = key("Files and folders outside its own that a sealed grader may change, such as ~/.cache.", ())
    threads: int = key("How many processes and threads one grade may have. With more, it fails.", 5000, ge=1)
    memory: Gigabytes | None = key(
        "Gigabytes of memory that all processes of one grade may use. With more, it fails. Empty: 80 % of the machine.",
        None,
    )
    disk: Gigabytes | None = key(
        "Gigabytes that the folders of one grade may have, its checkout and its output among them. With more, it "
        "fails. Empty: half of what was free when it began.",
        None,
    )
    seed_may_fail: bool = key(
        "Whether a run begins although the grader fails the seed, because agents write the solution from nothing.",
        False,
    )
    direction: Direction = key("Whether a larger or a smaller score is better.", Direction.MAXIMIZE, strict=False)
    noise: NoiseValue = key(
        "How noisy scores are, as a standard deviation: auto (estimated from what was measured twice), a number in "
        "units of the score, or a share of it such as 2%. 0: the grader is deterministic.",
        "auto",
    )
    confirm: Finite = key(
        "How many grades by which the supervisor measures attempts or the seed again there may be for each attempt. "
        "One pair and a minute of them are always free. 0: none, and no lead is ever proven on a noisy task.",
        0.2,
        ge=0,
        le=10,
    )
    slots: Slots = key(
        "How many attempts are graded at once. Empty: 1, or as many as a Ray cluster has room for.", None
    )
    executor: Literal["local", "ray", "slurm"] = key(
        "Where grades run: on this machine, on a Ray cluster, or as jobs of Slurm, see docs/clusters.md.", "local"
    )
    ray: RaySection = key("The cluster, with executor: ray.", RaySection)
    slurm: SlurmSection = key("The jobs, with executor: slurm.", SlurmSection)

    @model_validator(mode="after")
    def _can_run_on_a_cluster(self) -> Self:
        check_executor(self.executor, self.ray, self.slots, has_setup=bool(self.setup))
        return self

    @model_validator(mode="after")
    def _can_estimate_noise(self) -> Self:
        if self.noise == AUTO and not self.confirm:
            raise ValueError("has confirm: 0, so that noise: auto can never be estimated: give noise a number")
        return self

    @property
    def is_remote(self) -> bool:
        """Whether grades run on a cluster."""
        return self.executor != "local"

    @property
    def most_slots(self) -> int:
        """How many grades may be in flight, if the cluster has room for them."""
        return self.slots or (MOST_SLOTS if self.executor == "ray" else 1)

    @property
    def noise_setting(self) -> NoiseSetting:
        if not isinstance(self.noise, str):
            return NoiseSetting(deviation=self.noise)
        if self.noise == AUTO:
            return NoiseSetting(deviation=None)
        return NoiseSetting(deviation=float(self.noise.removesuffix("%")) / 100, relative=True)


class HoldoutSection(Section):
    """A second way to score, which agents never see: the supervisor alone runs it, on the seed, on each new best and on
    what leads at the end. What is left out is as in `grader`; a section without any key is no hold-out."""

    entry: str = key("A Python function, file.py:function, as grader.entry. Empty: the grader itself.", "")
    command: Command = key("Any program, as grader.command. Empty: the grader itself.", "")
    timeout: Seconds | None = key("Seconds that one grade on the hold-out may take. Empty: as in grader.", None)
    args: Options = key("Values that it receives, added to those of grader.args: another split of the data.", dict)
    private: Texts = key("Files and folders of the task that it alone needs, besides those of the grader.", ())

    @property
    def is_given(self) -> bool:
        return bool(self.entry or self.command or self.args)


class PricesSection(Section):
    """What a model costs, in US dollars per million tokens. A cost that the program reports counts instead."""

    input: Price = key("What the model reads.")
    output: Price = key("What the model writes.")
    cached: Price | None = key("What it reads from a cache. Empty: as input.", None)


class Assignment(Section):
    """Agents that are driven alike."""

    count: int = key("How many agents work on the task.", 1, ge=1, le=MAX_AGENTS)
    runtime: Text = key("The program that drives them: a name of docs/runtimes.md, or module.path:object.", "native")
    model: str = key("The model the program uses. Empty: the program's own default.", "")
    options: Options = key("Options of the runtime itself.", dict)
    role: str = key("The role of these agents in the fleet, which is added to their instructions.", "")
    role_file: str = key("The role as a text file, relative to the task's folder; it is read when a run starts.", "")
    mounts: dict[Text, Text] = key(
        "Files and folders of this machine that the agents find in their workspace, by their path there. A path here "
        "is relative to the task's folder. Agents never submit them.",
        dict,
    )
    research: Minutes | None = key(
        "Minutes at the start in which the agents read, think and write notes, unless they end their turn before; "
        "nothing that they submit then is graded.",
        None,
    )
    account: str = key(
        "Whose usage the agents spend: at its limit all agents of the account pause until it is reset. Empty: that of "
        "the program's own login; agents that ask no model spend none.",
        "",
    )
    prices: PricesSection | None = key(
        "What the model costs, if the program reports tokens only. Empty: the prices of the package genai-prices, if "
        "that is installed.",
        None,
    )
    place: PlaceSection | None = key(
        "What the agents need of a node of the Ray cluster, on which they then run, see docs/clusters.md.", None
    )


class TtlSection(Section):
    """How long an agent may be silent while its program is in one phase. What it computes counts as a sign of life, and
    while it waits for a grade or for a job of its own its silence has not begun."""

    starting: Seconds | None = key("Seconds until its model has answered first. Empty: stall.", None)
    thinking: Seconds | None = key("Seconds in which its model answers. Empty: stall.", None)
    tool: Seconds | None = key("Seconds in which a tool is at work. Empty: one and a half times stall.", None)
    compacting: Seconds | None = key("Seconds in which its conversation is compacted. Empty: stall.", None)


class AgentsSection(Assignment):
    """The agents that work on the task."""

    assignments: Annotated[tuple[Assignment, ...], Strict(False)] = key(
        "A mixed fleet: a list of assignments, each with a runtime, a count, a model ... of its own. None of those "
        "keys may then be given in `agents` itself.",
        (),
    )
    executor: Literal["local", "ray"] = key(
        "Where agents run that have no place of their own: on this machine, or on any node of a Ray cluster with a "
        "free processor, see docs/clusters.md.",
        "local",
    )
    ray: AgentsRaySection = key("The cluster.", AgentsRaySection)
    on_limit: Literal["park", "stop"] = key(
        "At a usage limit: park the agents until the provider's reset, or stop the run.", "park"
    )
    stagger: Grace = key("Seconds between the starts of two agents.", 0.05)
    stall: Seconds = key("Seconds of silence after which an agent is interrupted.", 1200.0)
    ttl: TtlSection = key("The same for what its program does meanwhile.", TtlSection)
    no_progress: Annotated[Finite, Field(ge=0, le=30 * DAY)] | None = key(
        "Seconds of work without an edited file or a submission after which an agent is nudged, then interrupted, "
        "given a fresh session, and parked. 0 or null: never.",
        7200.0,
    )
    outage: Seconds = key(
        "Seconds in which an agent's program only repeats requests to its model, after which it is ended and waits as "
        "after a crash.",
        900.0,
    )
    retries: int = key(
        "The same after this many retries in a row, for programs that report them.", 30, ge=1, le=1_000_000
    )

    @model_validator(mode="after")
    def _can_run_on_a_cluster(self) -> Self:
        if self.are_remote and not self.ray.address:
            raise ValueError("run on a cluster and have no ray.address: say the cluster's head, host:port")
        return self

    @property
    def are_remote(self) -> bool:
        """Whether agents run on a cluster, or some of them."""
        return self.executor != "local" or any(part.place is not None for part in (self, *self.assignments))

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


class HeartbeatEntry(Section):
    """When to step in, and what to say. A built-in of the same name is changed, not doubled."""

    name: Text = key("reflect, consolidate, redirect, checkpoint, or a name of your own.")
    enabled: bool | None = key("False takes away a built-in heartbeat that is not protected.", None)
    every: AttemptsOrSpan | None = key(
        "After this many attempts; or in natural time (30m, 2h), where 0m is never.", None
    )
    stagnant: int | None = key("After this many attempts in a row that did not improve.", None, ge=1, le=1_000_000)
    minutes: Finite | None = key("After this many minutes; 0 is never.", None, ge=0, le=30 * 1440)
    seconds: Finite | None = key("After this many seconds; 0 is never.", None, ge=0, le=30 * DAY)
    scope: Literal["own", "fleet"] | None = key(
        "Whose attempts count: the agent's own (the default), or those of the whole fleet.", None
    )
    delivery: Literal["interrupt", "inline"] | None = key(
        "interrupt (the default): the agent is stopped and resumed with the prompt; inline: the prompt appears in the "
        "output of `coral eval`.",
        None,
    )
    prompt: str = key("What it says, as a Jinja template. Empty: the built-in's own prompt.", "")


class WorkspaceSection(Section):
    """Where the agents work."""

    runs: Text = key("The folder of the runs, relative to the current directory.", "runs")
    share: bool = key("Whether agents share knowledge and see each other's attempts.", True)
    setup: Texts = key("Shell commands that are run once in each agent's clone.", ())
    seal: Literal["best", "require", "none", "bubblewrap", "landlock", "user"] = key(
        "Whether agents run in a sandbox that hides the hidden data, other agents and other processes. best: if this "
        "machine can; require: do not start if it cannot; bubblewrap, landlock, user: do not start without this "
        "one; none: no.",
        "best",
    )
    writable: Texts = key("Files and folders outside the run that sealed agents may change, such as ~/.cache.", ())


class RunSection(Section):
    """How the supervisor behaves. The defaults suit almost every task."""

    poll_seconds: Finite = key("The longest time between two reads of the inboxes, in seconds.", 5.0, ge=0.05, le=3600)
    watch: bool = key("Whether file notifications wake the supervisor before the poll does.", True)
    interrupt_grace: Grace = key("Seconds from an interrupt (SIGINT) to SIGTERM.", 10.0)
    terminate_grace: Grace = key("Seconds from SIGTERM to SIGKILL.", 5.0)
    start_grace: Grace = key(
        "The longest wait until a launch shows that it has its messages, before another interrupts it.", 60.0
    )
    max_defer: Grace = key("The longest time that a clock heartbeat waits for the end of a turn.", 600.0)
    backoff: Seconds = key("Seconds before an agent that crashed starts again; they double.", 5.0)
    backoff_max: Seconds = key("The most that this waiting grows to.", 600.0)
    breaker_crashes: int = key("This many crashes of one account's agents, for each four of them ...", 6, ge=1)
    breaker_window: Seconds = key("... within this many seconds ...", 60.0)
    breaker_pause: Seconds = key("... pause the starts of that account's agents for this many seconds.", 300.0)


class TaskFile(Section):
    """A task for a fleet of coding agents."""

    task: TaskSection
    grader: GraderSection
    holdout: HoldoutSection = Field(default_factory=HoldoutSection)
    agents: AgentsSection = Field(default_factory=AgentsSection)
    session: SessionSection = Field(default_factory=SessionSection)
    heartbeats: Annotated[tuple[HeartbeatEntry, ...], Strict(False)] = key(
        "Changes to the built-in heartbeats, and heartbeats of your own.", ()
    )
    workspace: WorkspaceSection = Field(default_factory=WorkspaceSection)
    budget: BudgetSection = Field(default_factory=BudgetSection)
    alerts: AlertsSection = Field(default_factory=AlertsSection)
    run: RunSection = Field(default_factory=RunSection)
