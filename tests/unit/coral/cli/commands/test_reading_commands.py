"""The commands that look: on run folders with a history, from anywhere in them, also when files are damaged or gone."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sample import agent_status, attempt, make_run, stamp, write_events, write_status

from attempts.index.index import Index
from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.cli import main
from coral.cli.commands.diff import coloured
from coral.fleet.reasons import Budget, BudgetKey, Reason, ReasonKind, RunEnd, RunEndKind
from coral.reading import run_view
from coral.reading.run_view import RunView
from coral.supervisor.lock import hold_lock
from coral.views.fleet_view import Unit, due_data
from coral.views.reasons import reason_data, run_end_text
from workspace import frontmatter, knowledge
from workspace.layout import Layout

Shown = Callable[..., str]
LOOKING = ("status", "runs", "log", "log --recent", "show 1", "notes", "notes --history", "notes --recent", "skills")
LOOKING += ("heartbeat", "lineage", "plot -o picture.svg --force")
OF_AGENT = ("redirect", "checkpoint")


# status and runs


def test_status_shows_the_fleet(layout: Layout, shown: Shown) -> None:
    write_status(layout, grading={"slots": 2, "running": [5], "queued": [6], "paused": False})
    with hold_lock(layout.lock):
        lines = shown("status").splitlines()
    assert lines[0] == f"toy · {layout.root.name} · running · 10 min"
    assert lines[1] == "best 2 #4 by agent-1  seed 1 (+1)  try 4"
    assert lines[2] == "4 attempts · grading #5 · 1 queued · unprotected"
    assert lines[3] == "budget 6 of 10 attempts are left"
    assert lines[5].split() == "agent phase launch attempts own best stagnant last beat next heartbeat".split()  # noqa: SIM905
    assert re.search(r"\b\d+ s thinking about rows  redirect 4$", lines[6]), "its beat is as old as the test is slow"
    assert "supervises" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4)), " budget.attempts=8"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.HOURS, 2.0)), " budget.hours=4"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 2.0)), " budget.money=4"),
        (RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.TOKENS, 2000)), " budget.tokens=4000"),
        (RunEnd(RunEndKind.PLATEAU, limit=2), " budget.plateau=4"),
        (RunEnd(RunEndKind.TARGET, limit=2.0, score=2.5, attempt=3), " budget.target=null"),
        (RunEnd(RunEndKind.USAGE_LIMIT, account="acme"), ""),
        (RunEnd(RunEndKind.REQUEST, detail="the budget of 2 hours is used up"), ""),
    ],
)
def test_the_end_of_a_run_is_shown_with_a_command_that_continues_it(
    layout: Layout, shown: Shown, reason: RunEnd, more: str
) -> None:
    write_status(layout, "stopped", reason=reason_data(reason))
    assert f"stopped: {run_end_text(reason)}; continue it with `coral resume{more}`" in shown("status")
    assert shown("log").splitlines()[-1] == f"the run is over: {run_end_text(reason)}"
    assert json.loads(shown("status", "--json"))["reason"] == reason_data(reason)
    (listed,) = json.loads(shown("runs", "--json"))
    assert listed["reason"] == reason_data(reason)


def test_the_command_that_continues_a_run_exceeds_what_is_used(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 1.0))
    budgets = [
        {"key": "attempts", "limit": 4, "used": 4},
        {"key": "hours", "limit": 2.0, "used": 1.5},
        {"key": "money", "limit": 1.0, "used": 9.0},
        {"key": "tokens", "limit": 1000, "used": None},
    ]
    write_status(layout, "stopped", reason=reason_data(reason), budgets=budgets)
    assert "continue it with `coral resume budget.money=16 budget.attempts=8`" in shown("status")
    monkeypatch.setenv("COLUMNS", "40")  # a line break within a command would end it where it is pasted
    assert "continue it with `coral resume budget.money=16 budget.attempts=8`" in shown("status")


def test_the_command_that_answers_a_question_is_on_one_line(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    asked = {"number": 4, "agent": "agent-1", "text": "May I use the network of this machine?"}
    write_status(layout, questions=[asked])
    assert "machine?  coral answer 4 '...'" in shown("status")


def test_own_budgets_in_that_command_exceed_what_every_agent_used(layout: Layout, shown: Shown) -> None:
    own = {"reason": reason_data(Reason(ReasonKind.OWN_BUDGET, budget=Budget(BudgetKey.MONEY, 1.5)))}
    agents = [
        agent_status("agent-1", **own, spent={"tokens": 10, "money": 9.0}),
        agent_status("agent-2", **own, spent={"tokens": 10, "money": 1.6}),
    ]
    write_status(layout, "stopped", reason=reason_data(RunEnd(RunEndKind.ALL_RETIRED)), agents=agents)
    assert "continue it with `coral resume budget.per_agent.money=12`" in shown("status")


def test_status_says_why_a_budget_has_counted_more_attempts(layout: Layout, shown: Shown) -> None:
    write_status(layout, budgets=[{"key": "attempts", "limit": 10, "used": 6}])
    assert shown("status").splitlines()[2] == "4 attempts · 2 trials of numbers"


def test_status_shows_what_was_spent_where_that_is_known(layout: Layout, shown: Shown) -> None:
    agents = [
        agent_status("agent-1", spent={"tokens": 1200, "money": 2.5}),
        agent_status("agent-2", spent={"tokens": 800, "money": None}),
    ]
    write_status(layout, agents=agents, spent={"tokens": 2000, "money": 2.5})
    lines = shown("status").splitlines()
    assert lines[2] == "4 attempts · 2.0k tokens, $2.50"
    assert any(line.split()[6:8] == ["stagnant", "used"] for line in lines)
    assert "$2.50" in next(line for line in lines if line.startswith("agent-1"))
    assert "800 tokens" in next(line for line in lines if line.startswith("agent-2"))


def test_status_shows_pending_heartbeats_and_why_an_agent_waits(layout: Layout, shown: Shown) -> None:
    agents = [
        agent_status("agent-1", pending=["message", "reflect", "message", "redirect"]),
        agent_status("agent-2", phase="parked", reason={"text": "usage limit"}, until=1810.0),
    ]
    alerts = [{"id": "a", "level": "alert", "text": "three voids", "at": stamp(120)}]
    write_status(layout, agents=agents, alerts=alerts)
    with hold_lock(layout.lock):
        said = shown("status")
    assert "message pending (2) · reflect pending · redirect pending" in said
    assert "usage limit · 30 min left" in said
    assert "alert three voids  2 min ago" in said


def test_status_shows_which_account_holds_an_agent_up_and_for_how_long(layout: Layout, shown: Shown) -> None:
    resting = {"phase": "waiting", "reason": {"text": "its program has ended"}, "until": 9000.0, "beat": None}
    agents = [
        agent_status("agent-1", **resting, held={"account": "acme", "by": "limit", "left": 1800.0}),
        agent_status("agent-2", **resting, held={"account": "", "by": "crashes", "left": 600.0}),
        agent_status("agent-3", **resting, held={"account": "acme", "by": "limit", "left": None}),
        agent_status("agent-4", **resting, held=None),
    ]
    write_status(layout, agents=agents)
    with hold_lock(layout.lock):
        said = {line.split()[0]: line for line in shown("status").splitlines() if line.startswith("agent-")}
    assert "usage limit of acme · 29 min" in said["agent-1"] or "usage limit of acme · 30 min" in said["agent-1"]
    assert "starts are paused after crashes · " in said["agent-2"]
    assert ["usage limit of acme" in said["agent-3"], " left" in said["agent-3"]] == [True, False]
    assert "its program has ended" in said["agent-4"]
    assert "its program has ended" not in said["agent-1"]


def test_use_that_no_program_has_reported_is_not_known(layout: Layout, shown: Shown) -> None:
    write_status(
        layout, spent={"tokens": 0, "money": None}, tokens_unknown_of=["agent-1"], money_unknown_of=["agent-1"]
    )
    assert shown("status").splitlines()[2] == "4 attempts · use not known"
    write_status(layout, spent={"tokens": 2000, "money": None}, tokens_unknown_of=["agent-1"])
    assert shown("status").splitlines()[2] == "4 attempts · at least 2.0k tokens"
    write_status(layout, spent={"tokens": 2000, "money": None}, money_unknown_of=["agent-1"])
    assert shown("status").splitlines()[2] == "4 attempts · 2.0k tokens"


def test_what_a_sealed_agent_may_not_see_is_not_said_to_be_unknown(layout: Layout, shown: Shown) -> None:
    layout.status.unlink()
    layout.private.rename(layout.root / "elsewhere")
    assert "4 attempts, 1 failed" in shown("status").splitlines()


def test_without_its_status_a_run_has_the_figures_of_its_records(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(attempt(5, 2.0, kind=Kind.CONFIRM, of=0, tree=f"{0:040x}", verdict=Verdict.TIED))
    layout.status.unlink()
    assert "4 attempts, 1 failed · use not known" in shown("status").splitlines()
    assert RunView(layout).baseline == 1.5, "the median of the seed's grades, as in the status"
    beats = json.loads(shown("status", "--timeline", "--json"))["agents"]
    assert list(beats) == ["agent-1", "agent-2"]
    layout.holdout_scores.parent.mkdir(parents=True, exist_ok=True)
    scores = [{"number": number, "score": score, "reason": ""} for number, score in ((0, 1.0), (4, 1.5))]
    layout.holdout_scores.write_text(json.dumps({"scores": scores}))
    assert "hold-out #4 1.5, the seed 1" in shown("status")


def test_status_shows_what_was_done_about_a_stalled_agent(layout: Layout, shown: Shown) -> None:
    beat = {"phase": "tool", "message": "pytest", "age": 3.0}
    agents = [
        agent_status("agent-1", stall={"text": "nudged: no progress for 2 h"}, beat=beat),
        agent_status("agent-2", stall=None, beat=beat),
        agent_status("agent-3", phase="parked", reason={"text": "parked: silent for 20 min"}, until=1810.0, beat=None),
        agent_status("agent-4", phase="running", reason={"text": "heartbeat"}, until=1200.0, beat=None),
    ]
    write_status(layout, agents=agents)
    with hold_lock(layout.lock):
        said = {line.split()[0]: line for line in shown("status").splitlines() if line.startswith("agent-")}
    assert "nudged: no progress for 2 h · 3 s tool pytest" in said["agent-1"]
    assert "·  3 s" not in said["agent-2"]
    assert "parked: silent for 20 min · 30 min left" in said["agent-3"]
    assert "20 min" not in said["agent-4"]  # how long it may stay silent is no news


def test_status_says_from_whom_there_is_nothing_for_long(layout: Layout, shown: Shown) -> None:
    """Some programs repeat their requests to a model that does not answer without a word."""
    beats = [("thinking", 59.0), ("thinking", 130.0), ("tool", 130.0), ("starting", 130.0), ("retrying", 130.0)]
    agents = [
        agent_status(f"agent-{number}", beat={"phase": phase, "message": "model m", "age": age})
        for number, (phase, age) in enumerate(beats, 1)
    ]
    write_status(layout, agents=agents)
    with hold_lock(layout.lock):
        said = {line.split()[0]: line for line in shown("status").splitlines() if line.startswith("agent-")}
    assert "59 s thinking model m" in said["agent-1"]
    assert "nothing from its model for 2 min · thinking model m" in said["agent-2"]
    assert "2 min tool model m" in said["agent-3"]
    assert "nothing from its program for 2 min" in said["agent-4"]
    assert "2 min retrying model m" in said["agent-5"]


def test_status_says_who_is_suspected_to_be_dead(layout: Layout, shown: Shown) -> None:
    """Once half of its patience is over; one that computes in silence, or has been found already, is not."""
    beat = {"phase": "tool", "message": "pytest", "age": 800.0, "ttl": 1200.0}
    agents = [
        agent_status("agent-1", beat={**beat, "silent": 800.0}),
        agent_status("agent-2", beat={**beat, "silent": 100.0}),
        agent_status("agent-3", beat={**beat, "silent": 800.0}, stall={"text": "nudged: silent for 20 min"}),
    ]
    write_status(layout, agents=agents)
    with hold_lock(layout.lock):
        said = {line.split()[0]: line for line in shown("status").splitlines() if line.startswith("agent-")}
    assert "suspected: no sign of life for 13 min, at most 20 min · tool pytest" in said["agent-1"]
    assert "13 min tool pytest" in said["agent-2"]
    assert "nudged: silent for 20 min · 13 min tool pytest" in said["agent-3"]


def test_status_warns_of_a_run_that_nobody_supervises(layout: Layout, shown: Shown) -> None:
    write_status(layout, wall=stamp(7200))
    said = shown("status")
    assert "· dead ·" in said
    assert "nobody supervises this run; last sign of life 2 h ago: continue it with `coral resume`" in said
    write_status(layout, "left", wall=stamp(600), reason={"text": "an upgrade"})
    said = shown("status")
    assert "· left ·" in said
    assert "the supervisor left 10 min ago; agents and grades continue; `coral resume` takes them over" in said
    with hold_lock(layout.lock):
        assert "· running ·" in shown("status")
    write_status(layout, "stopped")
    said = shown("status")
    assert "\nstopped; continue it with `coral resume`" in said
    assert json.loads(shown("status", "--json"))["supervisor"] is None


def test_runs_lists_the_newest_first(layout: Layout, shown: Shown, tmp_path: Path) -> None:
    other = make_run(tmp_path / "runs", task="other")
    lines = shown("runs").splitlines()
    assert [line.split()[0] for line in lines[1:]] == [other.root.name, layout.root.name]
    assert [row["task"] for row in json.loads(shown("runs", "--json", "--task", "toy"))] == ["toy"]
    assert [row["state"] for row in json.loads(shown("runs", "--json"))] == ["dead", "dead"]
    before = json.loads(shown("runs", "--json"))
    (layout.agents / ".agent-1.broken-0123").mkdir()
    assert json.loads(shown("runs", "--json")) == before


def test_one_index_is_open_at_a_time_however_many_runs_have_lost_their_status(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes files, of which a process may have a thousand."""
    for _ in range(3):
        make_run(layout.root.parents[1])
    counts = list[int]()

    class Counted(Index):
        def refresh(self) -> None:
            super().refresh()
            links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
            counts.append(sum(link.name == "index.sqlite" for link in links))

    monkeypatch.setattr(run_view, "Index", Counted)
    shown("runs")
    assert counts == [counts[0]] * 3


