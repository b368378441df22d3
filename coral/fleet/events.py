"""What the decisions hear, in the past tense: plain frozen data that the journal can hold.

Every event about a process names the launch it speaks of, so that the echo of a dead one is dropped by comparison.
`who` is an agent's name, `#17` for the process that grades attempt 17, or `%4` for job 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.record import Attempt, Metric, Submission
from coral.fleet import requests
from coral.fleet.agent_state import OutputCounts, Spent

# What is asked for is heard too, and is named like the rest.
SetHeartbeat = requests.SetHeartbeat
RemoveHeartbeat = requests.RemoveHeartbeat
ResetHeartbeats = requests.ResetHeartbeats
Tell = requests.Tell
Stop = requests.Stop
Leave = requests.Leave
Acknowledge = requests.Acknowledge
Alert = requests.Alert
StartJob = requests.StartJob
StopJob = requests.StopJob
Request = requests.Request


class Ending(StrEnum):
    """What the end of an agent's launch means, as its runtime judges it."""

    CLEAN = "clean"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    UNKNOWN_SESSION = "unknown_session"
    LIMIT = "limit"
    TERMINAL = "terminal"
    LOST = "lost"  # nobody watched it end: the supervisor was away


class Outcome(StrEnum):
    """What a grading process came to."""

    SCORED = "scored"
    FAILED = "failed"  # the grader says so: the candidate's fault
    CRASHED = "crashed"  # ended without a usable result: whose fault is not known yet
    LOST = "lost"  # nobody watched it end: to be graded again


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """`clock`: seconds of the run's clock, for every deadline. `wall`: ISO 8601, for people to read."""

    run_time: float
    wall_time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new run: its agents, and its seed as the baseline."""

    run: str
    agents: tuple[str, ...]
    baseline: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A supervisor took the run over. What no longer runs follows as `Exited` and `Graded` with the ending `lost`.
    `away`: how long nobody supervised, in seconds of the time of day; a provider's reset comes nearer by it."""

    away: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    submission: Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """The commit is pinned in the hub. `twin` and `twin_score`: an attempt whose equal tree was graded before."""

    number: int
    commit: str
    tree: str
    parent: str
    duplicate_of: int | None = None
    duplicate_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeFailed:
    """The commit cannot be graded; `ours` says whether that is no fault of the candidate."""

    number: int
    reason: str
    our_fault: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The grading process and everything it started are gone."""

    number: int
    launch: int
    outcome: Outcome
    score: float | None = None
    reason: str = ""
    feedback: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """An alert was delivered."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSeen:
    """An agent printed something, and its session is known. `reply`: what it said in its own words, if anything;
    `place`: where in its output that stands, for a new supervisor reads it all again.
    `count`: what the launch has come to; read and told once more, it counts once."""

    agent: str
    launch: int
    session: str | None = None
    activity: str = ""
    reply: str = ""
    place: int = 0
    count: OutputCounts = field(default_factory=OutputCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsScanned:
    """Somebody looked at the files of an agent's clone. `edited`: how many seconds ago one was changed, the last of
    them; None where none was found."""

    agent: str
    launch: int
    edited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What an agent's program has used by now: since its launch began, or, where `session` names one, since that
    conversation did. Read and told once more, it counts once."""

    agent: str
    launch: int
    figure: Spent
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftProcesses:
    """The process itself has ended, but something it started has not."""

    who: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """An agent's launch is over: its whole tree is gone."""

    agent: str
    launch: int
    ending: Ending
    detail: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnFailed:
    who: str
    launch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """A job's whole tree is gone. `code`: None where it is not known; `last`: the last lines of its output, which
    lies in `output` as seen from the agent's clone; `ago`: how many seconds ago it ended, where nobody looked then."""

    number: int
    code: int | None = None
    last_lines: tuple[str, ...] = ()
    output: str = ""
    ago: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    sender: str
    id: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Something could not be read or done, and was set aside."""

    item: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What only the supervisor writes was not as it had left it, and is again. Without a `source` it is lost."""

    item: str
    found: str
    source: str = "the journal"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChecked:
    """What makes it impossible to write to the run's disk, in words; empty when it is possible again."""

    problem: str


Event = (
    Opened
    | Resumed
    | Submitted
    | TakenIn
    | IntakeFailed
    | Graded
    | Published
    | Notified
    | OutputSeen
    | EditsScanned
    | Used
    | LeftProcesses
    | Exited
    | SpawnFailed
    | JobEnded
    | Requested
    | Broken
    | Restored
    | DiskChecked
)
