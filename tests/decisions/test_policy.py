"""The figures that decisions go by, and the questions that are asked of them."""

import hashlib
from dataclasses import replace

import pytest
from stage import QUIET_RULES, SEED, Stage, submitted

from attempts.noise import NoiseSetting
from attempts.record import Direction
from attempts.standing import Scoring
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Agent
from coral.fleet.agents.back_off import back_off
from coral.fleet.events import Ending, Outcome
from coral.fleet.members import Member
from coral.fleet.policy import intake_capacity, is_repeat, remember, slots_of
from coral.fleet.rules import Rules
from coral.fleet.run_state import PendingAttempt, Run
from heartbeats.heartbeat import BUILT_IN, Scope


def test_the_rules_of_a_task_that_names_none() -> None:
    assert Rules() == Rules(
        scoring=Scoring(direction=Direction.MAXIMIZE, noise=NoiseSetting(deviation=0.0)),
        confirm_share=0.2,
        slots=1,
        grade_timeout=300.0,
        seed_commit="",
        heartbeats=BUILT_IN,
        stall=1200.0,
        interrupt_grace=10.0,
        terminate_grace=5.0,
        start_grace=60.0,
        max_defer=600.0,
        backoff=5.0,
        backoff_max=600.0,
        breaker_crashes=6,
        breaker_window=60.0,
        breaker_pause=300.0,
        budget_attempts=None,
        budget_seconds=None,
        target=None,
        stagger=0.05,
        outage=900.0,
        retries=30,
        stop_at_limit=False,
    )
    assert [default.name for default in Rules().defaults(Scope.FLEET)] == ["consolidate"]
    assert [default.name for default in Rules().defaults(Scope.OWN)] == ["reflect", "redirect", "checkpoint"]


def test_an_event_and_a_log_line_say_no_more_than_they_were_told() -> None:
    assert on.Graded(number=1, launch=1, outcome=Outcome.LOST).seconds == 0.0
    assert on.OutputSeen(agent="ann", launch=1, has_prompt=True).place == 0
    assert do.LogEvent(type="withdrawn").launch == 0
    assert do.LogEvent(type="exited").messages == ()
    assert on.WriteFailed(item="a").depth == 1
    assert on.MachineChecked(short=()) == on.MachineChecked(short=(), free=1.0, load=0.0)
    assert Member(runtime="native").added is False
    assert do.LoggedMessage(name="reflect") == do.LoggedMessage(name="reflect", id="", attempt=None, since=None)


@pytest.mark.parametrize(("agent", "launch"), [("ann", 1), ("ann", 2), ("ben", 1)])
def test_the_jitter_of_a_back_off_is_hashed_and_no_more_than_a_fifth(agent: str, launch: int) -> None:
    first = hashlib.sha256(f"run/{agent}/{launch}".encode()).digest()[0]
    assert 0 < first < 255
    pause = back_off("run", Agent(name=agent, launch=launch), 1, Rules())
    assert pause == 5.0 * (1.0 + 0.2 * first / 255)
    assert 5.0 < pause < 6.0


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1e-9), (2, 2e-9), (3, 4e-9), (31, 2.0**30 * 1e-9), (99, 2.0**30 * 1e-9)]
)
def test_a_back_off_doubles_up_to_its_most_and_ends_doubling_before_figures_do(failures: int, seconds: float) -> None:
    rules, ann = Rules(backoff=1e-9, backoff_max=1e9), Agent(name="ann")
    jitter = back_off("run", ann, 1, replace(rules, backoff=1.0)) / 1.0
    assert back_off("run", ann, failures, rules) == seconds * jitter
    assert back_off("run", Agent(name="ann"), 10_000, Rules()) <= 720.0


@pytest.mark.parametrize(("slots", "left"), [(1, {"ann": 0, "ben": 2, "cid": 4}), (2, {"ann": 0, "ben": 3, "cid": 5})])
def test_of_whoever_has_many_in_hand_nothing_more_is_taken_up(slots: int, left: dict[str, int]) -> None:
    agents = ["ann"] * 6 + ["ben"] * 2
    pending = [PendingAttempt(number=at, submission=submitted(agent, at).submission) for at, agent in enumerate(agents)]
    assert intake_capacity(["ann", "ben", "cid"], pending, slots) == left


@pytest.mark.parametrize(
    ("slots", "capacity", "fixed", "growing"),
    [(9, 0, 1, 2), (9, 1, 1, 3), (9, 3, 3, 6), (9, 5, 5, 9), (9, 99, 9, 9), (1, 0, 1, 1)],
)
def test_of_grades_on_a_cluster_as_many_are_in_flight_as_it_has_room_for_or_grows_for(
    slots: int, capacity: int, fixed: int, growing: int
) -> None:
    run, rules = Run(cluster_capacity=capacity), Rules(slots=slots, follows_cluster=True)
    assert slots_of(run, rules) == fixed
    assert slots_of(run, replace(rules, cluster_grows=True)) == growing
    assert slots_of(run, Rules(slots=slots)) == slots


# --- repeats ------------------------------------------------------------------------------------------------------


def test_a_window_remembers_the_latest_in_their_order_and_a_full_one_takes_all_that_is_older_as_seen() -> None:
    recent: tuple[str, ...] = ()
    for id in ("05", "03", "04"):
        assert not is_repeat(recent, id)
        recent = remember(recent, id)
    assert recent == ("03", "04", "05")
    assert all(is_repeat(recent, id) for id in recent)
    full = tuple(f"{id:03}" for id in range(100, 164))
    assert len(full) == 64
    assert is_repeat(full, "099")
    assert not is_repeat(full, "164")
    assert not is_repeat(full[1:], "099")
    assert not is_repeat((*full[:5], *full[6:], "200"), "105")
    assert remember(full, "164") == (*full[1:], "164")


def test_what_is_older_than_everything_remembered_counts_as_seen() -> None:
    stage = Stage()
    stage.at(2, *[submitted("ann", 100 + number) for number in range(63)])
    # 63 are remembered: the window is not full yet, and nothing has been forgotten.
    assert stage.at(3, submitted("ann", 50))[1] == "accept 50 of ann as #64"
    assert stage.at(4, submitted("ann", 49)) == ["discard 49 of ann"]
    assert stage.at(4, submitted("ann", 51))[1] == "accept 51 of ann as #65"
    assert stage.at(4, submitted("ann", 51)) == ["discard 51 of ann"]
    assert len(stage["ann"].recent_submissions) == 64


# --- deadlines that nothing else falls together with --------------------------------------------------------------


def test_a_silent_start_is_interrupted_when_its_own_grace_is_over() -> None:
    stage = Stage(rules=replace(QUIET_RULES, start_grace=30.0, max_defer=0.0), started=False)
    stage.at(2, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(29.9) == []
    assert stage.until(30) == ["30 interrupt ann/1"]
    stage = Stage(rules=replace(QUIET_RULES, start_grace=30.0, max_defer=0.0))
    stage.at(2, stage.heard("ann", busy="tool"))
    stage.at(66, stage.exited("ann"))
    assert stage["ann"].activity == ""
    stage.at(67, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(96) == ["96 interrupt ann/2"]


def test_hours_are_told_to_the_minute() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_seconds=100_000 * 3600.0, stall=9e9, seed_commit=SEED))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=9e9))
    assert stage.until(1e9)[-1].endswith("finish: budget (100000 hours)")
