"""Jobs as transcripts: started once, not ended with a launch but with their agent and their run, told at the end."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, brief, on_request, setting

from coral.codec import decode
from coral.fleet import events as on
from coral.fleet.agent_state import OutputCounts, Phase
from coral.fleet.events import Ending
from coral.fleet.policy import (
    JOB_EXCUSE_SECONDS,
    MAX_KILLS,
    MAX_NOTICE_JOBS,
    MAX_NOTICE_OUTPUTS,
    SCAN_SECONDS,
    runs_job,
)
from coral.fleet.reasons import JobOutcome
from coral.fleet.run_state import Job

RULES = replace(QUIET_RULES, stall=9e9, backoff=10.0, backoff_max=600.0, max_defer=300.0, interrupt_grace=10.0)
TRAIN = on.RunJob(agent="ann", argv=("python", "train.py"), what="wide net", folder="src")
LOGGED = "`coral job log 1` shows its output, and a message says when it ends"


def stage_with_a_job(agents: int = 1, clock: float = 2.0) -> Stage:
    stage = Stage(agents, RULES)
    stage.ask("ann", TRAIN, clock)
    return stage


def ended(number: int = 1, code: int | None = 0, last: tuple[str, ...] = ()) -> on.JobEnded:
    return on.JobEnded(number=number, code=code, last_lines=last, output="../job-1.out")


def only_spawn(lines: list[str]) -> str:
    (line,) = [line for line in lines if "spawn " in line]
    return line


# --- its beginning ------------------------------------------------------------------------------------------------


def test_an_agent_starts_a_job_and_goes_on() -> None:
    stage = Stage(2, RULES)
    assert stage.ask("ann", TRAIN) == [
        f"answer ann: yes, job 1 starts: {LOGGED}",
        "start job 1 of ann: python train.py in src",
        "job ann: job 1 starts: wide net",
    ]
    assert stage["ann"].phase is Phase.RUNNING
    assert runs_job("ann", stage.fleet.jobs)
    assert not runs_job("ben", stage.fleet.jobs)
    assert (stage.fleet.jobs[1].began, stage.fleet.jobs[1].began_at) == ("wall 2", 2)


def test_numbers_are_given_once_in_a_run_and_a_job_without_a_name_is_called_by_its_command() -> None:
    stage = stage_with_a_job(2)
    command = on.RunJob(agent="ben", argv=("sweep", "x" * 100))
    title = "sweep " + "x" * 74
    assert stage.ask("ben", command, 3)[2] == f"job ben: job 2 starts: {title}"
    stage.at(4, ended(2))
    assert stage.ask("ben", command, 5)[1] == f"start job 3 of ben: sweep {'x' * 100}"


def test_an_agent_has_no_more_than_three_jobs_and_another_has_its_own() -> None:
    stage = stage_with_a_job(2)
    stage.ask("ann", TRAIN, 3)
    stage.ask("ann", TRAIN, 4)
    assert stage.ask("ann", TRAIN, 4) == [
        "answer ann: no, cannot start a job: 3 run already (`coral job stop N` ends one of them)"
    ]
    assert stage.ask("ben", replace(TRAIN, agent="ben"), 5)[1] == "start job 4 of ben: python train.py in src"
    stage.at(6, ended(1))
    assert stage.ask("ann", TRAIN, 7)[1] == "start job 5 of ann: python train.py in src"


def test_the_operator_starts_jobs_of_an_agent_and_agents_only_their_own() -> None:
    stage = Stage(2, RULES)
    assert stage.ask("operator", TRAIN)[1] == "start job 1 of ann: python train.py in src"
    assert stage.ask("ben", TRAIN) == ["answer ben: no, cannot start a job of somebody else (leave out the agent)"]
    assert stage.ask("operator", replace(TRAIN, agent="zoe")) == [
        "answer operator: no, cannot start a job of 'zoe': there is no such agent (coral status names them)",
        "refused: job: cannot start a job of 'zoe': there is no such agent",
    ]


def test_a_job_that_could_not_have_its_time_is_refused() -> None:
    stage = Stage(2, RULES)
    stage.at(2, on.DiskChecked(problem="the disk is full"))
    full = "answer ann: no, cannot start a job: the disk is full (ask again when there is space)"
    assert stage.ask("ann", TRAIN, 3) == [full]
    stage.at(4, on.DiskChecked(problem=""))
    stage.at(5, stage.exited("ben", Ending.TERMINAL))
    assert stage.ask("operator", replace(TRAIN, agent="ben"), 6) == [
        "answer operator: no, cannot start a job: ben has retired (coral status shows who is at work)",
        "refused: job: cannot start a job: ben has retired",
    ]
    stopping = "answer ann: no, cannot start a job: the run is stopping (`coral resume` continues it)"
    stage.stop(7, "")
    assert stage.ask("ann", TRAIN, 8) == [stopping]
    stage = Stage(rules=RULES)
    said = stage.at(2, stage.asks("operator", on.Leave(end=on_request())), stage.asks("ann", TRAIN))
    assert said[-1].startswith("answer ann/2: no, cannot start a job: the run is stopping")


def test_one_that_is_to_end_at_once_never_begins_and_one_that_waits_does_with_the_next_supervisor() -> None:
    stage = Stage(rules=RULES)
    said = stage.at(2, stage.asks("ann", TRAIN), stage.asks("operator", on.Stop(end=on_request("enough"))))
    assert [line for line in said if "job 1" in line] == [
        f"answer ann/1: yes, job 1 starts: {LOGGED}",
        "show job 1 of ann: cancelled (stop), after 0 at wall 2",
    ]
    assert not stage.fleet.jobs
    stage = Stage(rules=RULES)
    said = stage.at(2, stage.asks("ann", TRAIN), stage.asks("operator", on.Leave(end=on_request())))
    assert not [line for line in said if line.startswith("start job")]
    assert stage.fleet.jobs[1].phase is Phase.WAITING
    assert "start job 1 of ann: python train.py in src" in stage.at(3, on.Resumed())
    assert decode(Job, {"is": "Job", "number": 1, "agent": "ann", "argv": ["train"]}).phase is Phase.RUNNING


# --- its end ------------------------------------------------------------------------------------------------------


def test_its_agent_is_told_of_the_end_at_a_good_moment() -> None:
    stage = stage_with_a_job(2)
    assert stage.at(44, ended(last=("epoch 9", "loss 0.1"))) == ["show job 1 of ann: succeeded, after 42 at wall 44"]
    assert not stage.fleet.jobs
    (owed,) = stage["ann"].pending_messages
    assert (owed.name, owed.since, owed.due, owed.defers) == ("job ended", 44, 344, True)
    (end,) = owed.job_ends
    assert (end.number, end.title, end.outcome, end.code) == (1, "wide net", JobOutcome.SUCCEEDED, 0)
    assert (end.seconds, end.output, end.last_lines) == (42, "../job-1.out", ("epoch 9", "loss 0.1"))
    assert stage["ben"].pending_messages == ()
    assert stage.until(344) == ["344 interrupt ann/1"]
    assert only_spawn(stage.resumed("ann", 345)) == "spawn ann/2: heartbeat, session of ann, told 0, owed job ended:h1"
    assert stage["ann"].awaiting_reply == ()


@pytest.mark.parametrize(
    ("code", "how"), [(3, "failed (3)"), (1, "failed (1)"), (-1, "signalled (-1)"), (None, "unknown")]
)
def test_how_it_ended_is_said(code: int | None, how: str) -> None:
    stage = stage_with_a_job()
    assert stage.at(3, ended(code=code)) == [f"show job 1 of ann: {how}, after 1 at wall 3"]
    (end,) = stage["ann"].pending_messages[0].job_ends
    assert (how.partition(" ")[0], end.code, end.last_lines) == (end.outcome, code, ())


def test_one_that_cannot_be_started_is_told_of_also_while_the_disk_is_full() -> None:
    stage = stage_with_a_job()
    assert stage.at(3, on.SpawnFailed(who="%1", launch=1, reason="no such folder")) == [
        "show job 1 of ann: not started (no such folder), after 1 at wall 3"
    ]
    (end,) = stage["ann"].pending_messages[0].job_ends
    assert (end.outcome, end.detail, end.seconds, end.output) == (JobOutcome.NOT_STARTED, "no such folder", 1, "")
    stage = stage_with_a_job()
    stage.at(3, on.DiskChecked(problem="the disk is full"))
    said = stage.at(4, on.SpawnFailed(who="%1", launch=1, reason="no space"))
    assert said[0].startswith("show job 1 of ann: not started (no space)")
    assert not stage.fleet.jobs


def test_of_a_job_that_is_not_known_nothing_is_heard() -> None:
    stage = stage_with_a_job()
    echoes = [ended(7), on.SpawnFailed(who="%7", launch=1, reason="?"), on.LeftProcesses(who="%7", launch=1)]
    assert stage.at(3, *echoes) == []
    assert list(stage.fleet.jobs) == [1]


def test_an_agent_stops_its_own_job_and_knows() -> None:
    stage = stage_with_a_job()
    assert stage.ask("ann", on.StopJob(number=1), 3) == [
        "answer ann: yes, job 1 ends",
        "interrupt %1/1",
        "job ann: job 1 is to end: request (ann)",
    ]
    assert stage.ask("ann", on.StopJob(number=1), 4) == ["answer ann: yes, job 1 ends"]
    assert stage.at(5, ended(code=-2)) == ["show job 1 of ann: signalled (-2, request (ann)), after 3 at wall 5"]
    assert stage["ann"].pending_messages == ()


def test_the_operator_stops_any_and_its_agent_is_told() -> None:
    stage = stage_with_a_job(2)
    nobody = "cannot stop job {}: there is none that runs (`coral job list` shows what runs)"
    assert stage.ask("ben", on.StopJob(number=1)) == [f"answer ben: no, {nobody.format(1)}"]
    assert stage.ask("operator", on.StopJob(number=2)) == [
        f"answer operator: no, {nobody.format(2)}",
        "refused: job: cannot stop job 2: there is none that runs",
    ]
    assert stage.ask("operator", on.StopJob(number=1))[1] == "interrupt %1/1"
    stage.at(3, ended(code=-2))
    (end,) = stage["ann"].pending_messages[0].job_ends
    assert (end.outcome, end.code, brief(end.reason)) == (JobOutcome.SIGNALLED, -2, "request (operator)")


def test_who_does_not_obey_is_terminated_killed_and_given_up() -> None:
    stage = stage_with_a_job()
    stage.ask("ann", on.StopJob(number=1), 3)
    said = stage.until(100)
    assert said[:3] == ["13 terminate %1/1", "18 kill %1/1", "20 kill %1/1"]
    assert len([line for line in said if "kill %1/1" in line]) == MAX_KILLS
    assert said[-2:] == [
        "80 alert run-alert-1 of ann: job 1 of ann cannot be killed",
        "80 show job 1 of ann: unkillable (request (ann)), after 78 at wall 80",
    ]
    assert not stage.fleet.jobs


def test_what_a_job_leaves_is_no_job() -> None:
    stage = stage_with_a_job()
    assert stage.at(3, on.LeftProcesses(who="%1", launch=1)) == ["terminate %1/1"]
    assert stage.at(4, on.LeftProcesses(who="%1", launch=1)) == []
    assert stage.fleet.jobs[1].phase is Phase.TERMINATED
    assert stage.until(8) == ["8 kill %1/1"]
    assert stage.fleet.jobs[1].phase is Phase.KILLED
    assert stage.at(9, on.LeftProcesses(who="%1", launch=1)) == []
    assert stage.at(9, ended())[0].startswith("show job 1 of ann: succeeded")
    stage = stage_with_a_job()
    stage.ask("ann", on.StopJob(number=1), 3)
    assert stage.at(4, on.LeftProcesses(who="%1", launch=1)) == ["terminate %1/1"]


# --- launches, agents, runs ---------------------------------------------------------------------------------------


def test_a_job_survives_a_heartbeat_and_ends_when_its_agent_retires() -> None:
    stage = stage_with_a_job()
    stage.ask("ann", setting("ann", name="breathe", every=1, prompt="in"), 3)
    assert "interrupt ann/1" in stage.tried(4, "ann", 1.0)
    stage.resumed("ann", 5)
    assert stage["ann"].launch == 2
    assert stage.fleet.jobs[1].phase is Phase.RUNNING
    stage = stage_with_a_job(2)
    said = stage.at(3, stage.exited("ann", Ending.TERMINAL))
    assert said[-2:] == ["interrupt %1/1", "job ann: job 1 is to end: agent retired"]
    assert stage.at(4, ended(code=-2))[0] == ("show job 1 of ann: signalled (-2, agent retired), after 2 at wall 4")
    assert stage["ann"].pending_messages == ()
    assert stage["ben"].pending_messages == ()


def test_a_run_stops_when_its_jobs_have_ended_too_and_leaves_them_alone_where_it_is_left() -> None:
    stage = stage_with_a_job()
    assert stage.ask("operator", on.Stop(end=on_request("enough")), 3) == [
        "answer operator: yes, stopping",
        "interrupt ann/1",
        "interrupt %1/1",
        "job ann: job 1 is to end: stop",
    ]
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    assert not stage.fleet.run.finished
    assert stage.at(5, ended(code=-2))[-1] == "finish: request (enough)"
    assert brief(stage["ann"].pending_messages[0].job_ends[0].reason) == "stop"
    said = stage.at(9, on.Resumed())
    assert only_spawn(said).endswith("owed job ended:h1")
    stage = stage_with_a_job()
    stage.ask("operator", on.Leave(end=on_request()), 3)
    assert stage.fleet.jobs[1].phase is Phase.RUNNING


def test_whoever_takes_the_run_over_says_again_what_may_not_have_been_heard() -> None:
    stage = stage_with_a_job()
    stage.ask("ann", TRAIN, 3)
    stage.ask("ann", on.StopJob(number=2), 4)
    assert [line for line in stage.at(5, on.Resumed()) if "%" in line] == ["interrupt %2/1"]
    assert stage.until(14) == ["14 terminate %2/1"]
    assert [line for line in stage.at(15, on.Resumed()) if "%" in line] == []


def test_who_asks_first_is_who_ended_it() -> None:
    stage = stage_with_a_job()
    said = stage.at(3, stage.asks("ann", on.StopJob(number=1)), stage.asks("operator", on.StopJob(number=1)))
    assert said[-1] == "job ann: job 1 is to end: request (ann)"
    stage.ask("operator", on.Stop(end=on_request()), 4)
    assert brief(stage.fleet.jobs[1].reason) == "request (ann)"
    assert stage.fleet.jobs[1].stopped_by_owner


# --- the end of a turn --------------------------------------------------------------------------------------------


def waiting_for_a_job() -> Stage:
    """ann's job began at 70, and her turn ended at 80."""
    stage = stage_with_a_job(clock=70)
    stage.at(80, stage.exited("ann"))
    return stage


