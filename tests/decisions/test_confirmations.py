"""The supervisor measures again, as transcripts: what it asks for, in which order, at what cost, what it proves."""

from dataclasses import replace

from stage import QUIET_RULES, Stage, attempt_zero, on_request, rules_with

from attempts.noise import NoiseSetting
from attempts.record import Kind, Verdict
from attempts.standing import Scored, Scoring
from coral.fleet import events as on
from coral.fleet.decide import decide
from coral.fleet.policy import (
    FREE_CONFIRMATION_SECONDS,
    MAX_SEED_GRADES,
    MIN_SEED_GRADES,
    SEED_GRADES_SECONDS,
)
from coral.fleet.rules import Rules
from coral.fleet.run_state import AttemptStep, Fleet
from heartbeats.heartbeat import Heartbeat, Scope
from heartbeats.trigger import Stagnant

KNOWN = replace(QUIET_RULES, scoring=Scoring(noise=NoiseSetting(deviation=0.1)), slots=1)
ESTIMATED = replace(QUIET_RULES, scoring=Scoring(noise=NoiseSetting(deviation=None)), slots=1)


def graded(stage: Stage, clock: float, number: int, score: float | None) -> list[str]:
    said = stage.at(clock, stage.graded(number, score))
    return said + stage.at(clock, on.Published(number=number))


def test_a_lead_that_may_be_better_is_measured_beside_the_best_one_after_the_other_before_all_else() -> None:
    stage = Stage(2, KNOWN)
    stage.in_grading(2, "ann", "ben", "ben")
    assert graded(stage, 3, 1, 1.0) == ["publish #1 own best 1", "grade #4/1: commit seed as confirm"]
    assert stage.pending(4).submission.title == "#0 measured again beside #1"
    assert graded(stage, 4, 4, 0.0) == ["publish #4 tied 0", "grade #5/1: commit 1 as confirm"]
    assert graded(stage, 5, 5, 1.0) == ["publish #5 new best 1", "grade #2/1: commit 2"]
    assert stage.fleet.run.best == 1
    assert (stage.fleet.run.confirmations, stage.fleet.run.confirm_seconds) == (2, 4.0)
    assert stage["ann"].progress.evals == stage.fleet.run.progress.evals == 1


def test_a_record_of_a_confirmation_says_what_it_measures_beside_what() -> None:
    stage = Stage(rules=KNOWN)
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.graded(2, 0.25))
    record = stage.published()
    assert (record.kind, record.of, record.against, record.agent, record.submission) == (Kind.CONFIRM, 0, 1, "", "")
    stage.at(4, stage.graded(3, 1.25))
    record = stage.published()
    assert (record.of, record.against, record.delta, record.agent) == (1, 0, 1.0, "ann")
    assert record.verdict is Verdict.NEW_BEST


def test_a_proven_best_ends_the_stagnation_of_its_author_and_of_the_fleet() -> None:
    redirect = Heartbeat(name="redirect", trigger=Stagnant(2))
    stuck = Heartbeat(name="stuck", trigger=Stagnant(2), scope=Scope.FLEET, prompt="look up")
    rules = replace(rules_with(redirect, stuck), scoring=Scoring(noise=NoiseSetting(deviation=1.0)), slots=1)
    stage = Stage(2, rules)
    stage.tried(2, "ann", 4.0)  # within the noise of one score, but high enough to be measured again
    assert (stage["ann"].progress.stagnant, stage.fleet.run.progress.stagnant) == (1, 1)
    stage.in_grading(2, "ann")
    graded(stage, 3, 2, 0.0)
    graded(stage, 3, 4, 6.0)
    assert stage.fleet.run.best == 1
    assert (stage["ann"].progress.stagnant, stage.fleet.run.progress.stagnant) == (0, 0)
    graded(stage, 3, 3, 0.0)
    assert stage.owed("ann") == []


def test_noise_that_is_not_given_is_estimated_from_the_seed_while_the_agents_think() -> None:
    stage = Stage(rules=ESTIMATED)
    assert stage.fleet.pending[1].submission.title == "#0 measured again"
    for number in range(1, MAX_SEED_GRADES):
        graded(stage, 2 + number, number, number % 2 / 10)
    assert stage.fleet.pending == {}
    assert len(stage.fleet.measured[0].scores) == MAX_SEED_GRADES


def test_a_seed_that_always_scores_the_same_is_graded_three_times() -> None:
    stage = Stage(rules=ESTIMATED)
    graded(stage, 2, 1, 0.0)
    graded(stage, 3, 2, 0.0)
    assert stage.fleet.pending == {}


