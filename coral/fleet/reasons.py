"""Why something starts, waits, ends or is left out, as data: a kind, and the figures that go with it.

Decisions compare kinds. The texts that people and agents read are made by `coral/views/reasons.py` alone. A `detail` is
what a program or a person said; it is shown, and never compared.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum


class BudgetKey(StrEnum):
    """The unit of a budget; the keys of `budget` and `budget.per_agent` in task.yaml."""

    ATTEMPTS = "attempts"
    HOURS = "hours"
    MONEY = "money"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget that is used up, and its limit: a number of attempts or tokens, hours, or US dollars."""

    key: BudgetKey
    limit: int | float  # decoded as it is: a whole number stays one


class Finding(StrEnum):
    """What is wrong with an agent that makes no progress."""

    SILENT = "silent"
    NO_PROGRESS = "no_progress"


class ReasonKind(StrEnum):
    # Why an agent starts, or waits to start.
    START = "start"
    RESUMED = "resumed"
    TURN_ENDED = "turn_ended"
    HEARTBEAT = "heartbeat"
    PROGRESS = "progress"  # made while its launch was ended for a lack of it
    WAITS_FOR_JOB = "waits_for_job"
    LIMIT_OVER = "limit_over"
    BUDGET_RAISED = "budget_raised"  # its own, by the operator
    UNPAUSED = "unpaused"  # by the operator
    MOVED = "moved"  # to another account, by the operator
    RESTARTED = "restarted"  # by the operator: why a launch is ended, and why the next one starts
    SESSION_COMPACTED = "session_compacted"  # count: how often; the next launch begins a new session
    SESSION_LONG = "session_long"  # count: the tokens it had used; the next launch begins a new session
    # Why a launch ended or is ended, and why an agent waits after it.
    CRASHED = "crashed"  # detail
    UNKNOWN_SESSION = "unknown_session"  # detail
    NOT_STARTED = "not_started"  # detail
    KILLED = "killed"
    LEFTOVERS = "leftovers"
    STALLED = "stalled"  # finding, for so many seconds; count: the step that is taken against it
    OUTAGE = "outage"  # count: retries in a row; if 0, seconds with nothing but retries
    AT_LIMIT = "at_limit"
    PAUSED = "paused"  # by the operator
    STOP = "stop"
    # Why an agent retires.
    OWN_BUDGET = "own_budget"  # budget
    GIVEN_UP = "given_up"  # detail
    DISMISSED = "dismissed"  # by the operator
    LEFT_OUT = "left_out"  # the task has fewer agents since a resume
    UNKILLABLE = "unkillable"
    # Why a job is ended, if not by STOP.
    REQUEST = "request"  # detail: who asked
    AGENT_RETIRED = "agent_retired"
    # Why a heartbeat is left out.
    UNDELIVERED = "undelivered"
    UNANSWERED = "unanswered"
    IS_PARKED = "is_parked"
    LANDS = "lands"  # a budget is nearly used up
    HEARTBEAT_FAILED = "heartbeat_failed"  # count: checkpoints in a row; detail: the last error of its program
    CHAIN = "chain"  # count: heartbeats in a row that answers to heartbeats have set off
    SATURATED = "saturated"  # count: heartbeats that are pending
    # Why a submission is refused, if not by OWN_BUDGET.
    RESEARCH = "research"  # seconds that are left of it
    RUN_BUDGET = "run_budget"  # budget


@dataclass(frozen=True, slots=True)
class Reason:
    kind: ReasonKind
    _: KW_ONLY
    detail: str = ""
    finding: Finding | None = None
    count: int = 0
    seconds: float = 0.0
    budget: Budget | None = None


START = Reason(ReasonKind.START)


class RunEndKind(StrEnum):
    REQUEST = "request"  # detail: the reason that was given, if any
    SIGNAL = "signal"  # detail: its name
    FOLDER_GONE = "folder_gone"
    BUDGET = "budget"  # budget
    TARGET = "target"  # limit, and the score of the attempt that reached it
    PLATEAU = "plateau"  # limit: attempts in a row that did not improve the best
    USAGE_LIMIT = "usage_limit"  # account
    ALL_RETIRED = "all_retired"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run stops, or why its supervisor leaves it."""

    kind: RunEndKind
    _: KW_ONLY
    detail: str = ""
    budget: Budget | None = None
    limit: int | float | None = None
    score: float | None = None
    attempt: int | None = None
    account: str = ""


class JobOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # with an exit code above 0
    SIGNALLED = "signalled"  # by the signal whose number is the exit code's opposite
    UNKNOWN = "unknown"  # nobody saw its exit code
    NOT_STARTED = "not_started"  # it could not be; detail
    CANCELLED = "cancelled"  # before it began
    UNKILLABLE = "unkillable"  # given up
