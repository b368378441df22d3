"""How reasons and ends are worded and shown: every kind has a text, and programs get the kind and its figures too."""

from dataclasses import replace

import pytest

from attempts.progress import Progress
from attempts.standing import Scoring
from coral.fleet.actions import LogEvent, LoggedMessage
from coral.fleet.agent_state import Agent, JobEnd, Meter, PendingMessage, Phase, Spent, Stall
from coral.fleet.events import Ending
from coral.fleet.members import Former, Member
from coral.fleet.reasons import Budget, BudgetKey, Finding, JobOutcome, Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet, Run
from coral.views.fleet_view import agents_of, budgets_of, state_of, used_by
from coral.views.reasons import (
    job_notice,
    log_text,
    outcome_text,
    reason_data,
    reason_text,
    refusal,
    run_end_text,
    with_reason,
)
from coral.views.report import logged_data
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Every

TOKENS = Budget(BudgetKey.TOKENS, 1000)
FIGURES = {
    ReasonKind.STALLED: {"finding": Finding.SILENT, "count": 1, "seconds": 1200.0},
    ReasonKind.OWN_BUDGET: {"budget": TOKENS},
    ReasonKind.RUN_BUDGET: {"budget": TOKENS},
}
END = JobEnd(number=1, title="wide net", outcome=JobOutcome.SUCCEEDED, code=0, seconds=42.0)


@pytest.mark.parametrize("kind", ReasonKind)
def test_every_kind_has_a_text_of_its_own(kind: ReasonKind) -> None:
    def text(other: ReasonKind) -> str:
        return reason_text(Reason(other, **FIGURES.get(other, {})))  # type: ignore[arg-type]

    assert text(kind)
    assert [other for other in ReasonKind if text(other) == text(kind)] == [kind]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason(ReasonKind.CRASHED), "crashed"),
        (Reason(ReasonKind.CRASHED, detail="out of memory"), "crashed: out of memory"),
        (Reason(ReasonKind.UNKNOWN_SESSION, detail="no such id"), "its program does not know the session: no such id"),
        (Reason(ReasonKind.NOT_STARTED, detail="no file"), "its program could not be started: no file"),
        (Reason(ReasonKind.GIVEN_UP), "its program says that going on is pointless"),
        (Reason(ReasonKind.GIVEN_UP, detail="no key"), "no key"),
        (Reason(ReasonKind.OUTAGE, count=5), "outage: 5 retries in a row"),
        (Reason(ReasonKind.OUTAGE, seconds=1200.0), "outage: nothing but retries for 20 min"),
        (Reason(ReasonKind.SESSION_COMPACTED, count=1), "fresh session after a compaction"),
        (Reason(ReasonKind.SESSION_COMPACTED, count=3), "fresh session after 3 compactions"),
        (Reason(ReasonKind.SESSION_LONG, count=1001), "fresh session after 1001 tokens"),
        (Reason(ReasonKind.REQUEST, detail="operator"), "operator stopped it"),
        (Reason(ReasonKind.SATURATED, count=5), "5 other heartbeats are still pending"),
        (Reason(ReasonKind.OWN_BUDGET, budget=TOKENS), "the agent's own budget of 1000 tokens is used up"),
        (Reason(ReasonKind.RUN_BUDGET, budget=TOKENS), "the budget of 1000 tokens is used up"),
    ],
)
def test_what_goes_with_a_reason_is_said(reason: Reason, text: str) -> None:
    assert reason_text(reason) == text


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (1, "nudged: silent for 20 min"),
        (2, "interrupted: silent for 20 min"),
        (3, "fresh session: silent for 20 min"),
        (4, "parked: silent for 20 min"),
        (9, "parked: silent for 20 min"),
    ],
)
def test_what_was_done_about_a_stall_is_said_in_words(steps: int, text: str) -> None:
    stalled = Reason(ReasonKind.STALLED, count=steps, finding=Finding.SILENT, seconds=1200.0)
    assert reason_text(stalled) == text
    assert reason_text(replace(stalled, finding=Finding.NO_PROGRESS)) == text.replace("silent", "no progress")


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (RunEnd(RunEndKind.REQUEST), "the operator asked for it"),
        (RunEnd(RunEndKind.REQUEST, detail="an upgrade"), "an upgrade"),
        (RunEnd(RunEndKind.SIGNAL, detail="SIGTERM"), "SIGTERM was received"),
        (RunEnd(RunEndKind.FOLDER_GONE), "its folder was removed or moved"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4)), "the budget of 4 attempts is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4.0)), "the budget of 4 attempts is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 1)), "the budget of 1 attempt is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.HOURS, 1.0)), "the budget of 1 hour is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 1.0)), "the budget of $1.00 is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.HOURS, 0.025)), "the budget of 0.025 hours is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 2.5)), "the budget of $2.50 is used up"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.TOKENS, 2000)), "the budget of 2000 tokens is used up"),
        (
            RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 1234567.5)),
            "the budget of $1,234,567.50 is used up",
        ),
        (RunEnd(RunEndKind.TARGET, limit=2.5, score=2.625, attempt=7), "the target of 2.5 is reached: 2.625 by #7"),
        (
            RunEnd(RunEndKind.TARGET, limit=2.6359835, score=2.6359836, attempt=7),
            "the target of 2.6359835 is reached: 2.6359836 by #7",
        ),
        (
            RunEnd(RunEndKind.PLATEAU, limit=2),
            "a plateau is reached: 2 attempts in a row did not improve the fleet's best",
        ),
        (RunEnd(RunEndKind.USAGE_LIMIT, account="acme"), "acme has reached its usage limit"),
        (RunEnd(RunEndKind.ALL_RETIRED), "every agent has retired"),
    ],
)
def test_why_a_run_ends_is_said(end: RunEnd, text: str) -> None:
    assert run_end_text(end) == text