def test_the_seed_makes_no_attempt_wait_beyond_three_grades_and_is_left_alone_after_ten_minutes() -> None:
    stage = Stage(rules=ESTIMATED)
    graded(stage, 2, 1, 0.1)
    stage.in_grading(2, "ann")
    assert graded(stage, 3, 2, 0.2) == ["publish #2 tied 0.2", "grade #3/1: commit 1"]
    stage = Stage(rules=replace(ESTIMATED, grade_timeout=1000.0, stall=1000.0))
    graded(stage, 2, 1, 0.1)
    assert graded(stage, SEED_GRADES_SECONDS, 2, 0.2) == ["publish #2 tied 0.2"]


def slow(stage: Stage, number: int, score: float) -> list[str]:
    """A grade that takes 40 seconds."""
    said = stage.at(2, replace(stage.graded(number, score), seconds=40.0))
    stage.at(2, on.Published(number=number))
    return said


def test_confirmations_have_a_share_of_their_own_and_one_pair_is_free() -> None:
    stage = Stage(rules=replace(KNOWN, confirm_share=0.5))
    stage.in_grading(2, "ann")
    assert slow(stage, 1, 1.0) == ["publish #1 own best 1", "grade #2/1: commit seed as confirm"]
    slow(stage, 2, 0.0)
    assert slow(stage, 3, 1.0) == ["publish #3 new best 1"]
    for score in (9.0, 9.1):  # two more confirmations would be more than half of them
        (number,) = stage.in_grading(2, "ann")
        assert len(slow(stage, number, score)) == 1
    for score in (9.2, 9.3, 9.4, 9.5, 9.6):
        (number,) = stage.in_grading(2, "ann")
        said = slow(stage, number, score)
    assert said[1:] == ["grade #11/1: commit 1 as confirm"]  # four for eight


def test_slow_grades_of_the_seed_leave_the_share_to_pairs() -> None:
    opened = on.Opened(run="run", agents=("ann",), baseline=replace(attempt_zero(0.0), seconds=40.0))
    fleet, _ = decide(Fleet(), [opened], on.Moment(run_time=0.0, wall_time=""), ESTIMATED)
    assert fleet.pending == {}


def test_a_broken_grader_is_not_asked_for_confirmations_for_ever() -> None:
    stage = Stage(rules=replace(KNOWN, budget_attempts=1, budget_seconds=None))
    stage.tried(2, "ann", 1.0)
    clock = 3.0
    while stage.fleet.run.stopping is None and clock < 10_000:
        for number in list(stage.fleet.pending):
            if stage.pending(number).step is AttemptStep.GRADING:
                stage.at(clock, stage.graded(number, outcome=on.Outcome.CRASHED, reason="no licence"))
        clock += 400.0
        stage.until(clock)
    assert stage.fleet.run.stopping is not None
    assert stage.fleet.run.confirmations < 12


def test_the_same_tree_taken_in_before_the_first_is_published_is_one_more_measurement() -> None:
    stage = Stage(rules=replace(KNOWN, confirm_share=0.0))
    stage.at(2, stage.submission("ann"), stage.submission("ann"))
    stage.at(2, *[replace(stage.taken(number), tree="7" * 40) for number in (1, 2)])
    graded(stage, 3, 1, 0.1)
    graded(stage, 3, 2, 5.0)
    assert stage.fleet.measured[1].scores == (0.1, 5.0)
    assert 2 not in stage.fleet.measured


def test_with_a_share_of_nothing_nothing_is_measured_again() -> None:
    stage = Stage(rules=replace(ESTIMATED, confirm_share=0.0))
    assert stage.fleet.pending == {}
    stage.tried(2, "ann", 99.0)
    assert stage.fleet.pending == {}


def test_the_attempts_end_the_run_only_when_the_last_gain_is_proven() -> None:
    stage = Stage(rules=replace(KNOWN, budget_attempts=1))
    said = stage.tried(2, "ann", 1.0)
    assert said == ["publish #1 own best 1", "interrupt ann/1", "grade #2/1: commit seed as confirm"]
    assert stage.owed("ann") == ["land h1", "conclude h2"]
    graded(stage, 3, 2, 0.0)
    assert stage.fleet.run.stopping is None
    assert stage.at(4, stage.graded(3, 1.0)) == ["publish #3 new best 1"]
    assert stage.fleet.run.stopping is not None
    assert stage.fleet.run.best == 1
    timed = Stage(rules=replace(KNOWN, budget_attempts=1, budget_seconds=3.0))
    timed.tried(2, "ann", 1.0)
    timed.at(3)
    assert timed.fleet.run.stopping is not None  # but no other budget waits for that


