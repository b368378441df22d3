"""`coral.run` on real runs: it starts one with the settings given, follows it, waits for it and stops it."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from real_runs import is_alive, tries, wait_until, write_task
from sample import make_run, write_status

import coral as api
from coral.api.handle import _settings
from workspace.layout import runs_under


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_is_started_followed_and_waited_for(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", tries(1, 3, 2))
    with api.run(task, {"budget.attempts": 3}, agents={"count": 1}, grader={"args": {"size": 2}}) as run:
        assert [(one.number, one.score) for one in run] == [(1, 1.0), (2, 3.0), (3, 2.0)]
        over = run.wait(120)
    assert run.path.is_relative_to(tmp_path / "runs")
    assert (over.state, over.is_running) == ("stopped", False)
    assert "3 attempts" in over.reason
    assert over.best is not None
    assert (over.best.attempt.number, over.best.median) == (2, 3.0)
    assert over.settings["grader.args"] == '{"size": 2}'
    assert over.settings["budget.attempts"] == "3"
    assert [one.number for one in api.RunHandle(over.name)] == [1, 2, 3], "of a run that anybody started"


def test_leaving_the_block_stops_the_run_and_all_that_it_started(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ["hang"])
    with api.run(task) as run:
        supervisor = run.run.status["supervisor"]
        assert run.run.is_running
        with pytest.raises(TimeoutError, match=r"is not over after 0\.1 s"):
            run.wait(0.1)
    assert run.run.state == "stopped"
    assert run.run.reason.endswith("the program that started it has left it")
    assert not is_alive(supervisor)
    assert run.stop().state == "stopped", "nothing is done to a run that is over"


def test_what_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(api.CoralError, match="there is no folder or task file gone") as refused:
        api.run("gone")
    assert refused.value.hint == "`coral init` makes a task that works"
    task = write_task(tmp_path / "task", ["hang"])
    with pytest.raises(api.CoralError, match=r"cannot use this task: 2 problems\n.*agents\.count") as refused:
        api.run(task, agents={"count": -1}, count=4)
    assert "correct it where you typed it" in refused.value.hint
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_the_users_never_takes_the_place_of_a_package_of_ours(tmp_path: Path) -> None:
    (tmp_path / "attempts").mkdir()
    (tmp_path / "attempts" / "__init__.py").write_text("raise SystemExit('not ours')\n")
    with pytest.raises(api.CoralError, match="no folder or task file gone"):
        api.run("gone")


def test_settings_are_given_by_dotted_key_or_by_section() -> None:
    x = [1, None, np.int64(7), Path("a")]
    given = {"agents.count": 4, "agents": {"model": "a: b", "options": {}}, "grader": {"args": {"x": x}}}
    assert dict(_settings(given)) == {
        "agents.count": "4",
        "agents.model": '"a: b"',
        "agents.options": "{}",
        "grader.args.x": '[1, null, 7, "a"]',
    }


def test_a_run_whose_supervisor_was_killed_is_over(start, tmp_path: Path) -> None:
    started = start(["hang"])
    run = api.RunHandle(started.layout.root)
    wait_until(lambda: any(one["launch"] for one in run.run.status.get("agents", ())), what="a launch")
    started.kill()
    assert run.wait(120).state == "dead"
    assert list(run) == []
    assert run.stop().state == "stopped"


NOISY = """\
import random
def grade(workspace):
    return float((workspace / "x.txt").read_text()) + random.uniform(-0.2, 0.2)
"""


def test_what_was_measured_several_times_has_the_figures_of_the_status(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", tries(1, 5, 3), grade=NOISY)
    with api.run(task, grader={"noise": "auto"}, budget={"attempts": 3}) as run:
        over = run.wait(120)
    assert over.best is not None
    assert over.lead is not None
    assert over.best.count > 1
    parts = ("median", "mean", "deviation", "count")
    for name, one in (("best", over.best), ("lead", over.lead)):
        status = over.status[name]
        assert (one.attempt.number, one.attempt.agent) == (status["number"], status["agent"])
        assert [getattr(one, part) for part in parts] == [status[part] for part in parts], name
    assert over.baseline == over.status["baseline"]
    assert over.noise == over.status["noise"] > 0
    assert over.curve.best == over.best.median
    assert over.leaderboard[0].median == over.lead.median


SLOW = """\
import signal, time
def grade(workspace):
    for number in (signal.SIGINT, signal.SIGTERM):  # to end it takes a while
        signal.signal(number, signal.SIG_IGN)
    open({marker!r}, "w").close()
    time.sleep(60)
"""


def test_an_interrupt_of_the_program_ends_the_start_and_leaves_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "grading"
    write_task(tmp_path / "task", ["hang"], grade=SLOW.format(marker=str(marker)))
    program = subprocess.Popen(
        [sys.executable, "-c", "import coral; coral.run('task')"], stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        wait_until(marker.exists, what="the grade of the seed")
        program.send_signal(signal.SIGINT)
        _, printed = program.communicate(timeout=120)
    finally:
        program.kill()
    assert b"KeyboardInterrupt" in printed
    assert runs_under(tmp_path / "runs") == []
    assert [path for path in tmp_path.glob("runs/*/*") if path.is_dir()] == []


def test_an_agent_that_works_alone_follows_its_own_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout, "stopped")
    assert [one.number for one in api.RunHandle(layout.root)] == [1, 2, 3, 4]
    layout.shared_of("agent-1", share=False).mkdir(parents=True)
    monkeypatch.chdir(layout.clone("agent-1"))
    assert {one.agent for one in api.RunHandle(layout.root)} == {"agent-1"}