def test_programs_get_the_kind_its_figures_and_the_text() -> None:
    assert reason_data(None) is None
    assert reason_data(Reason(ReasonKind.TURN_ENDED)) == {"kind": "turn_ended", "text": "turn ended"}
    assert reason_data(Reason(ReasonKind.STALLED, count=2, finding=Finding.SILENT, seconds=1200.0)) == {
        "kind": "stalled",
        "count": 2,
        "finding": "silent",
        "seconds": 1200.0,
        "text": "interrupted: silent for 20 min",
    }
    assert reason_data(RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 2.5))) == {
        "kind": "budget",
        "budget": {"key": "money", "limit": 2.5},
        "text": "the budget of $2.50 is used up",
    }
    # A target and a score of 0 are figures like any other.
    assert reason_data(RunEnd(RunEndKind.TARGET, limit=0.0, score=0.0, attempt=3)) == {
        "kind": "target",
        "limit": 0.0,
        "score": 0.0,
        "attempt": 3,
        "text": "the target of 0 is reached: 0 by #3",
    }


def test_who_is_refused_is_told_why_and_what_to_do() -> None:
    reading = "you read and think first, for another 1 h 30 min"
    hint = "write down what you find; end your turn to begin at once"
    assert refusal(Reason(ReasonKind.RESEARCH, seconds=5400.0)) == (reading, hint)
    text, hint = refusal(Reason(ReasonKind.RUN_BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 3)))
    assert text == "the budget of 3 attempts is used up"
    assert hint == "finish the notes; the run ends when the attempts in hand are graded"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (END, "ended well"),
        (replace(END, outcome=JobOutcome.FAILED, code=3), "ended with exit code 3"),
        (replace(END, outcome=JobOutcome.SIGNALLED, code=-2), "was ended by signal 2"),
        (replace(END, outcome=JobOutcome.UNKNOWN, code=None), "ended; its exit code is not known"),
        (replace(END, outcome=JobOutcome.NOT_STARTED, detail="no such folder"), "could not be started: no such folder"),
        (
            replace(END, outcome=JobOutcome.CANCELLED, reason=Reason(ReasonKind.STOP)),
            "was not started (the run stopped)",
        ),
        (
            replace(END, outcome=JobOutcome.UNKILLABLE, reason=Reason(ReasonKind.AGENT_RETIRED)),
            "cannot be killed, and is given up (its agent has retired)",
        ),
    ],
)
def test_how_a_job_ended_is_said(end: JobEnd, text: str) -> None:
    assert outcome_text(end) == text


