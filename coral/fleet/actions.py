"""The actions that decisions order: plain frozen data, which the journal records and the supervisor performs.

`who` is an agent's name, `#17` for the process that grades attempt 17, or `%4` for job 4; a launch is named by its
number.
"""

from dataclasses import dataclass

from attempts.record import Attempt, Kind
from coral.fleet.agent_state import JobEnd, PendingMessage
from coral.fleet.events import Ending
from coral.fleet.members import Member, WantedMember
from coral.fleet.reasons import Reason, RunEnd
from coral.fleet.run_state import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeIn:
    """Bring an attempt's commit from its author's clone into the hub. Doing so again does no harm."""

    number: int
    agent: str
    commit: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Tell `coral eval` the attempt's number, and remove the submission from the inbox."""

    agent: str
    submission: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Tell `coral eval` why there will be no attempt, and remove the submission from the inbox."""

    agent: str
    submission: str
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Remove a submission that was accepted before from the inbox."""

    agent: str
    submission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOut:
    """Check a commit out, to grade it. `kind`: what the grader is told; `baseline` where the seed is graded in the
    candidate's place, to learn whose fault a crash was."""

    number: int
    launch: int
    commit: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class StartGrader:
    """Start the grader on the commit that `CheckOut` checked out for this launch."""

    number: int
    launch: int
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUpGrade:
    """Remove the files of a grade that has ended, to free the disk. `whole`: also its result, which does not count."""

    number: int
    launch: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Write the attempt's record, once, and tell `coral eval` the names of the `heartbeats` that follow by an
    interrupt, and the messages that it prints itself (`inline`). `launch`: that of the author which they interrupt."""

    attempt: Attempt
    launch: int = 0
    heartbeats: tuple[str, ...] = ()
    inline: tuple[PendingMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Start an agent's program. Results that were published after `last_result_seen` have not reached the agent."""

    agent: str
    launch: int
    session: str | None
    messages: tuple[PendingMessage, ...]
    last_result_seen: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareAgent:
    """Check whether an agent can be driven so, and write what it needs into its workspace; of a new one, make it.
    `base`: what the wanted differs from, where that is not what is in force."""

    agent: str
    wanted: WantedMember
    is_new: bool
    base: Member | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMember:
    """Drive an agent so from its next launch on. `aside`: the files that its program keeps make room, as those of the
    program that it had up to this launch; None where it keeps its program."""

    agent: str
    member: Member
    aside: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowJob:
    """Write a file that shows how a job ended, and when."""

    job: Job
    end: JobEnd
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    who: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    who: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    who: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEdits:
    """Find when a file in an agent's clone was last changed: tools also edit without saying so in the output."""

    agent: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowHeartbeats:
    """Write the file that shows which heartbeats are in force for an owner: an agent, or the fleet."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowHoldouts:
    """Write the scores on the hold-out to a file for the operator. `graded`: the grade that is over, whose checkout can
    be removed."""

    graded: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRecords:
    """Write again those of these records that are not as they were published, and tell the index."""

    altered: tuple[int, ...]
    misindexed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteAgain:
    """Try once more to write what could not be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer a request, and remove it."""

    sender: str
    id: str
    ok: bool
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Deliver an alert to the operator, at least once. `repeat`: a supervisor that died may have delivered it."""

    id: str
    text: str
    agent: str = ""
    reason: Reason | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMessage:
    """What a line of the timeline says of a heartbeat: its name, the id of its message (empty: it was not sent), the
    attempt that fired it, and since when it was due, on the run's clock."""

    name: str
    id: str = ""
    attempt: int | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """Write a line of the run's timeline: `text`, then the text of `reason`, if there is one. `ending`: how the launch
    ended. `messages`: what was received, withdrawn or skipped."""

    type: str
    text: str = ""
    agent: str = ""
    launch: int = 0
    ending: Ending | None = None
    reason: Reason | None = None
    messages: tuple[LoggedMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """End the supervisor: nothing of the run is at work any more."""

    end: RunEnd


Action = (
    TakeIn
    | Accept
    | Refuse
    | Discard
    | CheckOut
    | StartGrader
    | CleanUpGrade
    | Publish
    | Spawn
    | PrepareAgent
    | SetMember
    | StartJob
    | ShowJob
    | Interrupt
    | Terminate
    | Kill
    | ScanEdits
    | ShowHeartbeats
    | ShowHoldouts
    | RestoreRecords
    | WriteAgain
    | Answer
    | Notify
    | LogEvent
    | Finish
)
