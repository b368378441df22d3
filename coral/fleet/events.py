"""The events that decisions react to, and the requests among them: plain frozen data, which the journal records.

Every event about a process names the launch that it is about, so that a late event of an earlier launch is dropped.
`who` is an agent's name, `#17` for the process that grades attempt 17, or `%4` for job 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.record import OPEN, Attempt, Metric, Submission
from attempts.standing import Scored
from coral.fleet.agent_state import Meter, Order, OutputCounts, Spent
from coral.fleet.members import Member
from coral.fleet.request_kinds import (
    Acknowledge as Acknowledge,
    AcknowledgeAlerts as AcknowledgeAlerts,
    AddAgent as AddAgent,
    AnswerQuestion as AnswerQuestion,
    Ask as Ask,
    CancelGrade as CancelGrade,
    HoldGrading as HoldGrading,
    Leave as Leave,
    MoveAgent as MoveAgent,
    Pause as Pause,
    RaiseAlert as RaiseAlert,
    ReleaseGrading as ReleaseGrading,
    RemoveHeartbeat as RemoveHeartbeat,
    Request as Request,
    ResetHeartbeats as ResetHeartbeats,
    Restart as Restart,
    Retire as Retire,
    RunJob as RunJob,
    SetBudget as SetBudget,
    SetHeartbeat as SetHeartbeat,
    Steering as Steering,
    Stop as Stop,
    StopJob as StopJob,
    Tell as Tell,
    Unpause as Unpause,
)
from coral.fleet.run_state import SetLimit
from coral.fleet.upkeep_events import (
    AgentsClusterChecked as AgentsClusterChecked,
    Broken as Broken,
    ClockSet as ClockSet,
    ClusterChecked as ClusterChecked,
    ClusterMeasured as ClusterMeasured,
    DiskChecked as DiskChecked,
    HeartbeatsAltered as HeartbeatsAltered,
    MachineChecked as MachineChecked,
    NodesExcluded as NodesExcluded,
    RecordsDamaged as RecordsDamaged,
    Restored as Restored,
    Shortage as Shortage,
    Slept as Slept,
    WatchFailed as WatchFailed,
    WriteFailed as WriteFailed,
)


class Ending(StrEnum):
    """What the end of an agent's launch means, as its runtime judges it."""

    CLEAN = "clean"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    UNKNOWN_SESSION = "unknown_session"
    LIMIT = "limit"
    TERMINAL = "terminal"
    DENIED = "denied"  # the provider refused; a proxy or an outage may do so too, so it is terminal only if repeated
    LOST = "lost"  # nobody watched it end: the supervisor was away