def test_a_turn_that_ends_while_a_job_runs_waits_for_it_but_no_longer_than_any_back_off() -> None:
    stage = waiting_for_a_job()
    assert (stage["ann"].phase, brief(stage["ann"].reason), stage["ann"].deadline) == (
        Phase.WAITING,
        "waits for job",
        680,
    )
    said = stage.at(90, ended())
    assert only_spawn(said) == "spawn ann/2: turn ended, session of ann, told 0, owed job ended:h1"
    assert only_spawn(waiting_for_a_job().until(680)) == "680 spawn ann/2: waits for job, session of ann, told 0"


def test_a_word_for_the_agent_or_its_own_stop_of_the_job_ends_the_waiting() -> None:
    stage = waiting_for_a_job()
    said = stage.at(90, stage.asks("operator", on.Tell(to="ann", text="try less")))
    assert only_spawn(said).startswith("spawn ann/2: turn ended")
    assert stage.fleet.jobs[1].phase is Phase.RUNNING
    stage = stage_with_a_job(clock=70)
    stage.at(75, stage.asks("operator", on.Tell(to="ann", text="try less")))
    assert only_spawn(stage.at(80, stage.exited("ann"))).startswith("spawn ann/2: turn ended")
    stage = stage_with_a_job(clock=70)
    stage.ask("ann", on.StopJob(number=1), 71)
    stage.at(72, stage.exited("ann"))
    assert only_spawn(stage.at(73, ended(code=-2))) == "spawn ann/2: turn ended, session of ann, told 0"