def test_an_agent_is_told_of_all_its_jobs_in_one_message() -> None:
    message = PendingMessage(id="h1", name="job ended", since=0.0, due=0.0, job_ends=(END,))
    assert job_notice(message) == "Your job 1 (wide net) ended well, 42 s after it began."
    other = replace(END, number=32, output="../job-32.out", last_lines=("epoch 9", "loss 0.1"))
    message = replace(message, job_ends=(replace(END, number=31), other), earlier_job_ends=30)
    assert job_notice(message) == (
        "30 jobs of yours ended before these; `coral job list` shows them.\n\n"
        "Your job 31 (wide net) ended well, 42 s after it began.\n\n"
        "Your job 32 (wide net) ended well, 42 s after it began.\n"
        "All that it printed is in ../job-32.out; `coral job log 32` shows the end of it.\n"
        "\nIts last lines:\n\n    epoch 9\n    loss 0.1"
    )
    assert job_notice(replace(message, earlier_job_ends=1)).startswith("1 job of yours ended before these; ")


def test_a_line_of_the_timeline_says_what_it_is_about_and_why() -> None:
    crashed = Reason(ReasonKind.CRASHED, detail="no key")
    assert log_text(LogEvent(type="crashed", agent="ann", launch=2, reason=crashed)) == "launch 2: crashed: no key"
    assert log_text(LogEvent(type="exited", agent="ann", launch=2, ending=Ending.CLEAN)) == "launch 2 ended: clean"
    assert log_text(LogEvent(type="probing", text="whether acme has usage again")) == "whether acme has usage again"
    assert log_text(LogEvent(type="retired", reason=crashed)) == "crashed: no key"
    assert with_reason("ann has retired", crashed) == "ann has retired: crashed: no key"
    assert with_reason("the disk is full", None) == "the disk is full"


def test_budgets_are_amounts_in_the_units_of_the_task() -> None:
    spent = Spent(input=600, output=200, money=1.25)
    fleet = Fleet(run=Run(progress=Progress(graded=3), spent=spent))
    rules = Rules(budget_attempts=10, budget_seconds=7200.0, budget_money=5.0, budget_tokens=1000, target=2.0)
    assert budgets_of(fleet, rules, 1800.0) == [
        {"key": "attempts", "limit": 10, "used": 3},
        {"key": "hours", "limit": 2.0, "used": 0.5},
        {"key": "money", "limit": 5.0, "used": 1.25},
        {"key": "tokens", "limit": 1000, "used": 800},
    ]
    assert budgets_of(fleet, Rules(budget_tokens=1000), 0.0) == [{"key": "tokens", "limit": 1000, "used": 800}]


def test_of_a_budget_nothing_is_used_before_the_first_launch_and_then_it_is_not_known() -> None:
    rules = Rules(budget_money=5.0, budget_tokens=1000, accounts={"ann": "claude"})
    for launch, amount in ((0, 0), (1, None)):
        fleet = Fleet(agents={"ann": Agent(name="ann", launch=launch)})
        assert [budget["used"] for budget in budgets_of(fleet, rules, 0.0)] == [amount, amount]
    tokens = Spent(input=600)
    fleet = Fleet(agents={"ann": Agent(name="ann", launch=1, spent=tokens)}, run=Run(spent=tokens))
    assert [budget["used"] for budget in budgets_of(fleet, rules, 0.0)] == [None, 600], "no price is known"


