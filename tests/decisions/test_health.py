"""What is wrong with a fleet, since when, and which of it reaches the operator unasked, as transcripts."""

from dataclasses import replace

import pytest
from stage import CHECKPOINT, QUIET_RULES, Stage, attempt_zero

from coral.fleet import events as on
from coral.fleet.agent_state import OutputCounts, Phase, Spent
from coral.fleet.events import Ending
from coral.fleet.health import (
    COSTLY,
    FAILING_LAUNCHES,
    GAINLESS_ATTEMPTS,
    GAINLESS_SECONDS,
    GAINS_COMPARED,
    OUTAGE_SECONDS,
    STUCK_SECONDS,
    HealthLevel,
    Trouble,
    TroubleFound,
    health_of,
    level_of,
)
from coral.fleet.request_kinds import CancelGrade, HoldGrading, Pause, ReleaseGrading, Retire

RULES = replace(QUIET_RULES, slots=1, stall=9e9, grade_timeout=9e8)


def fleet(count: int = 2, **rules: object) -> Stage:
    stage = Stage(count, replace(RULES, **rules))  # type: ignore[arg-type]
    stage.at(1, *[stage.heard(name) for name in stage.names])
    return stage


def troubles(stage: Stage) -> dict[str, float]:
    return dict(stage.fleet.run.troubles)


def test_a_fleet_that_works_is_healthy() -> None:
    stage = fleet()
    stage.tried(2, "ann", 1.0)
    assert (health_of(stage.fleet), troubles(stage)) == ((HealthLevel.HEALTHY, ()), {})


def test_what_is_wrong_is_known_from_when_it_began_until_it_is_over() -> None:
    stage = fleet()
    stage.at(5, on.DiskChecked(problem="the disk is full"))
    stage.ask("operator", HoldGrading(), 6)
    stage.at(9, stage.heard("ann"))
    assert health_of(stage.fleet) == (
        HealthLevel.UNHEALTHY,
        (TroubleFound(Trouble.DISK, since=5), TroubleFound(Trouble.GRADING_HELD, since=6)),
    )
    stage.at(10, on.DiskChecked(problem=""))
    assert health_of(stage.fleet)[0] is HealthLevel.DEGRADED
    stage.ask("operator", ReleaseGrading(), 11)
    assert health_of(stage.fleet)[0] is HealthLevel.HEALTHY
    stage.ask("operator", HoldGrading(), 12)
    assert troubles(stage) == {"grading_held": 12}


def test_a_queue_from_which_nothing_is_published_is_stuck_and_said_once() -> None:
    stage = fleet(grade_timeout=1000.0, slots=0)
    stage.in_grading(2, "ann")
    after = 2002.0  # two time limits
    assert not [line for line in stage.until(after - 1) if "alert" in line]
    assert "alert run-alert-1: attempts wait, and none was published for a long time" in " ".join(stage.until(after))
    assert (troubles(stage), level_of(Trouble.QUEUE_STUCK)) == ({"queue_stuck": after}, HealthLevel.UNHEALTHY)
    assert not [line for line in stage.until(after + 9000) if "alert" in line]
    stage.ask("operator", HoldGrading(), after + 9001)
    assert troubles(stage) == {"grading_held": after + 9001}


def test_a_short_time_limit_makes_no_queue_stuck_soon() -> None:
    stage = fleet(grade_timeout=1.0, slots=0)
    stage.in_grading(2, "ann")
    stage.until(STUCK_SECONDS + 1)
    assert troubles(stage) == {}
    stage.until(STUCK_SECONDS + 2)
    assert troubles(stage) == {"queue_stuck": STUCK_SECONDS + 2}


