"""Agents that come to nothing, as transcripts: what is done about one, step by step, until it has progress."""

from dataclasses import replace

import pytest
from stage import NOTHING, QUIET_RULES, Stage, brief

from coral.fleet import events as on
from coral.fleet.agent_state import OutputCounts, Phase, Stall
from coral.fleet.agents.stalls import reason_of
from coral.fleet.events import Ending
from coral.fleet.policy import REST_SECONDS, SCAN_SECONDS
from coral.fleet.reasons import Finding
from coral.fleet.rules import Rules
from coral.fleet.run_state import Job, Limit

SILENCE = replace(QUIET_RULES, stall=100.0)
IDLE = replace(QUIET_RULES, stall=1e6, max_defer=50.0, no_progress=600.0)
BOTH = replace(IDLE, stall=500.0)
EDIT = OutputCounts(edits=1)


def cut(stage: Stage, clock: float) -> list[str]:
    """It obeys the interrupt; what follows in that instant, without the note that it ended."""
    return stage.at(clock, stage.exited("ann", Ending.INTERRUPTED))[1:]


def fruitless(stage: Stage, clock: float) -> list[str]:
    """The agent is at work until then, and has edited nothing that a look would find."""
    said = []
    while stage.clock < clock:
        step = min(stage.clock + 40, clock)
        said += stage.until(step)
        said += [f"{step:g} {line}" for line in stage.at(step, stage.heard("ann"))]
        if stage["ann"].stall.scan_requested_at is not None:
            said += [f"{step:g} {line}" for line in stage.at(step, stage.looked("ann"))]
    return said


def at_step(step: int, rules: Rules) -> Stage:
    """So much was done about ann already."""
    stage = Stage(rules=rules)
    ann = replace(stage["ann"], stall=replace(stage["ann"].stall, escalations=step))
    stage.fleet = replace(stage.fleet, agents={"ann": ann})
    return stage


def silenced(*clocks: float) -> Stage:
    """ann was found silent at these times, obeyed, and was heard again."""
    stage = Stage(rules=SILENCE)
    for clock in clocks:
        stage.until(clock)
        cut(stage, clock + 1)
        stage.at(clock + 2, stage.heard("ann"))
    return stage


def begin_again(stage: Stage) -> float:
    """When the pause after a crash ends, and with it the next launch begins; a second later it has been heard."""
    began = stage.deadline("ann")
    stage.until(began)
    stage.at(began + 1, stage.heard("ann"))
    return began


# --- silence ----------------------------------------------------------------------------------------------------------


def test_silence_is_nudged_then_interrupted_then_ends_the_conversation_and_then_is_rested() -> None:
    stage = Stage(rules=SILENCE)
    assert stage.until(101) == ["101 stalled ann: stalled (silent, 1, 100)", "101 interrupt ann/1"]
    assert [message.defers for message in stage["ann"].pending_messages] == [False]  # its tool is what is silent
    assert cut(stage, 102) == ["spawn ann/2: stalled (silent, 1, 100), session of ann, told 0, owed stalled:h1"]
    assert stage.at(103, stage.heard("ann")) == ["heartbeat ann: stalled (h1) received"]
    assert stage.until(203) == ["203 stalled ann: stalled (silent, 2, 100)", "203 interrupt ann/2"]
    assert cut(stage, 204) == ["spawn ann/3: stalled (silent, 2, 100), session of ann, told 0, owed stalled:h2"]
    stage.at(205, stage.heard("ann"))
    assert stage.until(305) == ["305 stalled ann: stalled (silent, 3, 100)", "305 interrupt ann/3"]
    assert cut(stage, 306) == ["spawn ann/4: stalled (silent, 3, 100), told 0, owed stalled:h3"]
    stage.at(307, stage.heard("ann", session="another"))
    assert stage.until(407) == [
        "407 stalled ann: stalled (silent, 4, 100)",
        "407 alert run-alert-1 of ann: a nudge, an interrupt and a fresh session have not helped ann: "
        "stalled (silent, 4, 100)",
        "407 interrupt ann/4",
    ]
    assert cut(stage, 408) == []
    assert (stage["ann"].phase, brief(stage["ann"].reason)) == (Phase.PARKED, "stalled (silent, 4, 100)")
    assert stage.until(408 + REST_SECONDS) == ["2208 spawn ann/5: stalled (silent, 4, 100), told 0, owed stalled:h4"]
    assert stage["ann"].stall.escalations == 4