def test_who_leads_is_known_from_the_records_where_the_status_is_lost(layout: Layout, shown: Shown) -> None:
    layout.status.unlink()
    (listed,) = json.loads(shown("runs", "--json"))
    assert (listed["lead"]["number"], listed["lead"]["proven"]) == (4, True), "nothing is better than the best"
    Store(layout.attempts).publish(attempt(5, 9.0, published_at=stamp(-5)))
    (listed,) = json.loads(shown("runs", "--json"))
    assert (listed["best"]["number"], listed["lead"]["number"], listed["lead"]["proven"]) == (4, 5, False)
    assert (listed["attempts"], RunView(layout).failed) == (5, 1)
    assert shown("runs").splitlines()[1].split()[3:6] == ["2", "5", "2"]
    assert [name for name, _ in RunView(layout).own_bests] == ["agent-2", "agent-1"]
    assert any("#5 " in line for line in shown("lineage").splitlines())


def test_a_folder_without_records_is_listed_as_a_run(layout: Layout, shown: Shown) -> None:
    layout.status.unlink()
    for path in layout.attempts.glob("*.json"):
        path.unlink()
    (listed,) = json.loads(shown("runs", "--json"))
    assert (listed["best"], listed["lead"], listed["attempts"]) == (None, None, 0)


