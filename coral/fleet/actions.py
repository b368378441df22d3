"""The actions that a decision orders: plain frozen data, which the journal records and the supervisor performs.

`who` names a process: an agent's name for its launch, `#17` for the grader of attempt 17, `%4` for job 4. `launch` is
the number of that launch.
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
    """Check a commit out, to grade it. `kind`: what the grader is told. It is `baseline` where the seed is graded in
    the candidate's place, to learn whether the candidate or the grader caused a crash."""

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
    """Remove the files of a grade that has ended, to free the disk. `whole`: remove its result too, because it does not
    count."""

    number: int
    launch: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Write the attempt's record, once, and answer the author's `coral eval`. `heartbeats`: the names of the heartbeats
    for which the author's launch number `launch` is interrupted now; `inline`: the messages that `coral eval`
    prints."""

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
    """Check whether an agent can be driven as `wanted`, and write what its next launch needs into its workspace, which
    is made if the agent `is_new`. `base`: the member that `wanted` changes, where that is not the member in force,
    because an earlier move still waits."""

    agent: str
    wanted: WantedMember
    is_new: bool
    base: Member | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMember:
    """Drive an agent as `member` says from its next launch on. `aside`: the agent changes its runtime, and this was its
    last launch under the old one, whose files are moved aside under this number; None where it keeps its runtime."""

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
    """Write the scores on the hold-out to a file for the operator. `graded`: the pending number of a grade that has
    ended, whose checkout can be removed."""

    graded: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRecords:
    """Write the `altered` records again as they were published, and enter the `misindexed` ones into the index
    again."""

    altered: tuple[int, ...]
    misindexed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteAgain:
    """Try again every action whose write failed."""


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
    """Deliver an alert to the operator, at least once. `repeat`: an earlier supervisor died and may have delivered it
    already."""

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
    ended. `messages`: the messages that were received, withdrawn or skipped."""

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