def test_each_rest_is_longer_up_to_a_bound_and_the_operator_is_told_once() -> None:
    stage = at_step(4, SILENCE)
    rests = []
    for _ in range(6):
        stage.at(stage.clock, stage.heard("ann"))
        said = stage.until(stage.clock + 100)
        assert [line for line in said if "alert" in line] == []
        stage.at(stage.clock, stage.exited("ann", Ending.INTERRUPTED))
        assert stage["ann"].session is None
        due = stage.deadline("ann")
        rests.append((due - stage.clock) / REST_SECONDS)
        stage.until(due)
        assert stage["ann"].phase is Phase.RUNNING
    assert rests == [2, 4, 8, 16, 16, 16]


def test_output_alone_is_no_progress() -> None:
    stage = Stage(rules=SILENCE)
    stage.until(101)
    cut(stage, 102)
    for clock in range(110, 1000, 10):
        stage.at(clock, stage.heard("ann"))
    assert stage.until(1090)[0] == "1090 stalled ann: stalled (silent, 2, 100)"
    stage = Stage(rules=replace(IDLE, stall=900.0), started=False)
    assert stage.until(900)[0] == "900 stalled ann: stalled (silent, 1, 900)"


@pytest.mark.parametrize("way", ["edit", "submission"])
def test_with_progress_it_begins_at_the_nudge_again(way: str) -> None:
    stage = Stage(rules=SILENCE)
    for launch, clock in ((1, 101), (2, 221)):
        assert stage.until(clock)[0].endswith("stalled ann: stalled (silent, 1, 100)")
        cut(stage, clock + 1)
        stage.at(clock + 2, stage.heard("ann"))
        stage.at(clock + 20, stage.heard("ann", count=EDIT if way == "edit" else NOTHING))
        if way == "submission":
            stage.at(clock + 20, stage.submission("ann"))
        assert stage["ann"].launch == launch + 1
        assert stage["ann"].stall == Stall(since=clock + 20, progress_at=clock + 20)


def test_an_edit_that_is_told_again_is_no_progress() -> None:
    stage = Stage(rules=SILENCE)
    stage.at(2, stage.heard("ann", count=OutputCounts(edits=2)))
    stage.at(10, stage.heard("ann", count=EDIT), stage.heard("ann", count=OutputCounts(edits=2)))
    assert stage["ann"].stall.progress_at == 2
    stage.at(11, stage.heard("ann", count=OutputCounts(edits=3)))
    assert stage["ann"].stall.progress_at == 11
    stage = Stage(rules=SILENCE)
    stage.at(2, stage.heard("ann", count=OutputCounts(edits=9)))
    stage.until(102)
    cut(stage, 103)
    stage.at(104, stage.heard("ann", count=EDIT))
    assert stage["ann"].stall.progress_at == 104


def test_progress_before_the_interrupt_is_obeyed_takes_back_what_it_was_for_unless_it_is_on_its_way() -> None:
    stage = silenced(101, 203, 305)
    stage.until(407)
    assert brief(stage["ann"].reason) == "stalled (silent, 4, 100)"
    assert stage.at(408, stage.submission("ann"))[0] == "withdrawn ann: stalled (h4) is overtaken by progress"
    assert brief(stage["ann"].reason) == "progress"
    assert cut(stage, 409) == ["spawn ann/5: progress, session of ann, told 0"]
    stage = Stage(rules=SILENCE)
    stage.until(101)
    cut(stage, 102)
    stage.at(103, stage.submission("ann"))
    assert (stage.owed("ann"), stage["ann"].stall.escalations) == (["stalled h1"], 0)


def test_a_launch_that_dies_unheard_hands_what_was_found_to_the_next_and_it_is_said_once() -> None:
    stage = Stage(rules=SILENCE)
    stage.until(101)
    cut(stage, 102)
    stage.at(103, stage.exited("ann", Ending.CRASHED))
    (said,) = stage.until(110)
    assert said.endswith("spawn ann/3: crashed, session of ann, told 0, owed stalled:h1")
    # Silent from its start: the same word, and a back-off.
    assert stage.until(210)[-1].endswith("interrupt ann/3")
    assert cut(stage, 211) == []
    assert stage["ann"].crashes == 2
    assert stage.until(240)[-1].endswith(
        "spawn ann/4: stalled (silent, 2, 100), session of ann, told 0, owed stalled:h1"
    )