def test_a_narrow_terminal_keeps_the_names_of_runs(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "66")
    heads = shown("runs").splitlines()
    assert heads[0].split()[:3] == ["run", "task", "state"]
    assert heads[1].split()[:3] == [layout.root.name, "toy", "dead"]
    write_status(layout, agents=[agent_status("agent-1", phase="interrupted")])
    assert shown("status").splitlines()[-2].split()[-2:] == ["last", "beat"]
    monkeypatch.setenv("COLUMNS", "84")
    assert shown("status").splitlines()[-2].split()[-2:] == ["next", "heartbeat"]


# log and show


def test_log_is_the_leaderboard_and_marks_what_a_candidate_may_have_written(layout: Layout, shown: Shown) -> None:
    closed = Store(layout.attempts).read(4)
    Store(layout.attempts).publish(replace(closed, channel="closed"))
    assert "channel  closed" in shown("show", "4")
    assert "channel  open: code of the candidate may have written the result" in shown("show", "1")
    lines = shown("log").splitlines()
    assert [line.split()[:5] for line in lines[1:4]] == [
        ["4", "2", "+1", "new", "best"],
        ["1", "1.5", "+0.5", "new", "best,"],
        ["3", "1.25", "+0.25", "worse,", "open"],
    ]
    assert lines[4] == "4 attempts in all, 1 without a score: `coral log --recent`"
    write_status(layout, direction="minimize")
    assert [row["number"] for row in json.loads(shown("log", "--json"))] == [3, 1, 4]


