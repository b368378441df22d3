"""The texts of reasons and of ends: the one place where they are worded, for every screen, prompt and file."""

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, assert_never

from coral.fleet.actions import LogEvent
from coral.fleet.agent_state import JobEnd, PendingMessage
from coral.fleet.agents.stalls import RESTING
from coral.fleet.reasons import Budget, BudgetKey, Finding, JobOutcome, Reason, RunEnd, RunEndKind
from coral.fleet.reasons import ReasonKind as Kind
from coral.views.format import duration

_STEPS = ("", "nudged", "interrupted", "fresh session", "parked")


def reason_text(reason: Reason) -> str:  # noqa: C901 - one arm per kind
    match reason.kind:
        case Kind.START | Kind.RESUMED | Kind.TURN_ENDED | Kind.HEARTBEAT | Kind.PROGRESS | Kind.KILLED:
            return reason.kind.replace("_", " ")
        case Kind.WAITS_FOR_JOB:
            return "a job runs"
        case Kind.LIMIT_OVER:
            return "usage limit is over"
        case Kind.SESSION_COMPACTED:
            return f"fresh session after {f'{reason.count} compactions' if reason.count != 1 else 'a compaction'}"
        case Kind.SESSION_LONG:
            return f"fresh session after {reason.count} tokens"
        case Kind.CRASHED:
            return _with("crashed", reason.detail)
        case Kind.UNKNOWN_SESSION:
            return _with("its program does not know the session", reason.detail)
        case Kind.NOT_STARTED:
            return _with("its program could not be started", reason.detail)
        case Kind.LEFTOVERS:
            return "its program left processes behind"
        case Kind.STALLED:
            return f"{_STEPS[min(reason.count, RESTING)]}: {_finding(reason)} for {duration(reason.seconds)}"
        case Kind.OUTAGE:
            return f"outage: {_retries(reason)}"
        case Kind.AT_LIMIT:
            return "usage limit"
        case Kind.STOP:
            return "the run stopped"
        case Kind.OWN_BUDGET:
            return f"the agent's own budget of {_amount(reason.budget)} is used up"
        case Kind.GIVEN_UP:
            return reason.detail or "its program says that going on is pointless"
        case Kind.UNKILLABLE:
            return "its program cannot be killed"
        case Kind.REQUEST:
            return f"{reason.detail} stopped it"
        case Kind.AGENT_RETIRED:
            return "its agent has retired"
        case Kind.UNDELIVERED:
            return "the one before has not been delivered yet"
        case Kind.UNANSWERED:
            return "the one before has not been answered yet"
        case Kind.SATURATED:
            return f"{reason.count} other heartbeats are still pending"
        case Kind.RESEARCH:
            return f"you read and think first, for another {duration(reason.seconds)}"
        case Kind.RUN_BUDGET:
            return f"the budget of {_amount(reason.budget)} is used up"
        case _:
            assert_never(reason.kind)


def _retries(outage: Reason) -> str:
    return f"{outage.count} retries in a row" if outage.count else f"nothing but retries for {duration(outage.seconds)}"


def _finding(stalled: Reason) -> str:
    return "silent" if stalled.finding is Finding.SILENT else "no progress"


def run_end_text(end: RunEnd) -> str:
    match end.kind:
        case RunEndKind.REQUEST:
            return end.detail or "the operator asked for it"
        case RunEndKind.SIGNAL:
            return f"{end.detail} was received"
        case RunEndKind.FOLDER_GONE:
            return "its folder was removed or moved"
        case RunEndKind.BUDGET:
            return f"the budget of {_amount(end.budget)} is used up"
        case RunEndKind.TARGET:
            return f"the target of {end.limit:g} is reached: {end.score:.10g} by #{end.attempt}"
        case RunEndKind.PLATEAU:
            return f"a plateau is reached: {end.limit:.0f} attempts in a row did not improve the fleet's best"
        case RunEndKind.USAGE_LIMIT:
            return f"{end.account} has reached its usage limit"
        case RunEndKind.ALL_RETIRED:
            return "every agent has retired"
        case _:
            assert_never(end.kind)


def refusal(reason: Reason) -> tuple[str, str]:
    """What the author of a submission is told that is not graded: why not, and what to do."""
    if reason.kind is Kind.RESEARCH:
        return reason_text(reason), "write down what you find; end your turn to begin at once"
    return reason_text(reason), "finish the notes; the run ends when the attempts in hand are graded"


def outcome_text(end: JobEnd) -> str:
    """How a job ended, and why: the rest of a sentence that begins with its name."""
    why = f" ({reason_text(end.reason)})" if end.reason is not None else ""
    return f"{_outcome(end)}{why}"


def _outcome(end: JobEnd) -> str:
    match end.outcome:
        case JobOutcome.SUCCEEDED:
            return "ended well"
        case JobOutcome.FAILED:
            return f"ended with exit code {end.code}"
        case JobOutcome.SIGNALLED:
            return f"was ended by signal {-(end.code or 0)}"
        case JobOutcome.UNKNOWN:
            return "ended; its exit code is not known"
        case JobOutcome.NOT_STARTED:
            return f"could not be started: {end.detail}"
        case JobOutcome.CANCELLED:
            return "was not started"
        case JobOutcome.UNKILLABLE:
            return "cannot be killed, and is given up"
        case _:
            assert_never(end.outcome)


def job_notice(message: PendingMessage) -> str:
    """All that an agent is told of its jobs that have ended, the last that ended at the end."""
    before = (
        f"{message.earlier_job_ends} jobs of yours ended before these; `coral job list` shows them."
        if message.earlier_job_ends
        else ""
    )
    return "\n\n".join([*([before] if before else []), *(_notice(end) for end in message.job_ends)])


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
    """A line of the timeline."""
    launch = f"launch {event.launch}" if event.launch else ""
    if event.ending is not None:
        return f"{launch} ended: {event.ending}"
    return with_reason(_with(launch, event.text), event.reason)


@lru_cache(maxsize=1024)  # the status of a large fleet holds as many, and is written twice a second
def reason_data(reason: Reason | RunEnd | None) -> Mapping[str, Any] | None:
    """For programs: the kind, the figures that go with it, and the text."""
    if reason is None:
        return None
    given = {field.name: (getattr(reason, field.name), field.default) for field in fields(reason)}
    plain = {name: value for name, (value, default) in given.items() if value != default}
    if reason.budget is not None:
        plain["budget"] = {"key": reason.budget.key, "limit": reason.budget.limit}
    return {**plain, "text": run_end_text(reason) if isinstance(reason, RunEnd) else reason_text(reason)}


def _amount(budget: Budget | None) -> str:
    assert budget is not None, "it is a budget that is used up"
    match budget.key:
        case BudgetKey.MONEY:
            return f"${budget.limit:g}"
        case BudgetKey.HOURS:
            return f"{budget.limit:g} hours"
        case BudgetKey.ATTEMPTS | BudgetKey.TOKENS:
            return f"{budget.limit:.0f} {budget.key}"
        case _:
            assert_never(budget.key)


def _with(text: str, detail: str) -> str:
    return ": ".join(part for part in (text, detail) if part)