def test_a_queue_is_stuck_by_how_long_attempts_have_waited_in_it_not_by_how_long_none_came() -> None:
    stage = fleet(grade_timeout=1.0, slots=0)
    first, second = stage.in_grading(9000, "ann", "ben")
    assert troubles(stage) == {}
    stage.ask("operator", CancelGrade(number=first), 9500)
    stage.at(9501, on.Published(number=first))
    stage.until(9000 + STUCK_SECONDS)
    assert troubles(stage) == {}
    stage.until(9500 + STUCK_SECONDS)
    assert troubles(stage) == {"queue_stuck": 9500 + STUCK_SECONDS}
    stage.ask("operator", CancelGrade(number=second), 12000)
    stage.at(12001, on.Published(number=second))
    stage.in_grading(20000, "ann")
    assert troubles(stage) == {}


def test_a_grade_on_the_hold_out_that_waits_makes_no_queue_stuck() -> None:
    stage = fleet(grade_timeout=1.0, slots=0, holdout_timeout=60.0)
    assert [attempt.is_holdout for attempt in stage.fleet.pending.values()] == [True]
    stage.until(2 * STUCK_SECONDS)
    assert troubles(stage) == {}


def test_a_queue_that_was_held_is_not_stuck_when_it_is_released() -> None:
    stage = fleet(grade_timeout=1.0, slots=0)
    stage.in_grading(2, "ann")
    stage.ask("operator", HoldGrading(), 3)
    stage.ask("operator", ReleaseGrading(), 9000)
    assert troubles(stage) == {}
    stage.until(9000 + STUCK_SECONDS)
    assert troubles(stage) == {"queue_stuck": 9000 + STUCK_SECONDS}


def test_a_fleet_that_finds_nothing_better_for_hours_is_reported_until_it_does() -> None:
    stage = fleet()
    stage.tried(2, "ann", 5.0)
    for number in range(GAINLESS_ATTEMPTS - 1):
        stage.tried(3 + number, "ben", 1.0)
    begun = 2 + GAINLESS_SECONDS
    assert not [line for line in stage.until(begun + 5) if "alert" in line]
    told = stage.tried(begun + 6, "ben", 1.0)
    assert "the fleet has found nothing better for hours" in " ".join(told)
    assert troubles(stage) == {"no_gain": begun + 6}
    stage.tried(begun + 7, "ben", 9.0)
    assert troubles(stage) == {}


def test_a_gain_that_costs_far_more_than_those_before_it_is_reported() -> None:
    stage = fleet()
    used = 0.0
    for number in range(4):
        used += 1.0
        stage.at(10 * number + 2, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=used)))
        stage.tried(10 * number + 3, "ann", float(number + 2))
    gains = stage.fleet.run.gains
    assert (gains.count, gains.money, gains.attempts) == (4, 4.0, 4)
    stage.at(50, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=used + COSTLY)))
    assert troubles(stage) == {}
    said = stage.at(51, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=used + COSTLY + 0.5)))
    assert "more was spent since the last new best" in " ".join(said)
    assert troubles(stage) == {"costly_gain": 51}


def gained(stage: Stage, clock: float, score: float, money: float) -> None:
    stage.at(clock, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=money)))
    stage.tried(clock, "ann", score)


def test_the_cost_of_gains_is_compared_from_the_third_on_if_they_cost_anything() -> None:
    for cost, found in ((0.25, {"costly_gain": 50.0}), (0.0, {})):
        stage = fleet()
        for number in range(1, GAINS_COMPARED + 1):
            gained(stage, 10 * number, 1.0 + number, cost * number)
        stage.at(50, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=99.0)))
        assert troubles(stage) == found


