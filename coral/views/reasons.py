"""Turns the reasons for what agents and runs do into text, for every screen, prompt and file."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

from coral.fleet.actions import LogEvent
from coral.fleet.agent_state import JobEnd, PendingMessage
from coral.fleet.agents.stalls import RESTING
from coral.fleet.reasons import Budget, BudgetKey, Finding, JobOutcome, Reason, ReasonKind as Kind, RunEnd, RunEndKind
from coral.views.format import duration, money, plural

T = TypeVar("T")
_STEPS = ("", "nudged", "interrupted", "fresh session", "parked")

# The text of each kind, or a function that makes it from the reason.
_REASONS: Mapping[Kind, str | Callable[[Reason], str]] = {
    Kind.START: "start",
    Kind.RESUMED: "resumed",
    Kind.TURN_ENDED: "turn ended",
    Kind.HEARTBEAT: "heartbeat",
    Kind.PROGRESS: "progress",
    Kind.WAITS_FOR_JOB: "a job runs",
    Kind.LIMIT_OVER: "usage limit is over",
    Kind.BUDGET_RAISED: "its own budget is larger now",
    Kind.UNPAUSED: "the operator lets it go on",
    Kind.MOVED: "the operator moved it to another account",
    Kind.RESTARTED: "the operator restarted it",
    Kind.SESSION_COMPACTED: lambda reason: (
        "fresh session after " + ("a compaction" if reason.count == 1 else f"{reason.count} compactions")
    ),
    Kind.SESSION_LONG: lambda reason: f"fresh session after {reason.count} tokens",
    Kind.CRASHED: lambda reason: _with("crashed", reason.detail),
    Kind.UNKNOWN_SESSION: lambda reason: _with("its program does not know the session", reason.detail),
    Kind.NOT_STARTED: lambda reason: _with("its program could not be started", reason.detail),
    Kind.KILLED: "killed",
    Kind.LEFTOVERS: "its program left processes behind",
    Kind.STALLED: lambda reason: f"{_STEPS[min(reason.count, RESTING)]}: {_finding(reason)}",
    Kind.OUTAGE: lambda reason: f"outage: {_retries(reason)}",
    Kind.AT_LIMIT: "usage limit",
    Kind.PAUSED: "paused by the operator",
    Kind.STOP: "the run stopped",
    Kind.OWN_BUDGET: lambda reason: f"the agent's own budget of {_amount(reason.budget)} is used up",
    Kind.DISMISSED: "the operator retired it",
    Kind.LEFT_OUT: "the task has fewer agents now",
    Kind.GIVEN_UP: lambda reason: reason.detail or "its program says that going on is pointless",
    Kind.UNKILLABLE: "its program cannot be killed",
    Kind.REQUEST: lambda reason: f"{reason.detail} stopped it",
    Kind.AGENT_RETIRED: "its agent has retired",
    Kind.UNDELIVERED: "the one before has not been delivered yet",
    Kind.UNANSWERED: "the one before has not been answered yet",
    Kind.IS_PARKED: "the agent is parked",
    Kind.LANDS: "the budget is nearly used up, and the agent lands its work",
    Kind.HEARTBEAT_FAILED: lambda reason: _with("heartbeat_failed", reason.detail or "its program reported no error"),
    Kind.CHAIN: lambda reason: (
        f"{reason.count} in a row were set off by its answers to them, with nothing new in between"
    ),
    Kind.SATURATED: lambda reason: f"{reason.count} other heartbeats are still pending",
    Kind.RESEARCH: lambda reason: f"you read and think first, for another {duration(reason.seconds)}",
    Kind.RUN_BUDGET: lambda reason: f"the budget of {_amount(reason.budget)} is used up",
}
_RUN_ENDS: Mapping[RunEndKind, str | Callable[[RunEnd], str]] = {
    RunEndKind.REQUEST: lambda end: end.detail or "the operator asked for it",
    RunEndKind.SIGNAL: lambda end: f"{end.detail} was received",
    RunEndKind.FOLDER_GONE: "its folder was removed or moved",
    RunEndKind.BUDGET: lambda end: f"the budget of {_amount(end.budget)} is used up",
    RunEndKind.TARGET: lambda end: f"the target of {end.limit:.10g} is reached: {end.score:.10g} by #{end.attempt}",
    RunEndKind.PLATEAU: lambda end: (
        f"a plateau is reached: {end.limit:.0f} attempts in a row did not improve the fleet's best"
    ),
    RunEndKind.USAGE_LIMIT: lambda end: f"{end.account} has reached its usage limit",
    RunEndKind.ALL_RETIRED: "every agent has retired",
}
_OUTCOMES: Mapping[JobOutcome, str | Callable[[JobEnd], str]] = {
    JobOutcome.SUCCEEDED: "ended well",
    JobOutcome.FAILED: lambda end: f"ended with exit code {end.code}",
    JobOutcome.SIGNALLED: lambda end: f"was ended by signal {-(end.code or 0)}",
    JobOutcome.UNKNOWN: "ended; its exit code is not known",
    JobOutcome.NOT_STARTED: lambda end: f"could not be started: {end.detail}",
    JobOutcome.CANCELLED: "was not started",
    JobOutcome.UNKILLABLE: "cannot be killed, and is given up",
}
_AMOUNTS = {BudgetKey.HOURS: "{:.10g} hour", BudgetKey.ATTEMPTS: "{:.0f} attempt", BudgetKey.TOKENS: "{:.0f} token"}


def reason_text(reason: Reason) -> str:
    return _text(_REASONS[reason.kind], reason)


def run_end_text(end: RunEnd) -> str:
    return _text(_RUN_ENDS[end.kind], end)


def _text(text: str | Callable[[T], str], of: T) -> str:
    return text if isinstance(text, str) else text(of)


def _retries(outage: Reason) -> str:
    return f"{outage.count} retries in a row" if outage.count else f"nothing but retries for {duration(outage.seconds)}"


def _finding(stalled: Reason) -> str:
    what = "silent" if stalled.finding is Finding.SILENT else "no progress"
    return f"{what} for {duration(stalled.seconds)}"


def refusal(reason: Reason) -> tuple[str, str]:
    """Return why a submission is not graded, and what its author should do."""
    if reason.kind is Kind.RESEARCH:
        return reason_text(reason), "write down what you find; end your turn to begin at once"
    return reason_text(reason), "finish the notes; the run ends when the attempts in hand are graded"


def outcome_text(end: JobEnd) -> str:
    """Return how a job ended and why, as the rest of a sentence that begins with the job's name."""
    why = f" ({reason_text(end.reason)})" if end.reason is not None else ""
    return f"{_text(_OUTCOMES[end.outcome], end)}{why}"


