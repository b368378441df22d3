"""The fleet as it stands: one record per agent with one phase, one record per attempt that is not yet published.

Records are frozen; a decision returns new ones, and what changed between two fleets is what the journal holds.
Every time in here is in seconds of the run's clock, which stands still while nobody supervises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.progress import Progress
from attempts.record import Attempt, Submission
from coral.fleet.agent_state import Agent, PendingMessage, Phase, Spent
from coral.fleet.process_key import of_grade, of_job
from heartbeats.heartbeat import Heartbeat

FLEET = "fleet"
TITLE = 80  # characters of a command that name a job without a name


class Step(StrEnum):
    """Where an attempt is on its way from a submission to a published record."""

    TAKING = "taking"  # the commit is on its way into the hub; deadline: it is tried again
    QUEUED = "queued"  # deadline: not before that, after a grade that could not be begun
    GRADING = "grading"  # deadline: the grader's timeout
    TERMINATED = "terminated"
    KILLED = "killed"
    SETTLED = "settled"  # counted; the record is on its way to the attempts folder


OCCUPYING = frozenset({Step.GRADING, Step.TERMINATED, Step.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAttempt:
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
    failed_intakes: int = 0
    failed_starts: int = 0
    lost_grades: int = 0
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
    stopped_by_owner: bool = False
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
    unassigned_messages: tuple[PendingMessage, ...] = ()
    message_count: int = 0
    alert_count: int = 0
    undelivered_alerts: tuple[Alert, ...] = ()
    crashes: tuple[float, ...] = ()
    starts_paused_until: float = 0.0
    voids_in_a_row: int = 0
    queue_paused_until: float = 0.0
    limits: Mapping[str, Limit] = field(default_factory=dict)
    job_count: int = 0
    requests: tuple[str, ...] = ()
    disk_problem: str = ""
    disk_problem_since: float = 0.0
    spent: Spent = field(default_factory=Spent)
    stopping: str = ""
    detached_reason: str = ""
    finished: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything a decision depends on, besides what just happened, the time and the rules."""

    run: Run = field(default_factory=Run)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    pending: Mapping[int, PendingAttempt] = field(default_factory=dict)
    heartbeats: Mapping[str, tuple[Heartbeat, ...]] = field(default_factory=dict)
    jobs: Mapping[int, Job] = field(default_factory=dict)