class Outcome(StrEnum):
    """The outcome of a grader process."""

    SCORED = "scored"
    FAILED = "failed"  # the grader says so: the candidate's fault
    CRASHED = "crashed"  # ended without a usable result: whose fault is not known yet
    VOID = "void"  # the grader says that it is not the candidate's fault, and code of the candidate cannot have said so
    LOST = "lost"  # nobody watched it end: to be graded again


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The time of a decision."""

    run_time: float  # seconds of the run's clock, for every deadline
    wall_time: str  # ISO 8601, for people to read


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new run has been set up: its agents, and its graded seed as the baseline."""

    run: str
    agents: tuple[str, ...]
    baseline: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A supervisor took the run over. For each process that no longer runs an `Exited` or `Graded` event follows, as
    lost. `away`: the seconds of wall-clock time for which nobody supervised; resets of usage limits come nearer by
    it."""

    away: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedSubmission:
    """A submission that was accepted under this number."""

    number: int
    submission: Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """A resume found the journal damaged, and took the fleet as it was before the damage. The other fields are what
    other files still tell of the lost time.

    So that no number is given twice and no budget is used twice: the `attempts` that were published, the submissions
    that were `accepted`, the last `launches` of agents and the highest figures. So that the operator's decisions stay:
    `orders` to agents, all `budgets` that were set, and whether grading `is_held`. `lines`: how many lines of the
    journal were lost; `kept`: where the damaged file is.
    """

    file: str
    line: int
    why: str
    lines: int
    kept: str
    back_to: str = ""  # the time of day of the last decision that was kept
    attempts: tuple[Attempt, ...] = ()
    accepted: tuple[NumberedSubmission, ...] = ()
    launches: Mapping[str, int] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, Spent] = field(default_factory=dict)  # by agent; of the whole run under "fleet"
    meters: Mapping[str, Meter] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)  # the agents that were added or moved, as last driven
    counts: Mapping[str, int] = field(default_factory=dict)  # by the field of the run: `next_number`, `alert_count` ...
    orders: Mapping[str, Order] = field(default_factory=dict)  # by agent
    budgets: Mapping[str, SetLimit] | None = None  # by key; None where none was changed
    is_held: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanged:
    """A resume took in a task that had changed. `baseline`: the seed's score under the new task, if scores may have
    another meaning now; the decision gives it its number and order. `heartbeats`, `holdout`: whether these parts
    changed."""

    baseline: Attempt | None = None
    heartbeats: bool = False
    holdout: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    submission: Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """The commit is pinned in the hub. `duplicate`: the first attempt with the same tree that has a score, and
    `channel` that of its grade; `built_on`: the attempt whose commit is the parent of this one, if there is one.
    `seal`: the level at which its author is sealed."""

    number: int
    commit: str
    tree: str
    parent: str
    seal: str = ""
    duplicate: Scored | None = None
    channel: str = OPEN
    built_on: Scored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeFailed:
    """The commit could not be brought into the hub, by our fault or by its author's."""

    number: int
    reason: str
    our_fault: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    """The commit of a grade is checked out: its grader can be started."""

    number: int
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The grader process and everything that it started have ended."""

    number: int
    launch: int
    outcome: Outcome
    score: float | None = None
    reason: str = ""
    feedback: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    seconds: float = 0.0
    channel: str = OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """An alert was delivered."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSeen:
    """An agent printed something. A new supervisor reads the output from its beginning again, so `place` and `count`
    refer to the whole output: what is seen twice counts once. `has_prompt`: whether the output shows that the
    conversation has the prompt."""

    agent: str
    launch: int
    has_prompt: bool
    session: str | None = None
    activity: str = ""
    reply: str = ""  # what the agent said in its own words
    place: int = 0  # where in the output the reply ends
    count: OutputCounts = field(default_factory=OutputCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsScanned:
    """The files of an agent's clone were scanned. `edited`: how many seconds ago the last change was; None where none
    was found."""

    agent: str
    launch: int
    edited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSeen:
    """The programs of a silent agent use the processor, or one of their pulses has written a beat."""

    agent: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """An agent's program reported how much it has used so far: since the begin of this launch, or of the conversation
    `session` if one is named. A new supervisor may report the figure again; it counts once."""

    agent: str
    launch: int
    figure: Spent
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOverLimit:
    """A running grade uses more of the machine than it may. `reason` is why its attempt fails."""

    number: int
    launch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftProcesses:
    """A process has ended, but processes that it started still run."""

    who: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """An agent's launch is over: its process and everything that it started have ended. `began`: the launch printed a
    line that its runtime knows, so that its conversation may hold the prompt already. `until`: in how many seconds a
    usage limit ends, where the provider named that."""

    agent: str
    launch: int
    ending: Ending
    detail: str = ""
    until: float | None = None
    began: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnFailed:
    """The program of an agent, a grade or a job could not be started."""

    who: str
    launch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """A job's process and everything that it started have ended."""

    number: int
    code: int | None = None  # None where nobody saw the exit
    last_lines: tuple[str, ...] = ()  # of its output
    output: str = ""  # the file with all of its output, as a path from the agent's clone
    ago: float = 0.0  # how many seconds ago it ended, where nobody supervised then


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPrepared:
    """An agent's workspace is ready, and it can be driven as `member` says. `was`: how it has been driven so far; None
    for a new agent."""

    agent: str
    member: Member
    was: Member | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNotPrepared:
    agent: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    sender: str
    id: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUnreadable:
    """A file in a request inbox cannot be read as a request."""

    sender: str
    id: str
    reason: str


UpkeepEvent = (
    RequestUnreadable
    | Notified
    | Broken
    | Restored
    | RecordsDamaged
    | HeartbeatsAltered
    | WriteFailed
    | WatchFailed
    | MachineChecked
    | Slept
    | ClockSet
    | DiskChecked
    | ClusterMeasured
    | NodesExcluded
    | AgentsClusterChecked
)
Event = (
    UpkeepEvent
    | Opened
    | Resumed
    | RolledBack
    | TaskChanged
    | Submitted
    | TakenIn
    | IntakeFailed
    | CheckedOut
    | Graded
    | Published
    | OutputSeen
    | EditsScanned
    | LifeSeen
    | Used
    | GradeOverLimit
    | LeftProcesses
    | Exited
    | SpawnFailed
    | JobEnded
    | AgentPrepared
    | AgentNotPrepared
    | Requested
    | ClusterChecked
)