def test_another_that_goes_on_is_waited_for_and_somebody_elses_is_not() -> None:
    stage = stage_with_a_job(2, clock=70)
    stage.ask("ann", TRAIN, 71)
    stage.ask("ann", on.StopJob(number=1), 72)
    assert only_spawn(stage.at(73, stage.exited("ben"))).startswith("spawn ben/2: turn ended")
    stage.at(74, stage.exited("ann"))
    assert stage.at(75, ended(code=-2))[-1] == "show job 1 of ann: signalled (-2, request (ann)), after 5 at wall 75"
    assert brief(stage["ann"].reason) == "waits for job"


def test_turns_that_come_to_nothing_are_no_quicker_for_their_jobs() -> None:
    """A program that starts a job and ends at once, again and again."""
    stage = Stage(rules=RULES)
    stage.ask("ann", TRAIN, 2)
    stage.at(3, stage.exited("ann"))
    assert stage["ann"].unproductive_turns == 1
    assert [line for line in stage.at(4, ended()) if line.startswith("spawn")] == []
    assert 10 <= stage["ann"].deadline - 4 <= 12
    assert only_spawn(stage.until(16)).partition(" ")[2].startswith("spawn ann/2: turn ended")
    stage.at(17, stage.heard("ann"))
    stage.at(17, stage.asks("ann", TRAIN))
    stage.at(18, stage.exited("ann"))
    stage.at(19, ended(2))
    assert 20 <= stage["ann"].deadline - 19 <= 24