def test_the_end_of_a_launch_for_another_reason_is_no_step() -> None:
    stage = silenced(101, 203)
    stage.until(305)
    assert brief(stage["ann"].reason) == "stalled (silent, 3, 100)"
    cut(stage, 306)
    stage.at(307, stage.heard("ann"))
    stage.ask("operator", on.Tell(to="ann", text="look"), 310)
    stage.until(910)
    assert stage["ann"].phase is not Phase.PARKED


def test_a_supervisor_that_dies_meanwhile_changes_nothing_of_it() -> None:
    stage = silenced(101, 203)
    stage.until(305)
    said = stage.at(306, on.Resumed(), stage.exited("ann", Ending.LOST))
    assert said[-1] == "spawn ann/4: stalled (silent, 3, 100), told 0, owed stalled:h3"
    stage = Stage(rules=SILENCE)
    said = stage.at(50, on.Resumed(), stage.exited("ann", Ending.LOST))
    assert said[-1] == "spawn ann/2: resumed, session of ann, told 0"


def test_with_the_next_supervisor_who_rested_begins_and_a_look_is_taken_again() -> None:
    stage = at_step(3, SILENCE)
    stage.until(101)
    cut(stage, 102)
    assert stage["ann"].phase is Phase.PARKED
    stage.stop(110)
    assert (stage["ann"].phase, brief(stage["ann"].reason), stage["ann"].deadline) == (Phase.WAITING, "stop", None)
    assert stage.at(111, on.Resumed())[-1].startswith("spawn ann/2: resumed, told 0")
    stage = Stage(rules=PATIENT)
    stage.at(590, stage.heard("ann"))
    assert stage.until(600) == ["600 look ann/1"]
    assert stage.at(630, on.Resumed())[-1] == "look ann/1"
    assert stage["ann"].stall.scan_requested_at == 630
    assert stage.until(689) == []
    assert stage.until(690) == ["690 stalled ann: stalled (no_progress, 1, 690)"]


# --- busy without progress --------------------------------------------------------------------------------------------


def test_work_without_progress_is_looked_at_and_nudged_at_a_good_moment() -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, stage.heard("ann", busy="tool"))
    assert stage.until(600) == ["600 look ann/1"]
    assert stage.at(601, stage.looked("ann")) == ["stalled ann: stalled (no_progress, 1, 601)"]
    assert stage["ann"].phase is Phase.RUNNING
    stage.at(640, stage.heard("ann", busy="tool"))
    # Never in the middle of a tool, but at the latest after `max_defer`.
    assert stage.until(651) == []
    stage.at(655, stage.heard("ann"))
    assert stage["ann"].phase is Phase.INTERRUPTED
    assert cut(stage, 656) == ["spawn ann/2: heartbeat, session of ann, told 0, owed stalled:h1"]


def test_each_step_comes_when_it_has_lasted_its_whole_time_again() -> None:
    stage = Stage(rules=replace(IDLE, max_defer=0.0))
    assert fruitless(stage, 601)[-2:] == ["601 stalled ann: stalled (no_progress, 1, 601)", "601 interrupt ann/1"]
    cut(stage, 602)
    stage.at(602, stage.heard("ann"))
    said = fruitless(stage, 1300)
    assert [line for line in said if "stalled" in line] == ["1202 stalled ann: stalled (no_progress, 2, 1202)"]


def test_the_steps_of_silence_and_of_work_without_progress_are_one_ladder_and_have_their_whole_time() -> None:
    stage = Stage(rules=replace(BOTH, max_defer=9e9))
    stage.at(300, stage.heard("ann"))
    stage.at(590, stage.heard("ann"))
    stage.until(600)
    stage.at(601, stage.looked("ann"))
    assert stage["ann"].stall.escalations == 1
    # Silent since 590, and found to be without progress at 601: from then on.
    assert stage.until(1100) == []
    assert stage.until(1101) == ["1101 stalled ann: stalled (silent, 2, 511)", "1101 interrupt ann/1"]
    stage = Stage(rules=replace(BOTH, max_defer=0.0))
    said = fruitless(stage, 601)
    assert said[-1] == "601 interrupt ann/1"
    cut(stage, 602)
    stage.at(603, stage.heard("ann"))
    assert stage.until(1103)[0] == "1103 stalled ann: stalled (silent, 2, 500)"