def test_feedback_cannot_change_the_order_in_which_it_is_shown(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(attempt(5, 9.0, feedback="fold 1: \u202e5.0 -> 9.0"))
    assert shown("show", "5").splitlines()[-1] == "fold 1: \\u202e5.0 -> 9.0"


def test_log_recent_shows_failures_with_their_reason(layout: Layout, shown: Shown) -> None:
    lines = shown("log", "--recent").splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["4", "3", "2", "1", "0"]
    assert lines[3].endswith("try 2 · two circles overlap")
    assert [row["number"] for row in json.loads(shown("log", "--recent", "-n", "2", "--json"))] == [4, 3]
    (layout.attempts / "000002.json").unlink()  # the one that failed
    assert shown("log", "-n", "1").splitlines()[-1] == "3 attempts in all: `coral log -n 0`"
    Store(layout.attempts).publish(attempt(5, 1.5, tree=f"{1:040x}", verdict=Verdict.TIED))  # -n 0 lists no more
    assert shown("log").splitlines()[-1] == "4 attempts in all: `coral log --recent -n 0` lists each"
    assert shown("log", "-n", "1").splitlines()[-1] == "4 attempts in all: `coral log -n 0`"


def test_log_filters(layout: Layout, shown: Shown) -> None:
    store = Store(layout.attempts)
    store.publish(attempt(5, 9.0, kind=Kind.TUNE, feedback="Gap found"))
    store.publish(attempt(6, None, verdict=Verdict.VOID, reason="ours"))

    def numbers(*options: str) -> list[int]:
        return [row["number"] for row in json.loads(shown("log", "--json", *options))]

    assert numbers() == [4, 1, 3]
    assert numbers("--agent", "agent-2") == [1, 3]
    assert numbers("--kind", "tune") == [5]
    assert "+8" not in shown("log", "--kind", "tune"), "its grader may have another rule, so it is not compared"
    assert numbers("--kind", "baseline") == [0]
    assert numbers("--recent", "--search", "gap FOUND") == [5]
    assert numbers("--search", "TRY 4") == [4]
    assert shown("log", "--search", "nowhere") == "no attempt matches"
    assert shown("log", "--agent", "agent-9", code=1).endswith("its agents: agent-1, agent-2")


@pytest.mark.parametrize("words", [("log", "-n"), ("runs", "-n"), ("transcript", "-n"), ("notes", "--recent")])
def test_a_negative_count_is_refused(words: tuple[str, ...], shown: Shown) -> None:
    said = shown(*words, "-3", code=1)
    assert "'-3' is not a whole number from 0" in said


def test_what_was_measured_again_is_one_line_with_its_own_score_and_with_all(layout: Layout, shown: Shown) -> None:
    store = Store(layout.attempts)
    assert "median" not in shown("log")
    for number, score, verdict in ((5, 1.9, Verdict.TIED), (6, 1.85, Verdict.NEW_BEST)):
        store.publish(attempt(number, score, kind=Kind.CONFIRM, of=4, tree=store.read(4).tree, verdict=verdict))
    heading, *recent = shown("log", "--recent").splitlines()
    assert ["proves #4" in recent[0], "confirm of #4" in recent[1]] == [True, True]
    assert heading.split()[:6] == ["#", "score", "median", "mean", "±sd", "n"]
    assert recent[0].split()[:7] == ["6", "1.85", "–", "–", "–", "–", "+0.85"]
    assert recent[2].split()[:7] == ["4", "2", "1.9", "1.916666667", "0.076", "3", "+0.9"]
    assert shown("show", "6").splitlines()[0].split()[2:4] == ["proves", "#4"]
    assert shown("show", "4").splitlines()[0].startswith("#4 1.9  new best  +0.9 against the seed")
    store.publish(attempt(7, 1.0, parent=f"{4:040x}"))
    assert "#3 1.25 → #4 1.9" in shown("show", "7")
    head, first, second, *_ = shown("log").splitlines()
    assert head.split()[:6] == ["#", "score", "median", "mean", "±sd", "n"]
    assert first.split()[:7] == ["4", "2", "1.9", "1.916666667", "0.076", "3", "+0.9"]
    assert second.split()[:7] == ["1", "1.5", "–", "–", "–", "–", "+0.5"]
    best, *_ = json.loads(shown("log", "--json"))
    latest = {line["number"]: line for line in json.loads(shown("log", "--recent", "--json"))}
    assert latest[4] == best
    assert best["measured"] == {
        "median": 1.9,
        "mean": pytest.approx(1.91667, 1e-4),
        "deviation": pytest.approx(0.07638, 1e-3),
        "count": 3,
    }
    assert json.loads(shown("show", "4", "--json"))["measured"] == best["measured"]
    assert "median 1.9, mean 1.916666667, standard deviation 0.076: 2, 1.9, 1.85" in shown("show", "4")


def test_without_status_the_seed_has_its_median(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(attempt(5, 1.5, agent="", kind=Kind.CONFIRM, of=0, verdict=Verdict.TIED))
    layout.status.unlink()
    assert shown("show", "4").splitlines()[0] == "#4 2  new best  +0.75 against the seed"


def test_a_seed_that_has_failed_is_said_to_have_no_score(tmp_path: Path, shown: Shown) -> None:
    layout = make_run(tmp_path / "more", scores=(None, 1.5))
    write_status(layout, baseline=None)
    best = shown("status", "--run", str(layout.root)).splitlines()[1]
    assert best == "best 1.5 #1 by agent-2  the seed has no score  try 1"
    write_status(layout, baseline=None, best=None, lead=None)
    assert shown("status", "--run", str(layout.root)).splitlines()[1] == "no score yet"


def test_show_prints_all_of_one_attempt(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(
        attempt(5, 1.75, metrics={"gap": 1 / 3, "\x1b[31mrows": 5}, feedback="two rows\x1b[2J\ntouch", seconds=2.5)
    )
    layout.grade(5).mkdir(parents=True)
    (layout.grade(5) / "plot.svg").write_text("")
    said = shown("show", "#5")
    assert said.splitlines()[0] == "#5 1.75  own best  +0.75 against the seed"
    assert "in 2.5 s" in said
    assert "#0 1 → #1 1.5 → #2 – → #3 1.25 → #4 2" in said
    assert "0.3333333333" in said
    assert "plot.svg" in said
    assert said.endswith("two rows[2J\ntouch")
    assert "\x1b" not in said


def test_a_record_that_is_not_there_or_cannot_be_read(layout: Layout, shown: Shown) -> None:
    write_status(layout, grading={"running": [5], "queued": []})
    assert "it is not graded yet\n  `coral wait 5`" in shown("show", "5", code=1)
    assert "there is no such attempt\n  the last one is #4" in shown("show", "77", code=1)
    (layout.attempts / "000003.json").write_text("{")
    assert shown("log").endswith("1 record cannot be read")
    assert "cannot read attempt #3" in shown("show", "3", code=1)


# notes and skills


def _write_notes(layout: Layout) -> None:
    for number, (kind, title) in enumerate(
        [("note", "Rows gain 0.1"), ("synthesis", "Old synthesis"), ("note", "Edges lose"), ("synthesis", "After 40")]
    ):
        front = {"title": title, "author": "agent-1", "kind": kind, "attempts": [3, 4], "created": stamp(400 - number)}
        knowledge.write_note(
            layout.shared, f"note-{number}", front, f"# {title}\n\n- point of **{number}** in #3\x1b[2J"
        )


def test_notes_begin_with_the_latest_synthesis(layout: Layout, shown: Shown) -> None:
    assert shown("notes") == "no notes yet: agents write them as they reflect"
    _write_notes(layout)
    said = shown("notes")
    assert said.index("best 2 #4") < said.index("4  After 40  agent-1")
    assert said.count("After 40") == 1
    assert "point of 3 in #3" in said
    assert "point of 0" not in said
    assert said.index("as of #4: it knows of all attempts") < said.index("Edges lose") < said.index("Rows")
    assert "Old synthesis" not in said
    assert "Old synthesis" in shown("notes", "--all")
    assert "\x1b" not in said


def test_notes_list_what_agents_have_taken_up(layout: Layout, shown: Shown) -> None:
    _write_notes(layout)
    assert "Taken up" not in shown("notes")
    head = {"title": "Rows end near 1.9", "author": "agent-2", "claims": "rows of\x1b unequal height"}
    knowledge.write_note(layout.shared, "rows-end", head, "x")
    said = shown("notes")
    assert "Taken up" in said
    assert re.search(r"agent-2 +rows of unequal height +\S.* +rows-end", said)


def test_only_the_notes_that_are_shown_are_parsed(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_notes(layout)
    for number in range(300):
        front = {"title": f"Step {number}", "created": f"2020-01-01T00:00:{number // 60:02}.{number:03}Z"}
        knowledge.write_note(layout.shared, f"step-{number}", front, "It is about a synthesis.")
    escaped = layout.shared / "notes" / "odd.md"
    escaped.write_text(
        '---\ncreated: 2021-01-01T00:00:00.000Z\ntitle: Odd\nkind: "synth\\u0065sis"\n---\n\nAll in all.\n'
    )
    read: list[str] = []
    split = frontmatter.split
    monkeypatch.setattr(frontmatter, "split", lambda text: read.append(text) or split(text))
    said = shown("notes")
    assert said.index("After 40") < said.index("Step 299")
    assert "287 more" in said
    assert len(read) < 150
    assert "Odd" in shown("notes", "--all")
    read.clear()
    assert "It is about a synthesis." in shown("notes", "--read", "step-7")
    assert len(read) < 10


def test_notes_are_compared_with_the_records(layout: Layout, shown: Shown) -> None:
    assert shown("notes", "--disputed") == "no note is disputed or stale"
    first, second = (Store(layout.attempts).read(number).score for number in (1, 4))
    assert first is not None
    assert second is not None
    gained = second - first
    right, wrong = f"#1 to #4, {gained:+.4f}", f"#1 to #4, {gained + 5:+.4f}"
    knowledge.write_note(layout.shared, "right", {"title": "Right", "created": "2026-01-01"}, right)
    knowledge.write_note(
        layout.shared, "wrong", {"title": "Wrong", "created": "2026-01-02", "kind": "synthesis"}, wrong
    )
    knowledge.write_note(layout.shared, "old", {"title": "Old", "superseded_by": "right", "attempts": [99]}, "x")
    said = shown("notes")
    assert f"disputed  {wrong}: the records say {gained:+.6g}" in said
    assert "Old" not in said
    assert "Old (superseded by right) (disputed)" in shown("notes", "--all")
    assert "1 figure agrees with the records" in shown("notes", "--read", "right")
    assert "Right" not in shown("notes", "--disputed")
    (found,) = [note for note in json.loads(shown("notes", "--json")) if note["name"] == "wrong"]
    assert found["evidence"]["disputed"] == [f"{wrong}: the records say {gained:+.6g}"]
    assert (found["evidence"]["agreeing"], found["state"]) == (0, "disputed")


def test_notes_are_read_searched_and_listed(layout: Layout, shown: Shown) -> None:
    _write_notes(layout)
    assert "point of 0 in #3" in shown("notes", "--read", "1")
    assert "point of 2 in #3" in shown("notes", "--read", "note-2")
    assert "there is none of that number or name" in shown("notes", "--read", "9", code=1)
    found = shown("notes", "--search", "gain ROWS")
    assert "Rows gain 0.1" in found
    assert "Edges" not in found
    assert shown("notes", "--search", "zebra") == "no note contains these words"
    recent = json.loads(shown("notes", "--recent", "2", "--json"))
    assert [note["title"] for note in recent] == ["After 40", "Edges lose"]
    assert [note["synthesis"] for note in json.loads(shown("notes", "--json"))] == [True, False, True, False]


def test_agents_that_work_alone_see_their_own_notes(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent in ("agent-1", "agent-2"):
        own = layout.shared_of(agent, share=False)
        knowledge.create(own)
        knowledge.write_note(own, "mine", {"title": f"of {agent}", "author": agent}, "text")
    assert len(json.loads(shown("notes", "--json"))) == 2
    monkeypatch.chdir(layout.clone("agent-2"))
    assert [note["title"] for note in json.loads(shown("notes", "--json"))] == ["of agent-2"]


def test_an_agent_that_works_alone_sees_its_own_attempts_and_the_seed(
    layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent in ("agent-1", "agent-2"):
        knowledge.create(layout.shared_of(agent, share=False))
    everything = len(json.loads(shown("log", "--recent", "--json")))
    monkeypatch.chdir(layout.clone("agent-2"))
    listed = json.loads(shown("log", "--recent", "--json"))
    assert {record["agent"] for record in listed} == {"", "agent-2"}
    assert len(listed) < everything == 5
    assert {record["agent"] for record in json.loads(shown("log", "--json"))} == {"agent-2"}
    for seen in ("0", "1", "3"):
        shown("show", seen)
    for command in ("show", "checkout", "wait"):
        refusal = shown(command, "2", code=1).splitlines()
        assert refusal[0].endswith("#2: it is not yours")
        assert refusal[1:] == ["  agents of this run do not share: `coral log` lists what is yours"]
    assert "it is not yours" in shown("checkout", f"{2:040x}", code=1)
    for own in (1, 3):
        (layout.attempts / f"{own:06}.json").unlink()
    assert shown("log") == "no attempt yet"


def test_skills_are_listed_and_read(layout: Layout, shown: Shown) -> None:
    assert shown("skills").startswith("no skills yet")
    knowledge.write_skill(layout.shared, "polish", {"description": "solve the pairs", "author": "agent-2"}, "1. find\n")
    (layout.shared / "skills" / "polish" / "solve.py").write_text("")
    assert shown("skills").splitlines()[1] == "polish  agent-2  solve the pairs"
    said = shown("skills", "--read", "polish")
    assert "1 find" in said
    assert "solve.py" in said
    assert "there is none of that name\n  there are: polish" in shown("skills", "--read", "x", code=1)


# alerts


def test_an_alert_stands_on_one_line_that_has_an_end(layout: Layout, shown: Shown) -> None:
    text = "no space\non \x1b[31mthe disk " + "x" * 5000
    write_events(layout, {"type": "alert", "id": "run-alert-1", "agent": "agent-1", "text": text, "at": stamp(60)})
    said = " ".join(shown("alerts").split())
    assert "1 agent-1: no space on" in said
    assert 1900 < said.count("x") < 2000
    assert "\x1b" not in said


# heartbeats


def test_heartbeats_of_every_owner_in_one_table(layout: Layout, shown: Shown) -> None:
    lines = shown("heartbeat").splitlines()
    assert lines[1].split()[:2] == ["fleet", "consolidate"]
    assert "8 attempts" in lines[1]
    assert "built-in (protected)" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == ["agent-1", *OF_AGENT, "agent-2", *OF_AGENT]
    assert "every 5 attempts in a row without improvement" in lines[3]
    assert "4 without improvement" in lines[3]
    data = json.loads(shown("heartbeat", "--agent", "agent-2", "--json"))
    assert list(data) == ["fleet", "agent-2"]
    assert next(row for row in data["agent-2"] if row["name"] == "redirect")["next"] == "4 without improvement"


def test_no_heartbeat_is_due_for_an_agent_that_has_retired(layout: Layout, shown: Shown) -> None:
    write_status(layout, agents=[agent_status("agent-1"), agent_status("agent-2", phase="retired", next=[])])
    data = json.loads(shown("heartbeat", "--json"))
    assert {row["next"] for row in data["agent-2"]} == {""}
    assert "4 without improvement" in {row["next"] for row in data["agent-1"]}


def test_the_nearest_heartbeat_is_shown_unless_it_follows_every_attempt(layout: Layout, shown: Shown) -> None:
    near = [{**due_data("foo", 1, Unit.ATTEMPTS), "after_each": False}]
    always = [{**due_data("reflect", 1, Unit.ATTEMPTS), "after_each": True}]
    write_status(layout, agents=[agent_status("agent-1", next=[*always, *near])])
    assert shown("status").splitlines()[-1].endswith("foo 1")
    write_status(layout, agents=[agent_status("agent-1", next=always)])
    assert shown("status").splitlines()[-1].endswith("reflect next attempt")


def test_where_nothing_has_a_score_the_list_says_where_to_look(layout: Layout, shown: Shown) -> None:
    for number in (1, 3, 4):
        (layout.attempts / f"{number:06d}.json").unlink()
    said = "no attempt has a score: 1 without one; `coral log --failures` groups them by their reason"
    assert shown("log") == said


# from where


def test_a_run_is_found_from_anywhere(
    layout: Layout, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for place in (tmp_path / "deep" / "er", layout.root, layout.clone("agent-1"), layout.shared / "notes"):
        monkeypatch.chdir(place)
        assert json.loads(shown("status", "--json"))["folder"] == str(layout.root)
    task = tmp_path / "tasks" / "toy"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text("")
    layout.task_file.write_text(f"# comment\norigin: {task / 'task.yaml'}\n")
    write_status(make_run(tmp_path / "runs", task="other"))
    monkeypatch.chdir(task)
    assert json.loads(shown("status", "--json"))["folder"] == str(layout.root)


def test_a_run_is_named(layout: Layout, shown: Shown, tmp_path: Path) -> None:
    newer = make_run(tmp_path / "runs", task="other")
    write_status(newer, task="other")

    def chosen(*options: str) -> str:
        return str(json.loads(shown("status", "--json", *options))["folder"])

    assert chosen() == str(newer.root)
    assert chosen("--task", "toy") == str(layout.root)
    for name in (str(layout.root), layout.root.name, f"toy/{layout.root.name}", layout.root.name[-6:]):
        assert chosen("--run", name) == str(layout.root)
    assert "2 fit\n  give more of its name" in shown("status", "--run", layout.root.name[:4], code=1)
    assert "cannot find a run named 'zz' from this folder" in shown("status", "--run", "zz", code=1)
    assert "no run of the task 'zz'" in shown("status", "--task", "zz", code=1)
    assert "is not the folder of one" in shown("status", "--run", str(tmp_path), code=1)


def test_a_hint_for_a_run_elsewhere_can_be_typed(
    layout: Layout, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy elsewhere has no name that leads to it."""
    copy = shutil.copytree(layout.root, tmp_path / "a copy")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    told = shown("status", "--run", str(copy))  # a long path may be wrapped, at its space too
    assert "".join(f"coral resume --run '{copy}'".split()) in "".join(told.split())


@pytest.mark.parametrize("command", LOOKING)
def test_without_a_run_there_is_a_hint(
    command: str, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = shown(*command.split(), code=1)
    assert said.startswith("coral: cannot find ")
    other = "a folder of runs: `coral runs FOLDER`" if command == "runs" else "one: --run PATH"
    assert said.endswith(f"start one with `coral start TASK`, or name {other}")


# damage


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("harm", ["garbage", "gone", "shapes", "records"])
def test_damaged_files_do_not_break_a_command(command: str, harm: str, layout: Layout, shown: Shown) -> None:
    write_events(layout, {"type": "published"})
    match harm:
        case "garbage":
            for path in (layout.status, layout.events, layout.heartbeats / "fleet.yaml", layout.task_file):
                path.write_bytes(b"\x00\xff{[\x1b")
            (layout.shared / "notes" / "bad.md").write_bytes(b"\x00\xff")
        case "gone":
            layout.status.unlink()
            for folder in (layout.heartbeats, layout.shared, layout.events.parent):
                shutil.rmtree(folder)
            layout.heartbeats.mkdir()
        case "shapes":
            wrong = {"agents": [1, {"beat": 3, "next": "x"}], "best": [], "budget": 7, "grading": None, "alerts": "no"}
            write_status(layout, clock="soon", **wrong)
        case "records":
            (layout.attempts / "000003.json").write_text('{"number": 3')
    shown(*command.split())


def test_a_difference_has_no_escape_sequence_of_its_own() -> None:
    assert coloured("+\x1b[2J") == "\x1b[32m+␛[2J\x1b[0m"
    assert coloured("+a\x9b2J\x08\u202eb") == "\x1b[32m+a2J\\u202eb\x1b[0m"


def test_a_difference_without_colour_obeys_nothing_on_a_terminal_and_is_as_it_is_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("workspace.submit.diff", lambda _: "+\x1b[2J\x9bm")
    monkeypatch.setattr("coral.cli.commands.diff.agent_here", lambda: (Layout(tmp_path), "agent-1"))
    monkeypatch.setenv("NO_COLOR", "1")
    said = []
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda is_terminal=is_terminal: is_terminal)
        assert main(["diff"]) == 0
        said.append(capsys.readouterr().out)
    assert said == ["+␛[2Jm\n", "+\x1b[2J\x9bm\n"]


def test_the_epoch_is_said_and_the_attempts_of_earlier_ones_are_marked(layout: Layout, shown: Shown) -> None:
    store = Store(layout.attempts)
    store.publish(attempt(5, 0.5, kind=Kind.BASELINE, agent="", title="the seed", epoch=2, verdict=Verdict.NEW_BEST))
    write_status(layout, epoch=2, baseline=0.5, baseline_number=5)
    assert shown("log") == (
        "no attempt of this epoch yet; 4 attempts of an earlier epoch, which are not compared: `coral log --recent`"
    )
    store.publish(attempt(6, 0.75, epoch=2))
    assert "4 attempts of an earlier epoch" in shown("log")
    assert [row["number"] for row in json.loads(shown("log", "--json"))] == [6]
    rows = shown("log", "--recent").splitlines()[1:]
    assert ["epoch 1" in row for row in rows] == [False, False, True, True, True, True, True]
    assert " · epoch 2 · " in shown("status").splitlines()[0]
    assert "epoch 1" in shown("show", "4").splitlines()[0]
    assert "against the seed" not in shown("show", "4")
    assert "+0.25 against the seed" in shown("show", "6")
    assert shown("log", "--failures") == "no attempt of this epoch failed"
    store.publish(attempt(7, None, epoch=2, reason="no sum"))
    assert json.loads(shown("log", "--failures", "--json")) == [{"reason": "no sum", "count": 1, "attempts": [7]}]


def test_what_was_not_graded_on_the_hold_out_is_named_with_the_command_that_does_it(
    layout: Layout, shown: Shown
) -> None:
    grading = {"slots": 1, "running": [], "queued": [], "holdout": [4], "paused": False}
    write_status(layout, "stopped", grading=grading)
    assert "#4: not graded on the hold-out yet; `coral resume" in shown("status")
    write_status(layout, "running", grading=grading)
    assert "not graded on the hold-out yet" not in shown("status")