def job_notice(message: PendingMessage) -> str:
    """Return the text that tells an agent which of its jobs have ended and how, the latest last."""
    notices = [_notice(end) for end in message.job_ends]
    if earlier := message.earlier_job_ends:
        notices.insert(0, f"{plural(earlier, 'job')} of yours ended before these; `coral job list` shows them.")
    return "\n\n".join(notices)


def _notice(end: JobEnd) -> str:
    lines = [f"Your job {end.number} ({end.title}) {outcome_text(end)}, {duration(end.seconds)} after it began."]
    if end.output:
        shows = f"`coral job log {end.number}` shows the end of it"
        lines.append(f"All that it printed is in {end.output}; {shows}.")
    if end.last_lines:
        lines += ["", "Its last lines:", "", *(f"    {line}" for line in end.last_lines)]
    return "\n".join(lines)


def with_reason(text: str, reason: Reason | None) -> str:
    return text if reason is None else _with(text, reason_text(reason))


def log_text(event: LogEvent) -> str:
    launch = f"launch {event.launch}" if event.launch else ""
    if event.ending is not None:
        return f"{launch} ended: {event.ending}"
    return with_reason(_with(launch, event.text), event.reason)


@lru_cache(maxsize=1024)  # the status of a large fleet holds as many, and is written twice a second
def reason_data(reason: Reason | RunEnd | None) -> Mapping[str, Any] | None:
    """Return a reason for programs: its kind, the figures that go with it, and its text. None for None."""
    if reason is None:
        return None
    given = {field.name: (getattr(reason, field.name), field.default) for field in fields(reason)}
    plain = {name: value for name, (value, default) in given.items() if value != default}
    if reason.budget is not None:
        plain["budget"] = {"key": reason.budget.key, "limit": reason.budget.limit}
    return {**plain, "text": run_end_text(reason) if isinstance(reason, RunEnd) else reason_text(reason)}


def _amount(budget: Budget | None) -> str:
    assert budget is not None, "it is a budget that is used up"
    if budget.key is BudgetKey.MONEY:
        return money(budget.limit)
    amount = _AMOUNTS[budget.key].format(budget.limit)
    return amount if amount.startswith("1 ") else f"{amount}s"


def _with(text: str, detail: str) -> str:
    return ": ".join(part for part in (text, detail) if part)