def test_a_nudge_that_was_not_heard_yet_becomes_an_interrupt_and_is_said_once() -> None:
    stage = Stage(rules=replace(IDLE, max_defer=9e9))
    stage.at(590, stage.heard("ann", busy="tool"))
    stage.until(600)
    stage.at(601, stage.looked("ann"))
    (owed,) = stage["ann"].pending_messages
    assert (owed.name, owed.since, owed.due, owed.defers) == ("stalled", 601, 601 + 9e9, True)
    assert stage.until(1201) == ["1201 look ann/1"]
    assert stage.at(1202, stage.looked("ann")) == ["stalled ann: stalled (no_progress, 2, 1202)", "interrupt ann/1"]
    (owed,) = stage["ann"].pending_messages
    assert (owed.id, owed.since, owed.due, owed.defers) == ("h1", 601, 1202, False)
    assert cut(stage, 1203) == ["spawn ann/2: stalled (no_progress, 2, 1202), session of ann, told 0, owed stalled:h1"]


def test_other_things_that_are_owed_stay_as_they_are() -> None:
    stage = Stage(rules=replace(IDLE, max_defer=9e9))
    stage.ask("operator", on.Tell(to="ann", text="look"), 10)
    stage.at(590, stage.heard("ann", busy="tool"))
    for clock in (600, 1201):
        stage.until(clock)
        stage.at(clock + 1, stage.looked("ann"))
    assert [(message.name, message.due) for message in stage["ann"].pending_messages] == [
        ("message", 10 + 9e9),
        ("stalled", 1202),
    ]
    stage.at(1203, stage.submission("ann"))
    assert stage.owed("ann") == ["message h1"]


def test_an_edit_that_only_a_look_finds_is_progress_from_its_own_time() -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, stage.heard("ann"))
    assert stage.until(600) == ["600 look ann/1"]
    assert stage.at(602, stage.looked("ann", edited=200.0)) == []
    assert stage["ann"].stall == Stall(since=402, progress_at=402)
    assert stage.until(1002) == ["1002 look ann/1"]


@pytest.mark.parametrize("edited", [None, 602.0, 9e9])
def test_an_edit_of_before_it_began_is_none(edited: float | None) -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, stage.heard("ann"))
    stage.until(600)
    assert stage.at(602, stage.looked("ann", edited)) == ["stalled ann: stalled (no_progress, 1, 602)"]
    assert stage["ann"].stall.scan_requested_at is None


def test_a_look_without_an_answer_has_found_nothing_in_a_minute() -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, stage.heard("ann"))
    assert stage.until(600) == ["600 look ann/1"]
    assert stage.until(600 + SCAN_SECONDS - 1) == []
    assert stage.until(600 + SCAN_SECONDS) == ["660 stalled ann: stalled (no_progress, 1, 660)"]
    # The answer comes late, and is for nothing.
    assert stage.at(662, stage.looked("ann")) == []
    assert stage["ann"].stall.escalations == 1
    stage = at_step(1, IDLE)
    stage.at(590, stage.heard("ann"))
    stage.until(600)
    assert stage.until(600 + SCAN_SECONDS) == ["660 stalled ann: stalled (no_progress, 2, 660)", "660 interrupt ann/1"]
    assert brief(stage["ann"].reason) == "stalled (no_progress, 2, 660)"


def test_from_a_signal_on_no_work_is_counted() -> None:
    stage = Stage(rules=IDLE)
    stage.at(2, stage.heard("ann"))
    stage.at(300, on.Requested(sender="operator", id="1", request=on.Tell(to="ann", text="hello")))
    assert stage.until(350)[-1] == "350 interrupt ann/1"
    assert (stage["ann"].stall.since, stage["ann"].stall.accumulated) == (None, 350)
    stage = Stage(rules=IDLE)
    stage.at(300, stage.lingered("ann"))
    assert stage["ann"].phase is Phase.TERMINATED
    assert (stage["ann"].stall.since, stage["ann"].stall.accumulated) == (None, 300)


def test_a_look_at_what_is_over_is_dropped() -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, stage.heard("ann"))
    stage.until(600)
    late = stage.looked("ann")
    assert stage.at(601, on.EditsScanned(agent="nobody", launch=1)) == []
    assert stage.at(601, replace(late, launch=2)) == []
    stage.at(602, stage.exited("ann", Ending.CLEAN))
    assert stage["ann"].stall.scan_requested_at is None
    assert stage.at(603, late) == []
    assert stage["ann"].stall.escalations == 0