def test_the_wait_is_over_also_on_a_full_disk_and_at_a_stop_and_another_wait_is_not() -> None:
    stage = waiting_for_a_job()
    stage.at(85, on.DiskChecked(problem="the disk is full"))
    stage.at(90, ended())
    assert (brief(stage["ann"].reason), stage["ann"].deadline) == ("turn ended", 90)
    stage = waiting_for_a_job()
    stage.stop(81, "")
    assert stage.at(82, ended(code=-2))[-1].startswith("finish")
    assert stage["ann"].deadline is None
    stage = stage_with_a_job(clock=2)
    stage.at(3, stage.exited("ann", Ending.CRASHED))
    deadline = stage["ann"].deadline
    stage.at(4, ended())
    assert stage["ann"].deadline == deadline


# --- stalls -------------------------------------------------------------------------------------------------------

WATCHED = replace(RULES, stall=100.0, no_progress=1000.0)


def test_who_is_silent_while_its_own_job_runs_is_not_stalled() -> None:
    stage = Stage(rules=WATCHED)
    stage.ask("ann", TRAIN)
    assert stage.until(990) == []
    stage.at(990, ended())
    assert stage["ann"].pending_messages[0].due == 1290
    assert [line for line in stage.until(1095) if "stalled" in line] == ["1090 stalled ann: stalled (silent, 1, 1089)"]
    stage = Stage(2, WATCHED)
    stage.ask("ben", replace(TRAIN, agent="ben"))
    assert [line for line in stage.until(150) if "stalled" in line] == ["101 stalled ann: stalled (silent, 1, 100)"]