def test_a_restart_in_the_midst_of_the_last_pair_loses_no_gain() -> None:
    stage = Stage(rules=replace(KNOWN, budget_attempts=1))
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.graded(2, 0.0), on.Published(number=2))
    stage.at(4, on.Resumed())
    assert stage.fleet.run.stopping is None
    graded(stage, 5, 3, 1.0)  # what was left of the pair
    graded(stage, 6, 4, 0.0)
    graded(stage, 7, 5, 1.0)
    assert stage.fleet.run.best == 1
    assert stage.fleet.run.stopping is not None


def test_a_grade_of_the_seed_under_way_at_the_last_attempt_does_not_end_the_run_before_its_pair() -> None:
    stage = Stage(rules=replace(ESTIMATED, slots=2, budget_attempts=1))
    (number,) = stage.in_grading(2, "ann")
    graded(stage, 3, number, 50.0)
    assert stage.fleet.run.stopping is None
    graded(stage, 4, 1, 0.0)
    assert [pending.submission.title for pending in stage.fleet.pending.values()] == ["#0 measured again beside #2"]


def test_a_target_is_reached_by_a_proven_best_alone() -> None:
    stage = Stage(rules=replace(KNOWN, budget_attempts=None, target=0.9))
    stage.tried(2, "ann", 1.0)
    assert stage.fleet.run.stopping is None
    graded(stage, 3, 2, 0.0)
    graded(stage, 4, 3, 1.0)
    assert stage.fleet.run.stopping is not None
    assert stage.fleet.run.stopping.score == 1.0


def test_a_stop_asks_for_nothing_and_a_resume_begins_the_pair_anew() -> None:
    stage = Stage(rules=KNOWN)
    stage.tried(2, "ann", 1.0)
    graded(stage, 3, 2, 0.0)
    stage.at(4, stage.asks("operator", on.Stop(end=on_request("enough"))))
    stage.at(5, on.Graded(number=3, launch=1, outcome=on.Outcome.LOST))
    assert stage.pending(3).step is AttemptStep.QUEUED
    stage.at(6, stage.exited("ann", on.Ending.INTERRUPTED))
    assert "grade #3/2: commit 1 as confirm" in stage.at(7, on.Resumed())
    assert stage.fleet.run.half is None
    said = stage.at(8, stage.graded(3, 1.0))
    assert said[-1] == "grade #4/1: commit seed as confirm"
    assert (stage.published().of, stage.published().against) == (1, None)  # the half that is left is no part of a pair


def test_copies_cost_a_grade_until_the_grader_is_known_to_be_exact() -> None:
    stage = Stage(rules=Rules(seed_commit=QUIET_RULES.seed_commit, heartbeats=(), stagger=0.0))
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, duplicate=Scored(1, 1.0))) == ["publish #2 tied 1 (the same tree as #1)"]
    assert stage.published().of is None  # it was not measured


def test_what_is_not_proven_ends_nobodys_stagnation_and_what_is_arms_anew() -> None:
    redirect = Heartbeat(name="redirect", trigger=Stagnant(5))
    stuck = Heartbeat(name="stuck", trigger=Stagnant(5), scope=Scope.FLEET, prompt="look up")
    rules = replace(rules_with(redirect, stuck), scoring=Scoring(noise=NoiseSetting(deviation=1.0)), slots=1)
    stage = Stage(2, rules)
    stage.tried(2, "ann", 4.0)
    stage.in_grading(2, "ann", "ben")
    graded(stage, 3, 2, 0.0)
    assert (stage["ann"].progress.stagnant, stage.fleet.run.progress.stagnant) == (1, 1)
    graded(stage, 3, 5, 6.0)
    assert stage.fleet.run.best == 1
    assert (stage["ann"].progress.stagnant, stage.fleet.run.progress.stagnant) == (0, 0)
    assert (stage["ann"].targets["redirect"], stage.fleet.run.targets["stuck"]) == (5, 5)
    graded(stage, 4, 3, 0.0)
    assert (stage["ann"].targets["redirect"], stage.fleet.run.targets["stuck"]) == (5, 5)


