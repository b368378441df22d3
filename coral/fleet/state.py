"""The fleet as it stands: one record per agent with one phase, one record per attempt that is not yet published.

Records are frozen; a decision returns new ones, and what changed between two fleets is what the journal holds.
Every time in here is in seconds of the run's clock, which stands still while nobody supervises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.progress import Progress
from attempts.record import Attempt, Submission
from coral.fleet.wear import Stall, Talk
from coral.fleet.who import of_grade, of_job
from heartbeats.heartbeat import Heartbeat, Scope

FLEET = "fleet"
TITLE = 80  # characters of a command that name a job without a name


class Phase(StrEnum):
    """What an agent is doing, and with it what its deadline means."""

    WAITING = "waiting"  # no process; starts at the deadline (none: not before the run is resumed)
    RUNNING = "running"  # deadline: it has been silent for too long
    INTERRUPTED = "interrupted"  # SIGINT was sent; deadline: SIGTERM
    TERMINATED = "terminated"  # SIGTERM was sent; deadline: SIGKILL
    KILLED = "killed"  # SIGKILL was sent; deadline: SIGKILL again
    PARKED = "parked"  # its account has no usage left, or nothing has helped it; starts at the deadline
    RETIRED = "retired"  # starts no more


class Step(StrEnum):
    """Where an attempt is on its way from a submission to a published record."""

    TAKING = "taking"  # the commit is on its way into the hub; deadline: it is tried again
    QUEUED = "queued"  # deadline: not before that, after a grade that could not be begun
    GRADING = "grading"  # deadline: the grader's timeout
    TERMINATED = "terminated"
    KILLED = "killed"
    SETTLED = "settled"  # counted; the record is on its way to the attempts folder


LIVE = frozenset({Phase.RUNNING, Phase.INTERRUPTED, Phase.TERMINATED, Phase.KILLED})
OCCUPYING = frozenset({Step.GRADING, Step.TERMINATED, Step.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """What is to be told of a job that has ended: how it did, and the last lines that it printed."""

    number: int
    said: str
    last: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A heartbeat, or a message from the operator, that an agent has yet to receive.

    From `due` on it justifies an interrupt; before that it only goes along with a launch that happens anyway.
    `stagnant` marks what an improvement makes pointless; `defers` marks what waits for a tool to end; `printed` what
    `coral eval` was given to print, and may acknowledge. `attempt` is the one that crossed; the clock has none. `ends`:
    the jobs that it tells of; as many as `earlier` ended before them.
    """

    id: str
    name: str
    since: float
    due: float
    prompt: str = ""
    attempt: int | None = None
    scope: Scope = Scope.OWN
    stagnant: bool = False
    defers: bool = False
    inline: bool = False
    printed: bool = False
    ends: tuple[JobEnd, ...] = ()
    earlier: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was used of models: tokens, `input` without what was read from a cache, and US dollars. `money` is None
    where nobody knows what it costs."""

    input: int = 0
    cached: int = 0
    output: int = 0
    money: float | None = None

    @property
    def tokens(self) -> int:
        """What counts as used. Reading from a cache costs little, and is most of what an agent reads."""
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """The highest figure that a launch has told. It counts from the beginning of `session`, or, where that is empty,
    of the launch."""

    launch: int = 0
    session: str = ""
    figure: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What a launch has printed so often by now: edits of files, summaries in place of its conversation, retries of
    its model, and how many of those there had been when the model last answered."""

    edits: int = 0
    compactions: int = 0
    retries: int = 0
    answered: int = 0

    @property
    def in_a_row(self) -> int:
        """Retries since the last answer."""
        return self.retries - self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A named worker. `carried` are the ids that the current launch was handed and has not acknowledged; `asked` the
    heartbeats whose answer is awaited; `told` the last publication whose result reached the agent; `recent` the ids
    of its latest submissions; `replied` how far its launch's output was searched for answers; `crashes` and `idle`
    count launches in a row that failed, or ended without a try, and `unanswered` checkpoints in a row; until `research`
    it only reads and thinks; `retrying` is since when its launch has done nothing but ask its model again."""

    name: str
    phase: Phase = Phase.WAITING
    deadline: float | None = 0.0
    why: str = "start"
    launch: int = 0
    session: str | None = None
    heard: bool = False
    heard_at: float = 0.0
    busy: str = ""
    spawned_at: float = 0.0
    owed: tuple[Owed, ...] = ()
    carried: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    told: int = 0
    carried_told: int = 0
    targets: Mapping[str, float] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    recent: tuple[str, ...] = ()
    submitted: int = 0
    submitted_at_spawn: int = 0
    crashes: int = 0
    idle: int = 0
    unanswered: int = 0
    kills: int = 0
    replied: int = 0
    landed: float = 0.0
    research: float | None = None
    meter: Meter = field(default_factory=Meter)
    spent: Spent = field(default_factory=Spent)
    count: Count = field(default_factory=Count)
    stall: Stall = field(default_factory=Stall)
    talk: Talk = field(default_factory=Talk)
    retrying: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """An attempt between its submission and its publication. `launch` counts the tries of grading it, `tries` those of
    taking it in that failed by no fault of its, `unstarted` those of grading it that did not come to begin, `lost`
    those that ended while the disk could not be written to; `waited_until` is how long its `coral eval` stays; with a
    `suspicion` the seed is graded next, to learn whose fault it was."""

    number: int
    submission: Submission
    step: Step = Step.TAKING
    deadline: float | None = None
    waited_until: float = 0.0
    launch: int = 0
    tries: int = 0
    unstarted: int = 0
    lost: int = 0
    commit: str = ""
    tree: str = ""
    parent: str = ""
    suspicion: str = ""
    stopped: bool = False
    timed_out: bool = False
    kills: int = 0
    attempt: Attempt | None = None
    heartbeats: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The name under which its grading process is launched."""
        return of_grade(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an agent runs beside its launches. `folder`: where, within its clone; `phase` and `deadline` are as those of
    an agent that begins, runs or is being ended, `why` says why it is; `told`: its agent ends it itself; `away`: the
    seconds for which nobody supervised it."""

    number: int
    agent: str
    argv: tuple[str, ...]
    what: str = ""
    folder: str = ""
    began: str = ""
    began_at: float = 0.0
    phase: Phase = Phase.RUNNING
    deadline: float = 0.0
    why: str = ""
    told: bool = False
    kills: int = 0
    away: float = 0.0

    @property
    def who(self) -> str:
        """The name under which its process is launched."""
        return of_job(self.number)

    def seconds(self, clock: float) -> float:
        """For how long it has run at this time of the run's clock, which stands still while nobody supervises."""
        return clock - self.began_at + self.away

    @property
    def title(self) -> str:
        return self.what or " ".join(self.argv)[:TITLE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An account that has nothing to spend. `until`: when somebody tries (none while it is not known yet), or, once
    `probe` has begun to try, when that has gone well. `tries`: how often it went badly. `failed`: who tried last, and
    could not for a reason of its own. `closed`: why it will never have anything again."""

    until: float | None = None
    tries: int = 0
    probe: str = ""
    failed: str = ""
    closed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A word for the operator, until it is said."""

    id: str
    text: str
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What belongs to the fleet as a whole. `lack`: why nothing can be written to the disk, while that is so, from
    `lack_at` on. `left`: why its supervisor went and left the agents at work; until the run is resumed nothing begins
    or falls due. `jobs`: how many were started."""

    id: str = ""
    opened: bool = False
    next_number: int = 1
    order: int = 0
    progress: Progress = field(default_factory=Progress)
    targets: Mapping[str, float] = field(default_factory=dict)
    orphans: tuple[Owed, ...] = ()
    owed_count: int = 0
    alerts: int = 0
    unsaid: tuple[Alert, ...] = ()
    crashes: tuple[float, ...] = ()
    held_until: float = 0.0
    voids: int = 0
    queue_held_until: float = 0.0
    limits: Mapping[str, Limit] = field(default_factory=dict)
    jobs: int = 0
    requests: tuple[str, ...] = ()
    lack: str = ""
    lack_at: float = 0.0
    spent: Spent = field(default_factory=Spent)
    stopping: str = ""
    left: str = ""
    finished: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything a decision depends on, besides what just happened, the time and the rules."""

    run: Run = field(default_factory=Run)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    pending: Mapping[int, Pending] = field(default_factory=dict)
    heartbeats: Mapping[str, tuple[Heartbeat, ...]] = field(default_factory=dict)
    jobs: Mapping[int, Job] = field(default_factory=dict)