def test_who_works_without_progress_while_a_job_runs_is_not_stalled() -> None:
    stage = Stage(rules=replace(WATCHED, stall=9e9))
    stage.ask("ann", TRAIN)
    assert stage.until(3000) == []
    stage.at(3000, stage.asks("ann", on.StopJob(number=1)))
    stage.at(3001, ended(code=-2))
    # It had worked for two seconds when the job began.
    assert stage.until(3998) == []
    assert stage.until(3999) == ["3999 look ann/1"]
    stage = Stage(rules=replace(WATCHED, stall=9e9))
    assert stage.until(1000) == ["1000 look ann/1"]
    stage.ask("ann", TRAIN, 1001)
    assert stage.at(1001, on.EditsScanned(agent="ann", launch=1, edited=None)) == []
    assert stage["ann"].stall.scan_requested_at is None
    assert stage["ann"].stall.escalations == 0
    assert stage.until(1001 + 2 * SCAN_SECONDS) == []


BUSY = replace(WATCHED, stall=9e9, max_defer=9e9)


def had(stage: Stage, *spans: tuple[float, float]) -> Stage:
    """The agent had jobs that began and ended then."""
    moments = [(time, number, what) for number, span in enumerate(spans, 1) for what, time in enumerate(span)]
    for time, number, ends in sorted(moments):
        stage.at(time, ended(number) if ends else stage.asks("ann", TRAIN))
    return stage