def test_what_an_epoch_before_cost_is_no_cost_of_the_gains_of_this_one() -> None:
    stage = fleet(1)
    gained(stage, 2, 7.0, 1000.0)
    stage.stop(3)
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    stage.at(5, on.Resumed(), on.TaskChanged(baseline=replace(attempt_zero(5.0), epoch=2), heartbeats=False))
    gains = stage.fleet.run.gains
    assert (gains.count, gains.epoch, gains.money, gains.money_before, gains.at) == (0, 2, 1000.0, 1000.0, 5)
    stage.at(6, on.Published(number=gains.best or 0))
    stage.at(6, stage.heard("ann"))
    for number in range(1, GAINS_COMPARED + 1):
        stage.at(10 * number, on.Used(agent="ann", launch=2, figure=Spent(output=9, money=1.0 * number)))
        stage.tried(10 * number, "ann", 5.0 + number)
    assert stage.fleet.run.gains.money_before == 1000.0
    stage.at(50, on.Used(agent="ann", launch=2, figure=Spent(output=9, money=GAINS_COMPARED + COSTLY + 1)))
    assert troubles(stage) == {"costly_gain": 50}


def test_nothing_better_for_exactly_so_long_is_reported_without_an_event() -> None:
    stage = fleet()
    stage.tried(2, "ann", 5.0)
    for number in range(GAINLESS_ATTEMPTS):
        stage.tried(3 + number, "ben", 1.0)
    stage.until(2 + GAINLESS_SECONDS)
    assert troubles(stage) == {"no_gain": 2 + GAINLESS_SECONDS}


def test_one_reason_that_fails_most_attempts_is_wrong_until_it_no_longer_does() -> None:
    stage = fleet()
    clock = 2.0
    while not troubles(stage):
        stage.tried(clock, "ann", None)
        clock += 1
        assert clock < 50, "no failure was reported"
    assert troubles(stage) == {"one_failure": clock - 1}
    count = stage.fleet.run.failed
    for number in range(count):
        assert troubles(stage) == {"one_failure": clock - 1}
        stage.tried(clock + number, "ben", 1.0)
    assert troubles(stage) == {}


def test_failures_of_this_epoch_are_not_outnumbered_by_attempts_before_it() -> None:
    stage = fleet(1)
    for number in range(30):
        stage.tried(2, "ann", 7.0 + number)
    stage.stop(3)
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    stage.at(5, on.Resumed(), on.TaskChanged(baseline=replace(attempt_zero(5.0), epoch=2), heartbeats=False))
    stage.at(6, on.Published(number=stage.fleet.run.best or 0), stage.heard("ann"))
    for number in range(20):
        stage.tried(7 + number, "ann", None)
    assert "one_failure" in troubles(stage)


def test_of_two_troubles_alike_the_earlier_is_named_first() -> None:
    stage = fleet(2, accounts={"ann": "acme"})
    stage.at(5, stage.exited("ann", Ending.LIMIT, until=9000.0))
    stage.ask("operator", HoldGrading(), 9)
    assert [one.trouble for one in health_of(stage.fleet)[1]] == [Trouble.AT_LIMIT, Trouble.GRADING_HELD]
    assert TroubleFound(Trouble.DISK) == TroubleFound(Trouble.DISK, "", 0.0)


def test_void_attempts_in_a_row_pause_the_queue_for_a_time() -> None:
    stage = fleet()
    for number in stage.in_grading(2, "ann", "ann", "ann"):
        stage.voided(3, number)
        stage.at(3, on.Published(number=number))
    assert troubles(stage) == {"queue_paused": 3}
    assert health_of(stage.fleet)[0] is HealthLevel.UNHEALTHY
    stage.until(303)
    assert troubles(stage) == {}


def test_an_agent_that_stalls_and_one_that_answers_no_checkpoint_are_named() -> None:
    stage = fleet(1, stall=100.0)
    stage.until(101)
    assert troubles(stage) == {"agent_stalled ann": 101}
    stage = fleet(1, heartbeats=(CHECKPOINT,), max_defer=1.0)
    for launch in range(1, 4):
        assert "checkpoints_unanswered ann" not in troubles(stage)
        stage.until(1801.0 * launch)
        while stage["ann"].phase is not Phase.INTERRUPTED:
            stage.until(stage.clock + 1)
        stage.resumed("ann", stage.clock)
        stage.at(stage.clock, stage.exited("ann", Ending.INTERRUPTED))
        stage.until(stage.clock + 60)
        stage.at(stage.clock, stage.heard("ann"))
    assert "checkpoints_unanswered ann" in troubles(stage)


