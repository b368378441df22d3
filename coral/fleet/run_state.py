"""The state of a run: its attempts that are not published yet, its jobs, its account limits, and the whole fleet.

Records are frozen; a decision returns new ones, and the journal holds the fields that differ between two fleets. Every
time is in seconds of the run's clock, which stands still while nobody supervises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.failures import FailureGroup
from attempts.progress import Progress
from attempts.record import Attempt, Submission
from attempts.standing import Confirmation, Half, Measured, Scored, Standing
from coral.fleet.agent_state import Agent, PendingMessage, Phase, Spent
from coral.fleet.members import Member, Move, WantedMember
from coral.fleet.process_key import of_grade, of_job
from coral.fleet.reasons import Reason, RunEnd
from coral.fleet.upkeep_events import Shortage
from heartbeats.heartbeat import Heartbeat

FLEET = "fleet"
TITLE = 80  # characters of its command by which a job without a name is called


class AttemptStep(StrEnum):
    """Where an attempt is on its way from a submission to a published record."""

    TAKING = "taking"  # the hub fetches the commit; at the deadline it tries again
    QUEUED = "queued"  # waits for a slot, after a failed start of its grader not before the deadline
    GRADING = "grading"  # the grader runs; the deadline is its timeout
    TERMINATED = "terminated"  # SIGTERM was sent to the grader; at the deadline SIGKILL follows
    KILLED = "killed"  # SIGKILL was sent; at the deadline it is sent again
    SETTLED = "settled"  # it has its verdict and counts; its record is being written


OCCUPYING = frozenset({AttemptStep.GRADING, AttemptStep.TERMINATED, AttemptStep.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAttempt:
    """An attempt between its submission and its publication."""

    number: int
    submission: Submission
    step: AttemptStep = AttemptStep.TAKING
    deadline: float | None = None
    waited_until: float = 0.0  # until then its author waits in `coral eval`
    answers: int = 0  # the depth of its author's chain of heartbeats at the submission; 0: it is new work
    launch: int = 0  # the number of its current or last grader process
    failed_intakes: int = 0  # fetches of its commit that failed by our fault
    failed_starts: int = 0  # grader processes that could not be started
    lost_grades: int = 0  # grades that ended while the disk could not be written to
    commit: str = ""
    tree: str = ""
    parent: str = ""
    seal: str = ""  # the level at which its author is sealed
    built_on: Scored | None = None  # the attempt that its commit was built on
    duplicate_of: int | None = None  # the attempt with the same tree, which it measures once more
    confirmation: Confirmation | None = None  # of a confirmation: the attempt that is measured again
    holdout_of: int | None = None  # of a grade on the hold-out: the attempt that is graded
    epoch: int = 1  # of a grade of the supervisor's own: in a later epoch it is not needed
    suspicion: str = ""  # why its grade failed; the seed is graded next, to learn whether the grader is at fault
    grader_started: bool = False  # else the commit is still being checked out
    stopped: bool = False
    cancelled: bool = False  # by the operator
    exceeded: str = ""  # the limit that its grade went over and was ended for: the reason why the attempt fails
    kills: int = 0
    attempt: Attempt | None = None
    heartbeats: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The name under which its grading process is launched."""
        return of_grade(self.number)

    @property
    def is_submitted(self) -> bool:
        """Whether an agent submitted it; else it is the supervisor's own."""
        return bool(self.submission.id)

    @property
    def is_holdout(self) -> bool:
        return self.holdout_of is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutScore:
    """What an attempt scored on the hold-out, or the reason why it has no score there."""

    number: int
    score: float | None = None
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command that an agent runs beside its launches. `phase` and `deadline` mean what they mean for an agent;
    `reason` says why the job is being ended."""

    number: int
    agent: str
    argv: tuple[str, ...]
    what: str = ""
    folder: str = ""  # where it runs, within the agent's clone
    began: str = ""
    began_at: float = 0.0
    phase: Phase = Phase.RUNNING
    deadline: float = 0.0
    reason: Reason | None = None
    stopped_by_owner: bool = False  # its agent ends it, and need not be told
    kills: int = 0
    away: float = 0.0  # seconds for which it ran while nobody supervised

    @property
    def who(self) -> str:
        """The name under which its process is launched."""
        return of_job(self.number)

    def seconds(self, clock: float) -> float:
        """Return for how long the job has run at this time of the run's clock."""
        return clock - self.began_at + self.away

    @property
    def title(self) -> str:
        return self.what or " ".join(self.argv)[:TITLE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An account that has reached its usage limit, or is closed. One agent, the probe, tries it before the others."""

    until: float | None = None  # when a probe starts; once it works, when it has shown that there is usage again
    tries: int = 0  # probes that met the limit again
    probe: str = ""  # the agent that tries
    failed: str = ""  # the last probe, where it failed for another reason than the limit
    closed: Reason | None = None  # why the account will never have usage again


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Holds back the starts of one account's agents. Many crashes in a short time have one cause, which each agent
    would meet again: then none of them starts for a while. `crashes`: the times of the latest ones."""

    crashes: tuple[float, ...] = ()
    paused_until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of an agent to the operator that is not answered yet. `asked_at`: on the run's clock. `alert`: the
    number of the alert that delivers it."""

    number: int
    alert: int
    agent: str
    text: str
    asked_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimit:
    """A budget as the operator has set it. It is in force only while the task's own limit is still `base`, as it was
    then. A whole number stays one in the journal: `int | float` is decoded as it is."""

    limit: int | float | None
    base: int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A message to the operator that is not known to be delivered: `text`, then the text of `reason`, if any."""

    id: str
    text: str
    agent: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """How often the fleet's best was replaced in this epoch, and the time, attempts and money used when that happened
    last."""

    best: int | None = None
    epoch: int = 1
    count: int = 0
    at: float = 0.0
    attempts: int = 0
    money: float = 0.0  # US dollars
    money_before: float = 0.0  # spent before the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The state that belongs to the fleet as a whole."""

    id: str = ""
    opened: bool = False
    next_number: int = 1
    order: int = 0  # of the last publication
    epoch: int = 1  # the number of the present epoch, from 1
    progress: Progress = field(default_factory=Progress)
    best: int | None = None  # the attempt that is proven to be the best; 0 is the seed
    half: Half | None = None  # of a pair that is being measured
    failed: int = 0  # attempts that failed
    # Failed attempts of this epoch, by the kind of their reason.
    failures: Mapping[str, FailureGroup] = field(default_factory=dict)
    earlier_evals: int = 0  # attempts of earlier epochs
    alerted_failures: tuple[str, ...] = ()  # the kinds that the operator was alerted of
    confirmations: int = 0
    confirm_seconds: float = 0.0  # for which confirmations were graded
    grade_seconds: float = 0.0  # how long the last grade took
    targets: Mapping[str, float] = field(default_factory=dict)
    unassigned_messages: tuple[PendingMessage, ...] = ()  # the fleet's heartbeats, for whoever submits next
    message_count: int = 0
    alert_count: int = 0
    alerts_acknowledged: int = 0  # the operator has seen all alerts up to this number
    alerts_settled: tuple[int, ...] = ()  # later alerts whose cause is over, as that of a question by its answer
    undelivered_alerts: tuple[Alert, ...] = ()
    question_count: int = 0
    questions: tuple[Question, ...] = ()  # those that are open
    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # by account; agents without one share the name ""
    voids_in_a_row: int = 0
    queue_paused_until: float = 0.0
    concluder: str = ""  # the agent that was asked for the last synthesis, as the budget nears its end
    is_grading_held: bool = False  # by the operator: no grade begins
    limits: Mapping[str, Limit] = field(default_factory=dict)
    job_count: int = 0  # jobs that were started
    requests: tuple[str, ...] = ()  # `sender/id` of the latest that were carried out, to recognise repeats
    disk_problem: str = ""  # why nothing can be written to the disk, while that is so
    disk_problem_since: float = 0.0
    cluster_problem: str = ""  # why the cluster cannot be used for grades, while that is so
    cluster_capacity: int = 0  # how many grades fit on the cluster's nodes when nothing else runs there
    excluded_nodes: Mapping[str, str] = field(default_factory=dict)  # of the cluster: address and reason
    agents_cluster_problem: str = ""  # why the cluster that agents run on cannot be used, while that is so
    write_again_at: float | None = None  # when to try again what could not be written
    short: tuple[Shortage, ...] = ()  # what the machine has too little of
    slept_at: float | None = None  # when it was found that the machine or the supervisor had stood still
    clock_set_at: float | None = None  # when it was found that the time of day had been set
    spent: Spent = field(default_factory=Spent)
    budgets: Mapping[str, SetLimit] = field(default_factory=dict)  # by key: those that the operator has set
    preparing: Mapping[str, WantedMember] = field(default_factory=dict)  # agents that are being added or moved
    moves: Mapping[str, Move] = field(default_factory=dict)  # by agent: in force once its launch is over
    members: Mapping[str, Member] = field(default_factory=dict)  # the agents that were added or moved
    draining: RunEnd | None = None  # why the run stops once what was submitted is graded; no agent starts
    gains: Gains = field(default_factory=Gains)
    waiting_since: float | None = None  # since when attempts wait for a slot, and none was published
    troubles: Mapping[str, float] = field(default_factory=dict)  # what is wrong, and since when on the run's clock
    stopping: RunEnd | None = None  # why the run stops
    detached_reason: RunEnd | None = None  # why the supervisor left all at work; until a resume nothing is decided
    is_hurried: bool = False  # whether somebody stopped a run that was at its end: it waits for no grade
    finished: RunEnd | None = None  # why the run has stopped; everything is gone

    @property
    def is_ending(self) -> bool:
        """Whether the run stops, now or after the grades: its agents and their jobs end."""
        return self.stopping is not None or self.draining is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything a decision depends on besides the events, the time and the rules."""

    run: Run = field(default_factory=Run)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    pending: Mapping[int, PendingAttempt] = field(default_factory=dict)
    heartbeats: Mapping[str, tuple[Heartbeat, ...]] = field(default_factory=dict)
    jobs: Mapping[int, Job] = field(default_factory=dict)
    measured: Mapping[int, Measured] = field(default_factory=dict)  # the attempts that may be or become the best
    holdouts: Mapping[int, HoldoutScore] = field(default_factory=dict)

    @property
    def standing(self) -> Standing:
        return Standing(best=self.run.best, half=self.run.half, measured=self.measured)