def test_a_job_excuses_silence_and_work_without_progress_for_a_bounded_time() -> None:
    stage = Stage(rules=WATCHED)
    stage.ask("ann", TRAIN)
    said = stage.until(JOB_EXCUSE_SECONDS + 100)
    assert [line for line in said if "stalled" in line] == ["28898 stalled ann: stalled (silent, 1, 28897)"]
    # After it, work without progress has its whole time.
    stage = Stage(rules=BUSY)
    stage.ask("ann", TRAIN)
    assert stage.until(JOB_EXCUSE_SECONDS + 997) == []
    assert stage.until(JOB_EXCUSE_SECONDS + 998) == ["29798 look ann/1"]
    stage.at(29799, stage.looked("ann"))
    assert stage["ann"].stall.escalations == 1
    stage = Stage(rules=BUSY)
    stage.ask("ann", TRAIN)
    stage.at(1000, stage.heard("ann", count=OutputCounts(edits=1)))
    assert stage.until(JOB_EXCUSE_SECONDS + 1999) == []
    assert stage.until(JOB_EXCUSE_SECONDS + 2000) == ["30800 look ann/1"]


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([(302, 900)], 598),
        ([(100, 200), (150, 250)], 150),
        ([(100, 400), (200, 300)], 300),
        ([(100, 200), (300, 400)], 200),
        ([(100, 100), (500, 500), (999, 999)], 0),
    ],
)
def test_the_time_of_jobs_is_taken_off_once_and_what_was_before_them_counts(
    spans: list[tuple[float, float]], seconds: float
) -> None:
    stage = had(Stage(rules=BUSY), *spans)
    due = 1000 + seconds
    assert stage.until(due) == [f"{due:g} look ann/1"]


@pytest.mark.parametrize(("spans", "due"), [([(2, 50)], 149), ([(2, 150)], 250), ([(2, 50), (60, 90)], 179)])
def test_silence_has_as_much_more_time_as_a_job_took(spans: list[tuple[float, float]], due: float) -> None:
    stage = had(Stage(rules=WATCHED), *spans)
    assert stage.until(due)[0] == f"{due} stalled ann: stalled (silent, 1, {due - 1})"


def test_a_job_that_never_ran_gives_no_time_and_who_does_not_work_has_none_taken_off() -> None:
    stage = Stage(rules=BUSY)
    stage.ask("ann", TRAIN, 900)
    stage.at(900, on.SpawnFailed(who="%1", launch=1, reason="no such folder"))
    assert stage.until(1000) == ["1000 look ann/1"]
    stage = Stage(rules=replace(BUSY, backoff=500.0))
    stage.ask("ann", TRAIN, 300)
    stage.at(500, stage.exited("ann", Ending.CRASHED))
    stage.at(600, ended())
    assert (stage["ann"].stall.accumulated, stage["ann"].stall.since) == (300, None)


def test_a_job_that_another_launch_goes_on_with_is_taken_off_both() -> None:
    stage = Stage(rules=BUSY)
    stage.ask("ann", TRAIN, 300)
    stage.at(500, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].stall.accumulated == 300
    began = stage.deadline("ann")
    stage.until(began)
    stage.at(began + 1, stage.heard("ann"))
    stage.at(600, ended())
    assert stage.until(1300) == ["1300 look ann/2"]


def test_a_look_that_is_under_way_when_a_job_has_ended_is_asked_for_again() -> None:
    stage = Stage(rules=BUSY)
    assert stage.until(1000) == ["1000 look ann/1"]
    stage.ask("ann", TRAIN, 1001)
    assert stage.at(1010, ended())[-1] == "look ann/1"
    assert stage["ann"].stall.scan_requested_at == 1010
    stage.ask("ann", TRAIN, 1011)
    assert stage.at(1012, stage.looked("ann")) == []
    assert (stage["ann"].stall.scan_requested_at, stage["ann"].stall.escalations) == (None, 0)


# --- while nobody supervises --------------------------------------------------------------------------------------


def test_a_job_runs_on_while_nobody_supervises_and_that_counts() -> None:
    stage = Stage(rules=RULES)
    stage.ask("ann", TRAIN)
    stage.at(10, on.Resumed(away=1000.0))
    stage.at(20, on.Resumed(away=500.0))
    assert stage.fleet.jobs[1].seconds(20) == 1518
    assert stage.at(22, ended())[0] == "show job 1 of ann: succeeded, after 1520 at wall 22"
    stage = Stage(rules=RULES)
    stage.at(2, stage.asks("ann", TRAIN), stage.asks("operator", on.Leave(end=on_request())))
    stage.at(3, on.Resumed(away=1000.0))
    assert stage.fleet.jobs[1].away == 0
    stage = Stage(rules=RULES)
    stage.ask("ann", TRAIN)
    said = stage.at(10, on.Resumed(away=1000.0), replace(ended(), ago=900.0))
    assert "show job 1 of ann: succeeded, after 108 at wall 10" in said
    stage.ask("ann", TRAIN, 11)
    said = stage.at(12, on.Resumed(), replace(ended(2, code=None), ago=900.0))
    assert "show job 2 of ann: unknown, after 0 at wall 12" in said


