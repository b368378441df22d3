"""The state of one agent: its phase, its launch, its messages, its progress and use.

Records are frozen; a decision returns new ones. Every time is in seconds of the run's clock, which stands still while
nobody supervises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from attempts.progress import Progress
from coral.fleet.reasons import START, Finding, JobOutcome, Reason
from heartbeats.heartbeat import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """For how long an agent has worked without progress, and how many steps the supervisor has taken because of it."""

    since: float | None = None  # when the no-progress timer started; None while the agent has no process
    accumulated: float = 0.0  # what the timer showed when the agent's last process stopped working, in seconds
    progress_at: float | None = None  # the last progress; None before the first launch
    escalations: int = 0  # steps taken since that progress
    finding: Finding | None = None  # what the last step was taken for: silence, or work without progress
    lasted: float = 0.0  # for how many seconds the agent had been silent, or without progress, at the last step
    scan_requested_at: float | None = None  # when a scan of the clone for edited files was requested, until it answers
    excluded_until: float = 0.0  # until when the time that was not the agent's fault is taken off the timer already


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The two figures by which the supervisor decides when an agent begins a new session: how often its conversation
    was compacted, and how many tokens the agent had used before the session began."""

    compactions: int = 0
    tokens_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The chain of heartbeats in which an agent is: how many in a row its answers to heartbeats have fired. See
    `coral.fleet.chains`."""

    depth: int = 0  # of the heartbeat that the agent received last; 0 if it has submitted new work since
    is_cut: bool = False
    tree: str = ""  # the tree of the agent's last submission that was new work


class Phase(StrEnum):
    """What an agent is doing, and with it what its deadline means."""

    WAITING = "waiting"  # no process; starts at the deadline (None: not before the run is resumed)
    RUNNING = "running"  # at the deadline it has been silent for too long
    INTERRUPTED = "interrupted"  # SIGINT was sent; at the deadline SIGTERM follows
    TERMINATED = "terminated"  # SIGTERM was sent; at the deadline SIGKILL follows
    KILLED = "killed"  # SIGKILL was sent; at the deadline it is sent again
    PARKED = "parked"  # its account is at a usage limit, or every escalation was in vain; starts at the deadline
    RETIRED = "retired"  # never starts again, unless the run is resumed


class Order(StrEnum):
    """What the operator wants of an agent."""

    WORK = "work"
    PAUSE = "pause"
    RETIRE = "retire"


LIVE = frozenset({Phase.RUNNING, Phase.INTERRUPTED, Phase.TERMINATED, Phase.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """The end of a job: what the job's file and the agent are told."""

    number: int
    title: str
    outcome: JobOutcome
    code: int | None = None  # the exit code, where it is known
    detail: str = ""  # why it could not be started
    reason: Reason | None = None  # why it was ended, if it was
    seconds: float = 0.0
    output: str = ""  # the file of its output, as seen from its agent's clone
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
    """A heartbeat, a message from the operator or a notice of Coral's that an agent has not acknowledged yet."""

    id: str
    name: str
    since: float
    due: float  # from then on it justifies an interrupt; before, it waits for a launch that begins for another reason
    prompt: str = ""
    attempt: int | None = None  # the attempt that fired the heartbeat; None for the clock's
    scope: Scope = Scope.OWN
    stagnant: bool = False  # an improvement makes it pointless
    depth: int = 0  # of a heartbeat: its place in a chain, from 1
    defers: bool = False  # it waits until a tool that is at work has ended
    quiet: bool = False  # it is delivered with a launch that begins for another reason, and causes none
    inline: bool = False  # `coral eval` may print it instead of an interrupt
    printed: bool = False  # `coral eval` was given it to print, and may acknowledge it
    handed_at: int = 0  # the launch of this session that got its whole text, began, and did not acknowledge it
    job_ends: tuple[JobEnd, ...] = ()  # the jobs whose ends it reports, the last ones
    earlier_job_ends: int = 0  # how many more it reports by their number alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An amount of model use: tokens (`input` does not include those read from a cache) and US dollars. `money` is None
    where the price is not known."""

    input: int = 0
    cached: int = 0
    output: int = 0
    money: float | None = None

    @property
    def tokens(self) -> int:
        """The tokens that budgets count: those read from a cache are left out, because they cost little and are most of
        what an agent reads."""
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """The highest usage figure that a launch has reported. The figure counts from the beginning of `session`, or of the
    launch where `session` is empty. `estimated`: US dollars that were counted by the task's prices, and that the
    program may still report. `is_ahead`: the money was reported, and the tokens that it paid for were not yet.

    `is_unpriced`: nobody knows what some tokens of the figure cost; the program may still report it. `is_money_lost`:
    the same of earlier figures, of which nothing more is reported. `is_use_lost`: an earlier program of the agent
    reported nothing of what it used."""

    launch: int = 0
    session: str = ""
    figure: Spent = field(default_factory=Spent)
    estimated: float = 0.0
    is_ahead: bool = False
    is_unpriced: bool = False
    is_money_lost: bool = False
    is_use_lost: bool = False

    @property
    def is_money_partial(self) -> bool:
        """Whether the agent has spent more money than is counted."""
        return self.is_unpriced or self.is_money_lost or self.is_use_lost

    def closed(self) -> "Meter":
        """The meter after its last report: the cost of tokens that nobody knows by then stays unknown."""
        return replace(self, is_unpriced=False, is_money_lost=self.is_money_lost or self.is_unpriced)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCounts:
    """How often each of these was seen in a launch's output so far."""

    edits: int = 0  # of files
    compactions: int = 0  # of its conversation into a summary
    retries: int = 0  # of requests to its model
    answered: int = 0  # the retries that there had been when the model last answered

    @property
    def in_a_row(self) -> int:
        """Retries since the last answer."""
        return self.retries - self.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A named worker with one phase; `launch` is the number of its current or last process."""

    name: str
    phase: Phase = Phase.WAITING
    deadline: float | None = 0.0
    reason: Reason = START
    order: Order = Order.WORK
    begins_session: bool = False  # whether its next launch begins a new session, because the operator asked for it
    launch: int = 0
    session: str | None = None
    has_output: bool = False  # whether its turn has begun, by what it printed
    last_output_at: float = 0.0
    activity: str = ""  # what it does, as its output said last
    spawned_at: float = 0.0
    pending_messages: tuple[PendingMessage, ...] = ()
    in_flight: tuple[str, ...] = ()  # ids of the messages that this launch was given and has not acknowledged
    awaiting_reply: tuple[str, ...] = ()  # names of the checkpoints that this launch has not answered
    last_result_seen: int = 0  # the order of the last publication that reached the agent
    last_result_sent: int = 0  # ... and of the last one that this launch was given
    targets: Mapping[str, float] = field(default_factory=dict)  # by heartbeat: the count or time at which it fires
    progress: Progress = field(default_factory=Progress)
    recent_submissions: tuple[str, ...] = ()  # ids, to recognise repeats
    submitted: int = 0
    submitted_at_spawn: int = 0
    crashes: int = 0  # launches in a row that failed
    losses: int = 0  # launches in a row that were lost, and in which it submitted nothing
    denials: int = 0  # launches in a row that ended because its account was denied the model
    unproductive_turns: int = 0  # launches in a row that ended soon and without an attempt
    unanswered_checkpoints: int = 0  # in a row
    last_words: str = ""  # while a checkpoint waits for a reply: the first line of what the agent said last
    last_error: str = ""  # what its program said when a launch failed last, until one has ended well
    kills: int = 0
    output_searched_to: int = 0  # the place in this launch's output up to which replies were read
    budget_notice_level: float = 0.0  # the highest used part of a budget (0.8, 0.95) that the agent was notified of
    research_until: float | None = None  # the end of its research time, in which it submits nothing; None: it has none
    meter: Meter = field(default_factory=Meter)
    spent: Spent = field(default_factory=Spent)
    output_counts: OutputCounts = field(default_factory=OutputCounts)
    stall: Stall = field(default_factory=Stall)
    conversation: Conversation = field(default_factory=Conversation)
    chain: Chain = field(default_factory=Chain)
    retired_alert: int = 0  # the number of the alert that it has retired; 0: there is none
    retrying_since: float | None = None  # when this launch began to do nothing but retry its model

    @property
    def undelivered(self) -> tuple[PendingMessage, ...]:
        """The pending messages that its launch was not given."""
        return tuple(message for message in self.pending_messages if message.id not in self.in_flight)
