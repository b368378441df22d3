"""What the operator orders of agents and of grading, as transcripts."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage

from attempts.progress import Progress
from coral.fleet import events as on
from coral.fleet.agent_state import Order, Phase
from coral.fleet.events import Ending, Outcome
from coral.fleet.reasons import ReasonKind
from coral.fleet.request_kinds import CancelGrade, HoldGrading, Pause, ReleaseGrading, Request, Restart, Retire, Unpause

RULES = replace(QUIET_RULES, slots=1, stall=9e9)
PAUSE, UNPAUSE, RETIRE = Pause(agent="ann"), Unpause(agent="ann"), Retire(agent="ann")
RESTART, FRESH = Restart(agent="ann", fresh=False), Restart(agent="ann", fresh=True)


def fleet() -> Stage:
    """Two agents at work: each has a conversation."""
    stage = Stage(2, RULES)
    stage.at(1, stage.heard("ann"), stage.heard("ben"))
    return stage


def answered(text: str, what: str = "ann") -> list[str]:
    return [f"answer operator: yes, {text}", f"asked: {what}: {text}"]


def test_a_paused_agent_is_interrupted_and_starts_no_more_until_it_goes_on() -> None:
    stage = fleet()
    assert stage.ask("operator", PAUSE) == ["interrupt ann/1", *answered("ann is paused")]
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED)) == ["exited ann: launch 1 ended: interrupted"]
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.PARKED, ReasonKind.PAUSED)
    assert stage.until(5000) == []
    assert not [line for line in stage.at(5000, on.Resumed(away=9.0)) if "spawn" in line]
    assert stage["ann"].order is Order.PAUSE
    lines = stage.ask("operator", UNPAUSE, 5001)
    assert lines == [*answered("ann goes on"), "spawn ann: unpaused, session of ann, told 0"]
    assert stage["ann"].reason.kind is ReasonKind.UNPAUSED
    assert stage["ann"].crashes == 0


def test_what_a_paused_agent_has_submitted_is_graded_and_its_heartbeat_waits() -> None:
    stage = fleet()
    (number,) = stage.in_grading(2, "ann")
    stage.ask("operator", PAUSE, 3)
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.at(5, stage.graded(number, 9.0)) == [f"publish #{number} new best 9"]
    assert stage["ann"].progress == Progress(1, 0, 1)


@pytest.mark.parametrize("ending", [Ending.CLEAN, Ending.CRASHED, Ending.LIMIT])
def test_however_its_launch_ends_a_paused_agent_waits(ending: Ending) -> None:
    stage = fleet()
    stage.ask("operator", PAUSE)
    stage.at(3, stage.exited("ann", ending, until=40.0 if ending is Ending.LIMIT else None))
    assert not [line for line in stage.until(9000) if "spawn ann" in line]
    stage.ask("operator", UNPAUSE, 9001)
    assert stage["ann"].phase is Phase.RUNNING


def test_an_agent_that_waits_is_paused_without_a_signal() -> None:
    stage = fleet()
    stage.at(3, stage.exited("ann", Ending.CRASHED, "boom"))
    assert stage.ask("operator", PAUSE, 3) == answered("ann is paused")
    assert stage.until(5000) == []


def test_a_restart_ends_the_launch_and_begins_another_at_once() -> None:
    stage = fleet()
    assert stage.ask("operator", RESTART) == ["interrupt ann/1", *answered("ann begins again")]
    lines = stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert lines[-1] == "spawn ann/2: restarted, session of ann, told 0"


def test_a_fresh_restart_begins_a_conversation_and_the_launch_after_goes_on_with_it() -> None:
    stage = fleet()
    stage.ask("operator", FRESH)
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED))[-1] == "spawn ann/2: restarted, told 0"
    stage.at(4, stage.heard("ann", "another"))
    stage.ask("operator", RESTART, 5)
    assert stage.at(6, stage.exited("ann", Ending.INTERRUPTED))[-1] == "spawn ann/3: restarted, another, told 0"


def test_a_retired_agent_stays_so_over_a_resume_and_a_restart_brings_it_back() -> None:
    stage = fleet()
    assert stage.ask("operator", RETIRE) == [*answered("ann retires"), "interrupt ann/1"]
    lines = stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert lines[-1] == "retired ann: dismissed"
    assert stage["ann"].phase is Phase.RETIRED
    assert not [line for line in stage.at(4, on.Resumed(away=9.0)) if "spawn" in line]
    assert stage.ask("operator", RESTART, 5) == [
        *answered("ann begins again"),
        "spawn ann: restarted, session of ann, told 0",
    ]


def test_a_paused_agent_can_be_retired_and_one_that_crashed_is_started_at_once() -> None:
    stage = fleet()
    stage.ask("operator", PAUSE)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.ask("operator", RETIRE, 4)[0] == "retired ann: dismissed"
    stage = fleet()
    stage.at(3, stage.exited("ann", Ending.CRASHED, "boom"))
    assert stage["ann"].crashes == 1
    assert stage.ask("operator", RESTART, 4)[-1] == "spawn ann/2: restarted, session of ann, told 0"
    assert stage["ann"].crashes == 0


@pytest.mark.parametrize(
    ("orders", "refusal"),
    [
        ([UNPAUSE], "cannot unpause ann: it is not paused (coral status shows who is)"),
        ([PAUSE, PAUSE], "cannot pause ann: it is paused already (coral agent unpause ann)"),
        ([RETIRE, PAUSE], "cannot pause ann: it has retired (coral agent restart ann)"),
        ([RETIRE, RETIRE], "cannot retire ann: it has retired (coral agent restart ann)"),
        ([Pause(agent="zoe")], "cannot pause 'zoe': there is no such agent (there are: ann, ben)"),
        ([ReleaseGrading()], "cannot release the grading: it is not held (coral status shows what is graded)"),
        ([HoldGrading(), HoldGrading()], "cannot hold the grading: it is held already (coral grading release)"),
        (
            [CancelGrade(number=7)],
            "cannot cancel #7: it is neither waiting nor being graded (coral status shows which)",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(orders: list[Request], refusal: str) -> None:
    stage = fleet()
    for order in orders[:-1]:
        stage.ask("operator", order)
    (answer, *_) = [line for line in stage.ask("operator", orders[-1], 3) if line.startswith("answer")]
    assert answer == f"answer operator: no, {refusal}"


@pytest.mark.parametrize("order", [PAUSE, UNPAUSE, RESTART, RETIRE, HoldGrading(), CancelGrade(number=1)])
def test_only_the_operator_gives_orders(order: Request) -> None:
    assert fleet().ask("ann", order) == ["answer ann: no, cannot do this for an agent (only the operator can)"]


def test_a_paused_agent_whose_program_cannot_be_killed_is_not_started_beside_it() -> None:
    stage = fleet()
    stage.ask("operator", PAUSE)
    stage.until(100)
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.RETIRED, ReasonKind.UNKILLABLE)
    for order, text in (
        (UNPAUSE, "unpause ann: it has retired"),
        (RESTART, "restart ann: its program cannot be killed"),
    ):
        assert stage.ask("operator", order, 101)[0].startswith(f"answer operator: no, cannot {text}")


def test_an_agent_without_budget_cannot_be_restarted() -> None:
    stage = Stage(2, replace(RULES, own=replace(RULES.own, attempts=1)))
    (number,) = stage.in_grading(2, "ann")
    stage.at(3, stage.graded(number, 1.0), stage.exited("ann"))
    (answer,) = [line for line in stage.ask("operator", RESTART, 4) if line.startswith("answer")]
    assert answer.startswith("answer operator: no, cannot restart ann: its own budget is used up")


def test_while_grading_is_held_no_grade_begins_and_those_that_run_go_on() -> None:
    stage = fleet()
    (number,) = stage.in_grading(2, "ann")
    text = "no grade begins; submissions wait"
    assert stage.ask("operator", HoldGrading(), 3) == answered(text, "grading")
    stage.at(4, stage.submission("ben"))
    assert stage.at(5, stage.taken(2)) == []
    assert stage.at(6, stage.graded(number, 2.0)) == [f"publish #{number} new best 2"]
    assert stage.until(5000) == []
    assert stage.ask("operator", ReleaseGrading(), 5001)[-1] == "grade #2/1: commit 2"


def test_a_grade_that_is_cancelled_is_void_whatever_it_comes_to() -> None:
    cancel = CancelGrade(number=1)
    for outcome in (Outcome.SCORED, Outcome.CRASHED, Outcome.LOST):
        stage = fleet()
        stage.in_grading(2, "ann")
        assert stage.ask("operator", cancel, 3) == ["terminate #1/1", *answered("#1 is cancelled", "grading")]
        assert stage.at(4, stage.graded(1, 9.0, outcome=outcome)) == ["publish #1 void (the operator cancelled it)"]
        assert stage["ann"].progress == Progress(0, 0, 0)


def test_an_attempt_that_waits_is_cancelled_at_once() -> None:
    stage = fleet()
    stage.in_grading(2, "ann", "ben")
    assert stage.ask("operator", CancelGrade(number=2), 3)[0] == "publish #2 void (the operator cancelled it)"
    assert stage.at(4, stage.graded(1, 9.0)) == ["publish #1 new best 9"]
    stage = fleet()
    stage.at(2, stage.submission("ann"))
    assert stage.ask("operator", CancelGrade(number=1), 3)[0] == "publish #1 void (the operator cancelled it)"
    assert stage.at(4, on.TakenIn(number=1, commit="c", tree="t", parent="")) == []


def test_who_waits_is_parked_at_once_and_who_is_ending_ends_first() -> None:
    stage = fleet()
    stage.at(3, stage.exited("ann", Ending.CRASHED, "boom"))
    stage.ask("operator", PAUSE, 3)
    assert (stage["ann"].phase, stage["ann"].deadline, stage["ann"].reason.kind) == (
        Phase.PARKED,
        None,
        ReasonKind.PAUSED,
    )
    stage = fleet()
    stage.ask("operator", RESTART)
    stage.ask("operator", PAUSE, 3)
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.INTERRUPTED, ReasonKind.RESTARTED)
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.PARKED, ReasonKind.PAUSED)


@pytest.mark.parametrize(
    ("order", "kind"),
    [(UNPAUSE, ReasonKind.UNPAUSED), (RESTART, ReasonKind.RESTARTED), (RETIRE, ReasonKind.DISMISSED)],
)
def test_an_order_that_follows_a_pause_replaces_its_reason(order: Request, kind: ReasonKind) -> None:
    stage = fleet()
    stage.ask("operator", PAUSE)
    stage.ask("operator", order, 3)
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.INTERRUPTED, kind)


@pytest.mark.parametrize("orders", [[PAUSE, UNPAUSE], [RESTART], [RETIRE]])
def test_an_order_keeps_another_reason_for_which_a_launch_ends(orders: list[Request]) -> None:
    stage = Stage(2, replace(RULES, stall=50.0))
    stage.at(1, stage.heard("ann"), stage.heard("ben"))
    stage.until(51)
    assert stage["ann"].reason.kind is ReasonKind.STALLED
    for order in orders:
        stage.ask("operator", order, 52)
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.INTERRUPTED, ReasonKind.STALLED)


def test_a_restart_tries_a_closed_account_again() -> None:
    stage = Stage(2, replace(RULES, accounts={"ann": "acme"}))
    stage.at(1, stage.heard("ann"), stage.heard("ben"))
    stage.at(2, stage.exited("ann", Ending.TERMINAL, "a wrong key"))
    assert stage["ann"].phase is Phase.RETIRED
    assert stage.ask("operator", RESTART, 3)[-1] == "spawn ann/2: restarted, session of ann, told 0"


def test_a_cancelled_grade_that_does_not_start_or_cannot_be_killed_is_void() -> None:
    stage = fleet()
    stage.in_grading(2, "ann")
    stage.ask("operator", CancelGrade(number=1), 3)
    assert stage.at(4, stage.not_started("#1")) == ["publish #1 void (the operator cancelled it)"]
    stage = fleet()
    stage.in_grading(2, "ann")
    stage.ask("operator", CancelGrade(number=1), 3)
    assert stage.until(100)[-1].endswith("publish #1 void (the operator cancelled it)")


def test_what_a_grader_says_of_a_void_attempt_is_in_its_record() -> None:
    stage = fleet()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.VOID, reason="no GPU")) == ["publish #1 void (no GPU)"]
    assert stage.published().seconds == 2.0


def test_alerts_are_acknowledged_up_to_a_number_or_all_so_far() -> None:
    stage = Stage()
    (line,) = stage.at(1, stage.asks("operator", on.AcknowledgeAlerts(through=None)))
    assert "no, cannot acknowledge alert 0: there is no such alert (there is none yet)" in line
    stage.at(2, *(stage.asks("ann", on.RaiseAlert(text=f"help {number}")) for number in (1, 2, 3)))
    for through, answer, acknowledged in (
        (2, "2 alerts are acknowledged", 2),
        (2, "0 alerts are acknowledged", 2),
        (1, "0 alerts are acknowledged", 2),
        (None, "1 alert is acknowledged", 3),
        (4, "no, cannot acknowledge alert 4: there is no such alert (the last one is 3)", 3),
        (-1, "no, cannot acknowledge alert -1: there is no such alert", 3),
    ):
        (line,) = stage.at(3, stage.asks("operator", on.AcknowledgeAlerts(through=through)))
        assert answer in line, through
        assert stage.fleet.run.alerts_acknowledged == acknowledged
    (line,) = stage.at(4, stage.asks("ann", on.AcknowledgeAlerts(through=None)))
    assert "cannot do this for an agent" in line