def test_whose_tokens_and_whose_money_are_not_known_is_told_apart() -> None:
    reported = Spent(input=600, money=1.0)
    moved = Member(runtime="cursor", account="plan", former=(Former(through=1, runtime="claude"),))
    agents = [
        Agent(name="silent", launch=1),
        Agent(name="plan", launch=1, spent=Spent(input=600)),
        Agent(name="bill", launch=1, spent=Spent(money=1.0)),
        Agent(name="known", launch=1, spent=reported),
        Agent(name="unpriced", launch=1, spent=reported, meter=Meter(launch=1, is_unpriced=True)),
        Agent(name="priced-again", launch=1, spent=reported, meter=Meter(launch=1, is_money_lost=True)),
        Agent(name="moved", launch=2, spent=reported, meter=Meter(launch=1)),
        Agent(name="moved-back", launch=3, spent=reported, meter=Meter(launch=3, is_use_lost=True)),
        Agent(name="coming"),
        Agent(name="free", launch=1),
    ]
    fleet = Fleet(agents={agent.name: agent for agent in agents}, run=Run(members={"moved": moved}, spent=reported))
    found = used_by(fleet, Rules(accounts={agent.name: "plan" for agent in agents if agent.name != "free"}))
    assert found["tokens_unknown_of"] == ["silent", "bill", "moved", "moved-back"]
    assert found["money_unknown_of"] == ["silent", "plan", "unpriced", "priced-again", "moved", "moved-back"]


def test_what_the_timeline_says_of_a_message_has_no_empty_fields() -> None:
    assert logged_data(LoggedMessage(name="reflect", id="h1", attempt=0, since=0.12345)) == {
        "name": "reflect",
        "id": "h1",
        "attempt": 0,
        "since": 0.123,
    }
    assert logged_data(LoggedMessage(name="checkpoint")) == {"name": "checkpoint"}


LEFT = RunEnd(RunEndKind.REQUEST, detail="an upgrade")
USED_UP = RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4))
SAID = {"kind": "budget", "budget": {"key": "attempts", "limit": 4}, "text": "the budget of 4 attempts is used up"}


@pytest.mark.parametrize(
    ("run", "state", "reason"),
    [
        (Run(), "running", None),
        (Run(stopping=USED_UP), "stopping", SAID),
        (Run(stopping=USED_UP, finished=USED_UP), "stopped", SAID),
        (Run(detached_reason=LEFT), "left", {"kind": "request", "detail": "an upgrade", "text": "an upgrade"}),
    ],
)
def test_a_run_says_how_it_stands_and_why(run: Run, state: str, reason: object) -> None:
    assert state_of(run) == {"state": state, "reason": reason}


def test_an_agent_says_why_it_waits_and_what_was_done_about_it() -> None:
    reason = Reason(ReasonKind.CRASHED, detail="out of memory")
    stall = Stall(escalations=1, finding=Finding.NO_PROGRESS, lasted=7200.0)
    fleet = Fleet(agents={"ann": Agent(name="ann", phase=Phase.WAITING, reason=reason, stall=stall)})
    (shown,) = agents_of(fleet, 0.0, Scoring())
    assert (shown["phase"], shown["reason"]) == (
        "waiting",
        {"kind": "crashed", "detail": "out of memory", "text": "crashed: out of memory"},
    )
    assert shown["stall"] == {
        "kind": "stalled",
        "finding": "no_progress",
        "count": 1,
        "seconds": 7200.0,
        "text": "nudged: no progress for 2 h",
    }
    (shown,) = agents_of(Fleet(agents={"ann": Agent(name="ann")}), 0.0, Scoring())
    assert (shown["reason"], shown["stall"]) == ({"kind": "start", "text": "start"}, None)


def test_nothing_is_next_for_an_agent_that_has_retired() -> None:
    each = Heartbeat(name="reflect", trigger=Every(1))
    for phase, names in ((Phase.RUNNING, ["reflect"]), (Phase.RETIRED, [])):
        agent = Agent(name="ann", phase=phase, targets={"reflect": 1})
        (shown,) = agents_of(Fleet(agents={"ann": agent}, heartbeats={"ann": (each,)}), 0.0, Scoring())
        assert [due["name"] for due in shown["next"]] == names