# --- what is told of the ends of many -----------------------------------------------------------------------------


def run_job(stage: Stage, number: int, clock: float) -> None:
    stage.ask("ann", replace(TRAIN, what=f"try {number}"), clock)
    stage.at(clock + 1, ended(number, last=("loss 1",)))


def test_the_ends_of_however_many_jobs_are_one_word_of_a_bounded_length() -> None:
    stage = Stage(rules=RULES)
    for number, clock in ((1, 10), (2, 20)):
        run_job(stage, number, clock)
    (owed,) = stage["ann"].pending_messages
    assert (owed.name, owed.since, owed.due, owed.defers, owed.prompt) == ("job ended", 11, 311, True, "")
    assert [(end.number, end.title, end.last_lines) for end in owed.job_ends] == [
        (1, "try 1", ("loss 1",)),
        (2, "try 2", ("loss 1",)),
    ]
    stage = Stage(rules=replace(RULES, max_defer=9e9))
    for number in range(1, 41):
        run_job(stage, number, number * 10)
    (owed,) = stage["ann"].pending_messages
    assert [end.number for end in owed.job_ends] == list(range(41 - MAX_NOTICE_JOBS, 41))
    assert (MAX_NOTICE_JOBS, MAX_NOTICE_OUTPUTS) == (10, 3)
    assert [bool(end.last_lines) for end in owed.job_ends] == [False] * 7 + [True] * 3
    assert owed.earlier_job_ends == 40 - MAX_NOTICE_JOBS


def stage_where_the_first_of_three_ends_is_on_its_way() -> Stage:
    """Ann was interrupted, and her second launch, unheard as yet, carries the end of job 1."""
    stage = Stage(rules=RULES)
    run_job(stage, 1, 10)
    stage.ask("ann", TRAIN, 12)
    stage.ask("ann", TRAIN, 13)
    stage.until(311)
    stage.at(312, stage.exited("ann", Ending.INTERRUPTED))
    return stage


def test_what_is_on_its_way_stays_as_it_was_handed_over() -> None:
    stage = stage_where_the_first_of_three_ends_is_on_its_way()
    assert stage["ann"].in_flight == ("h1",)
    stage.at(313, ended(2))
    stage.at(314, ended(3))
    assert [(message.id, [end.number for end in message.job_ends]) for message in stage["ann"].pending_messages] == [
        ("h1", [1]),
        ("h2", [2, 3]),
    ]
    assert stage.at(315, stage.heard("ann")) == ["heartbeat ann: job ended (h1) received"]
    assert stage.owed("ann") == ["job ended h2"]
    stage = stage_where_the_first_of_three_ends_is_on_its_way()
    stage.at(313, ended(2))
    stage.at(314, stage.exited("ann", Ending.CRASHED))
    stage.at(315, ended(3))
    assert [[end.number for end in message.job_ends] for message in stage["ann"].pending_messages] == [[1], [2, 3]]


def test_who_has_seen_the_end_of_a_job_is_not_told_of_it_unless_a_launch_was_handed_it() -> None:
    stage = Stage(2, rules=RULES)
    for number, clock in ((1, 10), (2, 20)):
        run_job(stage, number, clock)
    stage.ask("operator", on.Tell(to="ann", text="look"), 22)
    assert stage.ask("ben", on.Acknowledge(jobs=(1, 2)), 23) == ["answer ben: yes, acknowledged"]
    assert stage.ask("ann", on.Acknowledge(jobs=(1, 7)), 24) == ["answer ann: yes, acknowledged"]
    assert [[end.number for end in message.job_ends] for message in stage["ann"].pending_messages] == [[2], []]
    assert stage.ask("ann", on.Acknowledge(jobs=(2,)), 25) == [
        "withdrawn ann: job ended (h1) was seen",
        "answer ann: yes, acknowledged",
    ]
    assert stage.owed("ann") == ["message h2"]
    stage = Stage(rules=RULES)
    run_job(stage, 1, 10)
    stage.until(311)
    stage.at(312, stage.exited("ann", Ending.INTERRUPTED))
    stage.ask("ann", on.Acknowledge(jobs=(1,)), 313)
    assert stage.at(314, stage.heard("ann")) == ["heartbeat ann: job ended (h1) received"]
