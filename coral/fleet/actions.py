"""What the decisions say, in the imperative: plain frozen data that the journal can hold and the shell can only obey.

`who` is an agent's name, `#17` for the process that grades attempt 17, or `%4` for job 4; a launch is named by its
number.
"""

from dataclasses import dataclass

from attempts.record import Attempt
from coral.fleet.agent_state import PendingMessage
from coral.fleet.run_state import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeIn:
    number: int
    agent: str
    commit: str
    repeat: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Tell `coral eval` the attempt's number, and take the submission out of the inbox."""

    agent: str
    submission: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Tell `coral eval` why there will be no attempt, and take the submission out of the inbox."""

    agent: str
    submission: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Take a submission that was accepted before out of the inbox."""

    agent: str
    submission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """Grade a commit as one launch; `probe` grades the seed in its place, to learn whose fault a crash was."""

    number: int
    launch: int
    commit: str
    probe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUpGrade:
    """Remove what a grade that is over filled the disk with; the `whole` of it where it counts for nothing."""

    number: int
    launch: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Write the record, once, and tell `coral eval`: the heartbeats that follow, and those to print at once."""

    attempt: Attempt
    heartbeats: tuple[str, ...] = ()
    inline: tuple[PendingMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Start an agent's program. `told`: results published after this order have not reached the agent yet."""

    agent: str
    launch: int
    session: str | None
    messages: tuple[PendingMessage, ...]
    last_result_seen: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowJob:
    """Write down how a job ended: after how long, with which exit code where somebody saw it, and in words."""

    job: Job
    ended: str
    seconds: float
    code: int | None
    how: str


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
    """See when a file in an agent's clone was last changed: tools edit without a word, too."""

    agent: str
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowHeartbeats:
    """Write down which heartbeats are in force for an owner: an agent, or the fleet."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    sender: str
    id: str
    ok: bool
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Deliver an alert to the operator, at least once; `repeat`: a supervisor that died may have done so."""

    id: str
    text: str
    agent: str = ""
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A line of the run's timeline."""

    type: str
    text: str
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    reason: str


Action = (
    TakeIn
    | Accept
    | Refuse
    | Discard
    | Grade
    | CleanUpGrade
    | Publish
    | Spawn
    | StartJob
    | ShowJob
    | Interrupt
    | Terminate
    | Kill
    | ScanEdits
    | ShowHeartbeats
    | Answer
    | Notify
    | LogEvent
    | Finish
)
