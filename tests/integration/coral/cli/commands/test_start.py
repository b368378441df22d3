"""`start`, `attach`, `stop` and `resume` on real runs, in a pipe and on a terminal."""

import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest
from real_runs import TRY, coral_interpreter, coral_process, wait_until, write_task

from attempts.store import Store
from coral.processes.process_tree import identify, is_alive
from coral.supervisor.lock import holder
from workspace.knowledge import write_note
from workspace.layout import Layout, runs_under

CORAL = (sys.executable, "-P", "-m", "coral")
DEADLINE = 120.0  # seconds: what takes longer has failed, on any machine
FOREVER = [{"repeat": {"steps": TRY, "times": 100_000}}]


@pytest.fixture
def task(tmp_path) -> Iterator[Path]:
    """A task whose agents try one number after the other; its runs are stopped at the end."""
    yield write_task(tmp_path / "task", FOREVER)
    for layout in runs_under(tmp_path / "runs"):
        if holder(layout.lock) is not None:
            run(tmp_path, "stop", "--run", str(layout.root))


def run(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return coral_process(*words, cwd=cwd)


def the_run(base: Path) -> Layout:
    return wait_until(lambda: runs_under(base / "runs"), DEADLINE, "a run")[0]  # type: ignore[no-any-return]


def attempts(base: Path) -> int:
    found = runs_under(base / "runs")
    return len(Store(found[0].attempts).numbers()) if found else 0


def test_start_in_a_pipe_prints_lines_and_a_summary(task: Path, tmp_path) -> None:
    done = coral_interpreter("start", str(task), "budget.attempts=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "grading the seed" in done.stderr
    assert re.search(r"^ +0:\d\d  agent-1   #1 new best 1: try 1$", done.stdout, re.MULTILINE)
    for text in ("Leaderboard", "Best score over time", "To look further", "the budget of 3 attempts is used up"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout
    assert holder(the_run(tmp_path).lock) is None


def test_a_run_begins_with_what_an_earlier_one_has_learned(task: Path, tmp_path) -> None:
    earlier = tmp_path / "team" / "toy" / "first"
    write_note(earlier, "rows", {"title": "Rows pay (#7)", "author": "ann"}, "#1 to #7, +0.5")
    done = run(tmp_path, "start", str(task), "budget.attempts=1", "--knowledge", str(tmp_path / "team"))
    assert done.returncode == 0, done.stderr
    prompt = the_run(tmp_path).prompt("agent-1", 1).read_text()
    assert "`earlier/toy-first/001-rows`: Rows pay (there#7)" in prompt
    assert "It is no evidence here" in prompt
    refused = run(tmp_path, "start", str(task), "--knowledge", str(task))
    assert (refused.returncode, len(runs_under(tmp_path / "runs"))) == (1, 1)
    assert "cannot take knowledge from" in refused.stderr


def test_a_small_budget_is_warned_of_and_started(task: Path, tmp_path) -> None:
    done = run(tmp_path, "start", str(task), "agents.count=2", "budget.attempts=1")
    assert done.returncode == 0, done.stderr
    told = "coral: the budget may be too small: budget.attempts=1 is less than one for each of 2 agents"
    assert told in done.stderr.splitlines()
    assert "the budget of 1 attempt is used up" in done.stdout
    # One that is large enough is no matter; that the next run begins from other files is.
    (task / "seed" / "more.txt").write_text("1")
    said = run(tmp_path, "start", str(task), "budget.attempts=1").stderr
    assert "budget" not in said
    assert re.search(r"^coral: the seed has changed since the run \S+: more.txt$", said, re.MULTILINE)
    # What cannot be checked is said, and stops nothing.
    runs_under(tmp_path / "runs" / "number")[0].seed_commit.write_bytes(b"\xff")
    done = run(tmp_path, "start", str(task), "budget.attempts=1")
    assert done.returncode == 0, done.stderr
    assert "coral: the seed of the last run cannot be checked: 'utf-8' codec" in done.stderr
    assert "; the run starts all the same\n" in done.stderr
    assert "the budget of 1 attempt is used up" in done.stdout


def test_detach_attach_stop_resume(task: Path, tmp_path) -> None:
    started = run(tmp_path, "start", str(task), "--detach")
    assert started.returncode == 0, started.stderr
    assert "`coral attach` watches, `coral stop` ends it" in started.stdout
    layout = the_run(tmp_path)
    supervisor = identify(json.loads(run(tmp_path, "status", "--json").stdout)["supervisor"])
    assert supervisor is not None
    again = run(tmp_path, "resume")
    assert (again.returncode, "supervises it already" in again.stderr) == (1, True)
    wait_until(lambda: attempts(tmp_path) > 3, DEADLINE, "attempts")
    status = json.loads(run(tmp_path, "status", "--json").stdout)
    assert (status["state"], status["supervisor"]) == ("running", holder(layout.lock))
    with subprocess.Popen([*CORAL, "attach"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as attached:
        first = attached.stdout.readline()  # it has found who supervises
        told = run(tmp_path, "tell", "be bold")
        assert (told.returncode, told.stderr) == (0, f"  run: {layout.root.parent.name}/{layout.root.name}\n")
        stopped = run(tmp_path, "stop")
        assert not is_alive(supervisor)
        assert (stopped.returncode, "has stopped" in stopped.stdout) == (0, True)
        said = first + attached.stdout.read()
        attached.wait(DEADLINE)
    assert attached.returncode == 0
    assert "#1 new best 1: try 1" in said
    assert "stopped: the operator asked for it" in said
    before = attempts(tmp_path)
    wrong = run(tmp_path, "resume", "--detach", "budget.atempts=9")
    assert (wrong.returncode, 'did you mean "attempts"?' in wrong.stderr) == (1, True)
    refused = run(tmp_path, "heartbeat", "remove", "reflect")
    assert (refused.returncode, "cannot remove reflect: it is protected" in refused.stderr) == (1, True)
    asked = run(tmp_path, "heartbeat", "set", "redirect", "--stagnant", "9")
    assert (asked.returncode, "it takes effect when the run is resumed" in asked.stdout) == (0, True)
    resumed = run(tmp_path, "resume", "--detach", "-i", "look at the edges")
    assert resumed.returncode == 0, resumed.stderr
    wait_until(lambda: attempts(tmp_path) > before, DEADLINE, "another attempt")
    wait_until(lambda: any("look at the edges" in text for text in prompts(layout)), DEADLINE, "the instruction")
    told = [json.loads(line) for line in layout.events.read_text().splitlines()]
    assert [event for event in told if event["type"] == "refused"] == []
    assert any("redirect" in event["text"] for event in told)
    assert any(event["type"] == "asked" and "look at the edges" in event["text"] for event in told)
    assert run(tmp_path, "stop").returncode == 0
    assert holder(layout.lock) is None


def prompts(layout: Layout) -> list[str]:
    return [path.read_text() for path in layout.logs("agent-1").glob("*.prompt.md")]


@pytest.mark.parametrize("pauses", [(), (0.05,), (0.3, 0.3), (0.0,) * 8])
def test_on_a_terminal_ctrl_c_stops_the_run_however_often(task: Path, tmp_path, pauses: tuple[float, ...]) -> None:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [*CORAL, "start", str(task)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    child = subprocess.Popen(
        command, cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    screen = b""
    try:
        screen += until(master, lambda text: b"Ctrl-C stops the run" in text and b"stagnant" in text)
        wait_until(lambda: attempts(tmp_path) > 2, DEADLINE, "attempts")
        child.send_signal(signal.SIGINT)
        for pause in pauses:
            time.sleep(pause)
            child.send_signal(signal.SIGINT)
        screen += until(master, lambda text: b"To look further" in text)
        assert child.wait(DEADLINE) == 0
    finally:
        child.kill()
        child.wait()
        os.close(master)
    assert b"agent-1" in screen
    assert screen.count(b"\x1b[?1049h") == screen.count(b"\x1b[?1049l") == 1
    assert b"stopped: SIGINT was received" in screen
    assert holder(the_run(tmp_path).lock) is None


def test_ctrl_c_before_the_run_has_begun_says_so(tmp_path) -> None:
    task = write_task(tmp_path / "task", ["hang"], command="touch $CORAL_RESULT.begun; sleep 300")
    child = subprocess.Popen([*CORAL, "start", str(task)], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: list(tmp_path.glob("runs/*/*/private/grading/0/*.begun")), DEADLINE, "the grade of the seed")
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=DEADLINE)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130
    assert errors.endswith("coral: interrupted before the run began; nothing was left behind\n")
    assert not (tmp_path / "runs").exists()


def until(terminal: int, seen: Callable[[bytes], bool]) -> bytes:
    """What the terminal shows, up to what was waited for."""
    text, deadline = b"", time.monotonic() + DEADLINE
    while not seen(text):
        assert time.monotonic() < deadline, text[-2000:]
        try:
            text += os.read(terminal, 65536)
        except OSError:
            break
    return text


def test_detached_for_programs(task: Path, tmp_path) -> None:
    refused = run(tmp_path, "start", str(task), "--json")
    assert (refused.returncode, refused.stderr.splitlines()[1].strip()[:14]) == (1, "add --detach, ")
    assert not (tmp_path / "runs").exists()
    started = json.loads(run(tmp_path, "start", str(task), "--detach", "--json").stdout)
    layout = the_run(tmp_path)
    assert started == {"run": layout.root.name, "path": str(layout.root), "pid": holder(layout.lock)}
    stopped = json.loads(run(tmp_path, "stop", "--json").stdout)
    assert (stopped["run"], stopped["stopped"], stopped["seconds"] > 0) == (layout.root.name, True, True)
    assert json.loads(run(tmp_path, "stop", "--json").stdout) == {**stopped, "seconds": 0}
    resumed = json.loads(run(tmp_path, "resume", "--detach", "--json").stdout)
    assert resumed == {**started, "pid": holder(layout.lock)}


def test_a_closed_pipe_does_not_end_the_run(task: Path, tmp_path) -> None:
    program = shlex.join(CORAL)
    piped = f"set -o pipefail; {program} start {task} budget.attempts=3 | head -n 1; {program} log | true; echo $?"
    done = subprocess.run(["bash", "-c", piped], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert (done.stdout.splitlines()[-1], "Traceback" in done.stderr) == ("0", False)
    assert attempts(tmp_path) == 4
    frozen = the_run(tmp_path).task_file.read_bytes()
    refused = run(tmp_path, "resume", "--detach", "agents.runtime=native")
    assert refused.stderr.startswith("coral: cannot change the program of agent-1 from scripted to native\n")
    assert (refused.stdout, the_run(tmp_path).task_file.read_bytes()) == ("", frozen)


def test_a_detached_start_imports_each_module_once_and_nothing_that_draws(task: Path, tmp_path) -> None:
    told = coral_interpreter("start", str(task), "--detach", cwd=tmp_path, PYTHONPROFILEIMPORTTIME="1").stderr
    log = the_run(tmp_path).log
    wait_until(lambda: "watchdog" in told + log.read_text(), DEADLINE, "the watch, which may begin after the start")
    lines = (told + log.read_text()).splitlines()
    loaded = [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]
    assert {"coral.runs.create", "coral.supervisor.loop", "sqlite3"} <= set(loaded)
    twice = {name for name, count in Counter(loaded).items() if count > 1}
    assert not {name for name in twice if name.startswith(("coral.", "attempts.", "workspace.", "pydantic."))}
    assert not set(loaded) & {"rich", "coral.cli.ui.live", "coral.cli.ui.summary"}
    assert "psutil" not in loaded or sys.platform != "linux"


WATCHED = """
import gc, sys
from coral.cli import program

def look(event, args):
    if event == "open" and str(args[0]).endswith("private/task.yaml") and args[1] in ("r", "rb"):
        print("reads the task", flush=True)

sys.addaudithook(look)
gc.callbacks.append(lambda *_: print("collects", flush=True))
program()
"""


def test_a_start_neither_collects_garbage_nor_reads_its_task_twice(task: Path, tmp_path) -> None:
    command = [sys.executable, "-P", "-c", WATCHED, "start", str(task), "--detach"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert ("supervised by process" in done.stdout, "collects" in done.stdout) == (True, False)
    log = the_run(tmp_path).log
    wait_until(lambda: "collects" in log.read_text(), DEADLINE, "a collection, once the run is supervised")
    assert "reads the task" not in log.read_text()


def test_a_detached_supervisor_keeps_nothing_that_its_starter_was_given(task: Path, tmp_path) -> None:
    reading, given = os.pipe()
    command = [*CORAL, "start", str(task), "--detach"]
    with subprocess.Popen(command, cwd=tmp_path, pass_fds=[given], stdout=subprocess.PIPE) as started:
        os.close(given)
        assert b"supervised by process" in started.stdout.read()
    assert holder(the_run(tmp_path).lock) is not None
    assert select.select([reading], [], [], DEADLINE)[0]
    assert os.read(reading, 1) == b""  # as soon as the command has ended, and not when the run has
    os.close(reading)


def test_a_misspelt_or_missing_task_gets_a_hint(task: Path, tmp_path) -> None:
    done = run(tmp_path, "start", "tsak")
    assert done.stderr == "coral: cannot start: there is no folder or task file tsak\n  did you mean task?\n"
    done = run(tmp_path, "start", "elsewhere/nofolder")
    assert done.stderr.splitlines()[0] == "coral: cannot start: there is no folder or task file elsewhere/nofolder"
    assert "`coral init`" in done.stderr.splitlines()[1]
    done = run(tmp_path, "start")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 2)
    assert done.stderr.startswith("coral: cannot start: there is no task.yaml in or above")


def test_the_task_around_here_is_meant(task: Path) -> None:
    done = run(task / "seed", "start", "budget.attempts=1", "--plain")
    assert done.returncode == 0, done.stderr
    assert len(runs_under(task / "runs")) == 1
    assert not (task / "seed" / "runs").exists()