def test_work_counts_over_the_launches_and_nothing_else_does() -> None:
    stage = Stage(rules=replace(IDLE, backoff=100.0, backoff_max=100.0))
    stage.at(300, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].stall == Stall(accumulated=300.0, progress_at=0.0)
    (said,) = stage.until(begin_again(stage) + 300)
    assert said.endswith("look ann/2")


def test_a_grade_that_is_waited_for_also_in_vain_is_no_work_and_one_that_is_not_is() -> None:
    stage = Stage(rules=replace(IDLE, grade_timeout=9e9))
    (number,) = stage.in_grading(100, "ann", wait=5000)
    stage.at(650, stage.heard("ann"))
    assert stage.until(2000) == []
    stage.at(2000, stage.graded(number, 1.0))
    stage.at(2000, on.Published(number=number))
    stage.at(2500, stage.heard("ann"))
    assert stage.until(2599) == []
    assert stage.until(2600) == ["2600 look ann/1"]
    stage = Stage(rules=replace(IDLE, grade_timeout=9e9))
    stage.in_grading(100, "ann", wait=300)
    assert stage.until(999) == []
    assert stage.until(1000) == ["1000 look ann/1"]
    stage = Stage(rules=IDLE)
    (number,) = stage.in_grading(100, "ann")
    stage.at(200, stage.graded(number, 1.0))
    assert stage.until(700) == ["700 look ann/1"]


def test_who_ends_while_it_waits_has_nothing_to_count() -> None:
    stage = Stage(rules=replace(IDLE, grade_timeout=9e9))
    stage.in_grading(100, "ann", wait=5000)
    stage.until(700)
    assert stage["ann"].stall.since == 5100
    stage.at(800, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].stall.accumulated == 0
    stage = Stage(rules=replace(IDLE, backoff=50.0, backoff_max=50.0))
    stage.at(300, stage.exited("ann", Ending.CRASHED))
    began = begin_again(stage)
    stage.until(began + 300)
    stage.at(began + 302, stage.looked("ann", edited=312.0))
    assert stage["ann"].stall == Stall(since=began, progress_at=began)


def test_while_nothing_can_be_written_nobody_is_without_progress() -> None:
    stage = Stage(rules=IDLE)
    stage.at(590, on.DiskChecked(problem="full"))
    assert stage.until(800) == []
    assert (
        stage.at(801, on.DiskChecked(problem=""))[-1]
        == "alert run-alert-2: the disk can be used again; the run continues"
    )
    # The time in which nothing could be written is taken off.
    assert stage.until(810) == []
    assert stage.until(811) == ["811 look ann/1"]


PATIENT = replace(IDLE, max_defer=9e9)


def test_the_time_of_a_full_disk_is_held_against_nobody() -> None:
    stage = Stage(rules=PATIENT)
    stage.at(500, on.DiskChecked(problem="full"))
    stage.at(600, on.DiskChecked(problem="fuller"))
    stage.at(800, on.DiskChecked(problem=""))
    assert stage.until(900) == ["900 look ann/1"]
    stage.at(901, stage.looked("ann"))
    assert stage.until(1500) == []
    assert stage.until(1501) == ["1501 look ann/1"]
    stage = Stage(rules=SILENCE)
    stage.at(50, on.DiskChecked(problem="full"))
    assert stage.until(400) == []
    stage.at(400, on.DiskChecked(problem=""))
    assert stage.until(500)[0] == "500 stalled ann: stalled (silent, 1, 499)"
    stage = Stage(rules=PATIENT)
    stage.at(500, on.DiskChecked(problem="full"))
    stage.at(700, on.Resumed())
    assert stage.until(800) == ["800 look ann/1"]
    stage = Stage(rules=PATIENT)
    stage.at(400, on.DiskChecked(problem="full"))
    stage.at(500, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].stall.accumulated == 400
    stage.at(550, on.DiskChecked(problem=""))
    assert stage["ann"].stall.accumulated == 400


@pytest.mark.parametrize(
    ("full", "job"), [((100, 300), (200, 400)), ((200, 400), (100, 300)), ((100, 400), (200, 300))]
)
def test_a_full_disk_and_a_job_are_taken_off_once(full: tuple[float, float], job: tuple[float, float]) -> None:
    stage = Stage(rules=PATIENT)
    moments = {
        full[0]: on.DiskChecked(problem="full"),
        full[1]: on.DiskChecked(problem=""),
        job[1]: on.JobEnded(number=1),
    }
    for clock in sorted((*full, *job)):
        if clock == job[0]:
            # One that was granted before the disk was full.
            running = Job(number=1, agent="ann", argv=("train",), began_at=clock)
            stage.until(clock)
            stage.fleet = replace(stage.fleet, jobs={1: running})
        else:
            stage.at(clock, moments[clock])
    assert stage.until(900) == ["900 look ann/1"]


