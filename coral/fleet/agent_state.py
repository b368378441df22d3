"""The state of one agent: its phase, its launch, its messages, its progress and use.

Records are frozen; a decision returns new ones. Every time is in seconds of the run's clock, which stands still while
nobody supervises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.progress import Progress
from heartbeats.heartbeat import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """How long an agent has come to nothing, and what was done about it.

    `since`: from when its work without progress is counted; none while it does not work, and `spent` is what had come
    together by then. `progress_at`: its last progress. `steps`: how often something was done since, the last time
    because it had been `finding` for `lasted` seconds. `asked`: when somebody was sent to look for edited files.
    `excused`: up to when what is no fault of its was taken off.
    """

    since: float | None = None
    accumulated: float = 0.0
    progress_at: float | None = None
    escalations: int = 0
    finding: str = ""
    lasted: float = 0.0
    scan_requested_at: float | None = None
    excluded_until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """How worn a conversation is: how often it was compacted, and what the agent had used when it began."""

    compactions: int = 0
    tokens_before: int = 0


class Phase(StrEnum):
    """What an agent is doing, and with it what its deadline means."""

    WAITING = "waiting"  # no process; starts at the deadline (none: not before the run is resumed)
    RUNNING = "running"  # deadline: it has been silent for too long
    INTERRUPTED = "interrupted"  # SIGINT was sent; deadline: SIGTERM
    TERMINATED = "terminated"  # SIGTERM was sent; deadline: SIGKILL
    KILLED = "killed"  # SIGKILL was sent; deadline: SIGKILL again
    PARKED = "parked"  # its account has no usage left, or nothing has helped it; starts at the deadline
    RETIRED = "retired"  # starts no more


LIVE = frozenset({Phase.RUNNING, Phase.INTERRUPTED, Phase.TERMINATED, Phase.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """What is to be told of a job that has ended: how it did, and the last lines that it printed."""

    number: int
    outcome: str
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
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
    job_ends: tuple[JobEnd, ...] = ()
    earlier_job_ends: int = 0


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
class OutputCounts:
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
    has_output: bool = False
    last_output_at: float = 0.0
    activity: str = ""
    spawned_at: float = 0.0
    pending_messages: tuple[PendingMessage, ...] = ()
    in_flight: tuple[str, ...] = ()
    awaiting_reply: tuple[str, ...] = ()
    last_result_seen: int = 0
    last_result_sent: int = 0
    targets: Mapping[str, float] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    recent_submissions: tuple[str, ...] = ()
    submitted: int = 0
    submitted_at_spawn: int = 0
    crashes: int = 0
    unproductive_turns: int = 0
    unanswered_checkpoints: int = 0
    kills: int = 0
    output_searched_to: int = 0
    budget_notice_level: float = 0.0
    research_until: float | None = None
    meter: Meter = field(default_factory=Meter)
    spent: Spent = field(default_factory=Spent)
    output_counts: OutputCounts = field(default_factory=OutputCounts)
    stall: Stall = field(default_factory=Stall)
    conversation: Conversation = field(default_factory=Conversation)
    retrying_since: float | None = None