def test_a_confirmation_is_of_the_same_commit_and_tree() -> None:
    stage = Stage(rules=KNOWN)
    stage.at(2, stage.submission("ann"))
    stage.at(2, replace(stage.taken(1), parent="a parent"))
    stage.at(2, stage.checked_out(1))
    graded(stage, 2, 1, 1.0)
    stage.at(3, stage.graded(2, 0.25))
    assert stage.pending(3).tree == stage.fleet.measured[1].tree
    stage.at(4, stage.graded(3, 1.25))
    record, measured = stage.published(), stage.fleet.measured[1]
    assert measured.parent == "a parent"
    assert (record.commit, record.tree, record.parent) == (measured.commit, measured.tree, measured.parent)


def test_how_long_the_last_grade_took_is_remembered_and_what_failed_says_nothing_of_it() -> None:
    stage = Stage(rules=replace(KNOWN, scoring=Scoring()))
    assert stage.fleet.run.grade_seconds == 0.0
    stage.in_grading(2, "ann", "ann")
    stage.at(3, replace(stage.graded(1, 1.0), seconds=7.0))
    assert stage.fleet.run.grade_seconds == 7.0
    stage.at(4, replace(stage.graded(2), seconds=9.0))
    assert stage.fleet.run.grade_seconds == 7.0


def test_no_grade_of_the_seed_is_asked_for_once_the_attempts_are_used_up() -> None:
    stage = Stage(rules=replace(ESTIMATED, slots=2, budget_attempts=1))
    (number,) = stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 0.0))
    graded(stage, 4, number, None)
    waiting = [pending for pending in stage.fleet.pending.values() if pending.step is not AttemptStep.SETTLED]
    assert [pending.submission.title for pending in waiting] == ["#0 measured again"]  # it was under way before
    graded(stage, 5, waiting[0].number, 0.5)
    assert stage.fleet.run.stopping is not None


def test_heartbeats_about_stagnation_are_withdrawn_and_armed_anew_when_a_best_is_proven() -> None:
    redirect = Heartbeat(name="redirect", trigger=Stagnant(2))
    stuck = Heartbeat(name="stuck", trigger=Stagnant(2), scope=Scope.FLEET, prompt="look up")
    rules = replace(rules_with(redirect, stuck), scoring=Scoring(noise=NoiseSetting(deviation=1.0)), slots=1)
    stage = Stage(2, rules)
    stage.tried(2, "ann", 0.0)
    stage.tried(3, "ann", 4.0)
    assert sorted(name.split()[0] for name in stage.owed("ann")) == ["redirect", "stuck"]
    armed = (stage["ann"].targets["redirect"], stage.fleet.run.targets["stuck"])
    graded(stage, 4, 3, 0.0)
    said = graded(stage, 5, 4, 6.0)
    assert stage.fleet.run.best == 2
    assert len([line for line in said if "is overtaken by an improvement" in line]) == 2
    assert stage.owed("ann") == []
    again = (stage["ann"].targets["redirect"], stage.fleet.run.targets["stuck"])
    assert again == (armed[0] - 2, armed[1] - 2)


def test_a_settled_confirmation_is_published_again_by_a_new_supervisor() -> None:
    stage = Stage(rules=KNOWN)
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.graded(2, 0.25))
    settled = stage.pending(2)
    assert (settled.step, settled.deadline) == (AttemptStep.SETTLED, None)
    assert settled.attempt == stage.published()
    assert "publish #2 tied 0.25" in stage.at(4, on.Resumed())


def test_a_minute_of_confirmations_is_free_to_the_second() -> None:
    """Of a pair two grades are asked for, of the seed one, after which a pair must stay affordable."""
    for rules, spent, asked in (
        (KNOWN, 56.0, True),
        (KNOWN, 56.5, False),
        (ESTIMATED, 54.0, True),
        (ESTIMATED, 54.5, False),
    ):
        stage = Stage(rules=rules)
        if rules is ESTIMATED:
            graded(stage, 2, 1, 0.0)
            stage.fleet = replace(stage.fleet, pending={})
        stage.fleet = replace(stage.fleet, run=replace(stage.fleet.run, confirm_seconds=spent, confirmations=99))
        stage.fleet = replace(stage.fleet, run=replace(stage.fleet.run, grade_seconds=2.0))
        score = 1.0 if rules is KNOWN else 0.0
        (number,) = stage.in_grading(3, "ann")
        stage.at(4, stage.graded(number, score))
        confirms = [pending for pending in stage.fleet.pending.values() if pending.confirmation is not None]
        assert bool(confirms) == asked, (rules.scoring, spent)


def test_the_figures_of_confirmations() -> None:
    assert (MIN_SEED_GRADES, MAX_SEED_GRADES, SEED_GRADES_SECONDS, FREE_CONFIRMATION_SECONDS) == (3, 10, 600.0, 60.0)