def test_who_has_just_begun_has_come_to_nothing_for_no_time() -> None:
    assert (Stall().lasted, Stall().accumulated, Stall().escalations, Stall().excluded_until) == (0.0, 0.0, 0, 0.0)
    stall = Stall(escalations=3, finding=Finding.SILENT, lasted=1200.0)
    assert brief(reason_of(stall)) == "stalled (silent, 3, 1200)"
    assert reason_of(replace(stall, escalations=0)) is None


def test_research_is_no_work_without_progress() -> None:
    stage = Stage(rules=replace(IDLE, research={"ann": 900.0}, max_defer=9e9))
    stage.at(890, stage.heard("ann", busy="tool"))
    assert stage.until(899) == []
    stage.until(900)
    assert stage["ann"].stall.since == 900
    stage.at(950, stage.heard("ann", busy="tool"))
    stage = Stage(rules=replace(IDLE, research={"ann": 900.0}))
    stage.at(100, stage.exited("ann", Ending.CLEAN))
    stage.until(101)
    assert stage["ann"].launch == 2
    assert stage["ann"].stall.since == stage["ann"].spawned_at


# --- who rests, and its account ---------------------------------------------------------------------------------------


def resting(**accounts: str) -> Stage:
    """ann rests from 102 on, until 1902."""
    stage = Stage(2, replace(SILENCE, accounts=accounts))
    agents = {**stage.fleet.agents, "ann": replace(stage["ann"], stall=replace(stage["ann"].stall, escalations=3))}
    stage.fleet = replace(stage.fleet, agents=agents)
    stage.at(100, stage.heard("ben"))
    stage.until(101)
    cut(stage, 102)
    assert stage["ann"].deadline == 1902
    return stage


def let_rest(stage: Stage) -> None:
    """Until shortly before the end of the rest; ben is heard all the while."""
    for clock in range(190, 1900, 90):
        stage.until(clock)
        stage.at(clock, stage.heard("ben"))


def test_the_return_of_its_account_does_not_end_a_rest() -> None:
    stage = resting(ann="acme", ben="acme")
    stage.at(103, stage.exited("ben", Ending.LIMIT, until=30.0))
    said = stage.until(200)
    assert [line for line in said if "probing" in line] == [line for line in said if "probing ben" in line] != []
    stage.at(200, stage.heard("ben"))
    assert stage.until(240)[-1].endswith("limit lifted: acme has usage again; 0 more agents come back")
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.PARKED, 1902)


def test_who_rests_tries_its_account_only_when_it_has_rested() -> None:
    stage = resting(ann="acme", cid="acme")
    stage.fleet = replace(stage.fleet, run=replace(stage.fleet.run, limits={"acme": Limit(until=500.0)}))
    let_rest(stage)
    assert stage.fleet.run.limits["acme"].probe == ""
    said = stage.until(1902)
    assert [line for line in said if "ann" in line] == [
        "1902 probing ann: whether acme has usage again",
        "1902 spawn ann/2: stalled (silent, 4, 100), told 0, owed stalled:h1",
    ]


def test_progress_that_is_heard_of_late_leaves_a_rest_as_it_is() -> None:
    stage = resting()
    stage.at(110, stage.submission("ann"))
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.PARKED, 1902)
    assert (brief(stage["ann"].reason), stage["ann"].stall.escalations) == ("stalled (silent, 4, 100)", 0)
    let_rest(stage)
    assert stage.until(1902) == ["1902 spawn ann/2: stalled (silent, 4, 100), told 0"]


def test_who_has_rested_and_has_no_usage_left_waits_for_that() -> None:
    stage = resting(ann="acme", ben="acme")
    stage.fleet = replace(stage.fleet, run=replace(stage.fleet.run, limits={"acme": Limit(until=9000.0, probe="")}))
    stage.until(110)
    stage.at(111, stage.exited("ben", Ending.INTERRUPTED))
    stage.until(1902)
    assert (stage["ann"].phase, stage["ann"].deadline, brief(stage["ann"].reason)) == (Phase.PARKED, None, "at limit")