def test_the_figures_by_which_something_is_wrong() -> None:
    assert (FAILING_LAUNCHES, OUTAGE_SECONDS, STUCK_SECONDS) == (3, 120.0, 1800.0)
    assert (GAINLESS_SECONDS, GAINLESS_ATTEMPTS, GAINS_COMPARED, COSTLY) == (14400.0, 20, 3, 5.0)


def test_of_few_gains_the_cost_is_not_known() -> None:
    stage = fleet()
    stage.at(2, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=1.0)))
    stage.tried(3, "ann", 2.0)
    stage.tried(4, "ann", 3.0)
    stage.at(5, on.Used(agent="ann", launch=1, figure=Spent(output=9, money=99.0)))
    assert troubles(stage) == {}


def test_an_agent_whose_launches_fail_is_named_until_one_works() -> None:
    stage = fleet(breaker_crashes=99)
    for launch in range(1, FAILING_LAUNCHES + 1):
        stage.until(1000.0 * launch)
        assert troubles(stage) == {}
        stage.at(1000.0 * launch, stage.exited("ann", Ending.CRASHED))
    assert troubles(stage) == {"agent_failing ann": 1000.0 * FAILING_LAUNCHES}
    assert health_of(stage.fleet)[1][0] == TroubleFound(Trouble.AGENT_FAILING, "ann", 1000.0 * FAILING_LAUNCHES)


def test_an_agent_that_only_retries_its_model_is_named() -> None:
    stage = fleet()
    stage.at(5, stage.heard("ann", count=OutputCounts(retries=2)))
    stage.until(5 + OUTAGE_SECONDS)
    assert troubles(stage) == {"agent_outage ann": 5 + OUTAGE_SECONDS}


def test_a_fleet_in_which_all_are_parked_is_unhealthy_but_not_if_the_operator_wants_that() -> None:
    stage = fleet(2, accounts={"ann": "acme", "ben": "acme"})
    stage.ask("operator", Pause(agent="ann"))
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].phase, troubles(stage)) == (Phase.PARKED, {})
    stage.at(6, stage.exited("ben", Ending.LIMIT, until=9000.0))
    assert troubles(stage) == {"nobody_works": 6, "at_limit acme": 6}
    assert health_of(stage.fleet)[0] is HealthLevel.UNHEALTHY
    stage.ask("operator", Pause(agent="ben"), 7)
    assert troubles(stage) == {"at_limit acme": 6}


def test_an_account_without_usage_and_paused_starts_degrade_the_run() -> None:
    stage = fleet(3, accounts={"ann": "acme"}, breaker_crashes=1, breaker_pause=50.0)
    stage.at(6, stage.exited("ann", Ending.TERMINAL, "no such key"))
    stage.at(7, stage.exited("ben", Ending.CRASHED))
    assert troubles(stage) == {"account_closed acme": 6, "agent_given_up ann": 6, "starts_paused": 7}
    assert health_of(stage.fleet)[0] is HealthLevel.DEGRADED
    stage.until(57.0)
    assert troubles(stage) == {"account_closed acme": 6, "agent_given_up ann": 6}


def test_a_run_that_stops_has_no_troubles() -> None:
    stage = fleet()
    stage.ask("operator", HoldGrading())
    stage.ask("operator", Retire(agent="ann"), 3)
    assert troubles(stage)
    stage.stop(4)
    assert troubles(stage) == {}


@pytest.mark.parametrize("trouble", Trouble)
def test_every_trouble_has_a_level_that_is_not_healthy(trouble: Trouble) -> None:
    assert level_of(trouble) is not HealthLevel.HEALTHY
