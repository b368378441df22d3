"""An interpreter that was started before its grade was known: the grader cannot tell, and none is ever left."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from files import no_descriptor_left
from grade_places import place_in
from real_runs import tries, wait_until

from attempts.store import Store
from coral.config.model import GraderSection
from coral.grading.command import GradeCommand, prepare_folder
from coral.grading.kinds import kind_of, prestart
from coral.grading.once import run_grader
from coral.processes import cgroup, process
from coral.processes.cgroup import Groups
from coral.processes.process_tree import TAG, identify, is_alive

# What a program can see of how it was started.
GRADE = """
import json, os, resource, signal, sys

def grade(workspace):
    print("said")
    print("complained", file=sys.stderr)
    limits = [each for each in dir(resource) if each.startswith("RLIMIT_") and each != "RLIMIT_MSGQUEUE"]
    return {"score": 1, "feedback": json.dumps({
        "env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "path": sys.path, "flags": list(sys.flags),
        "modules": sorted(sys.modules), "read": sys.stdin.read(), "stdin": os.readlink("/proc/self/fd/0"),
        "files": sorted(map(int, os.listdir("/proc/self/fd"))), "leads": os.getpid() == os.getsid(0) == os.getpgid(0),
        "umask": os.umask(0o22), "signals": [str(signal.getsignal(each)) for each in signal.valid_signals()],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "limits": [resource.getrlimit(getattr(resource, each)) for each in limits],
    })}
"""
SECTION = GraderSection(entry="grade.py:grade")
LAUNCH = f"run-{os.getpid()}/#17/1"  # tests at the same time have others: whatever has it is ended


def command_in(folder: Path, code: str = GRADE) -> GradeCommand:
    private, workspace = folder / "private", folder / "checkout"
    for made in (private, workspace, folder / "g"):
        made.mkdir(parents=True, exist_ok=True)
    for said in ("stdout", "stderr"):
        (folder / "g" / said).unlink(missing_ok=True)
    (private / "grade.py").write_text(code)
    place = place_in(folder)
    command = kind_of(SECTION).command(SECTION, place)
    prepare_folder(command)
    return command


def seen(folder: Path, *, is_prestarted: bool) -> dict[str, Any]:
    interpreter = prestart(SECTION, LAUNCH) if is_prestarted else None
    result = run_grader(command_in(folder), 60, interpreter)
    assert (result.outcome, result.output) == ("scored", "said\ncomplained\n")
    found = json.loads(result.feedback)
    for own in (TAG, "CORAL_DEADLINE", "CORAL_SEED"):
        assert found["env"].pop(own)
    return dict(found)


def test_a_grader_cannot_tell_when_its_interpreter_was_started(tmp_path) -> None:
    usual = seen(tmp_path, is_prestarted=False)
    assert seen(tmp_path, is_prestarted=True) == usual
    assert usual["cwd"] == str(tmp_path / "g" / "tmp") == usual["env"]["PWD"]


def test_it_ends_with_the_supervisor_and_when_it_is_not_used(tmp_path) -> None:
    unused = prestart(SECTION, LAUNCH)
    assert unused.is_ready()
    unused.close()
    assert not unused.is_ready()
    unused.close()
    held = prestart(SECTION, LAUNCH).hold(command_in(tmp_path).program(LAUNCH))
    assert identify(held.child.pid) == held.identity
    held.abandon()
    assert held.child.returncode == process.NEVER_RELEASED
    assert not (tmp_path / "g" / "result.json").exists()


def test_what_it_starts_belongs_to_the_launch(tmp_path) -> None:
    script = (
        "import subprocess, time\ndef grade(workspace):\n    subprocess.Popen(['sleep', '300'], start_new_session=True)"
    )
    held = prestart(SECTION, LAUNCH).hold(command_in(tmp_path, f"{script}\n    time.sleep(300)\n").program(LAUNCH))
    held.release()
    (sleeper,) = wait_until(lambda: psutil.Process(held.child.pid).children(), what="what it starts")
    process.kill(held.identity, LAUNCH)
    held.child.wait()
    assert not is_alive(held.identity)
    wait_until(lambda: not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE, what="its end")


def test_one_that_died_or_has_no_place_to_write_is_told_at_once(tmp_path) -> None:
    interpreter, program = prestart(SECTION, LAUNCH), command_in(tmp_path).program(LAUNCH)
    pid = interpreter._child.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not interpreter.is_ready(), what="its end")
    with pytest.raises(OSError, match="before it could be identified"):
        interpreter.hold(program)
    other = prestart(SECTION, LAUNCH)
    (tmp_path / "g").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        other.hold(program)
    other.close()


def test_a_run_grades_with_interpreters_that_were_there_before(start) -> None:
    code = "def grade(workspace):\n    return {'score': 1, 'feedback': open('/proc/self/cmdline').read()}\n"
    run = start(tries(1, 2), grade=code)
    wait_until(lambda: len(Store(run.layout.attempts).numbers()) > 2, what="attempts")
    children = psutil.Process(run.supervisor.pid).children()
    run.stop()
    assert not any(child.is_running() for child in children)
    told = [Store(run.layout.attempts).read(number).feedback for number in (0, 1, 2)]
    assert ["wait(" in text for text in told] == [True, True, True]


def test_a_command_cannot_tell_either(tmp_path) -> None:
    """Quotes, line ends and what a shell would obey, in its arguments, its variables and its folder."""
    words = ["a b", "'$(exit 3)`\n\"", ""]
    section = GraderSection(command=[sys.executable, "show.py", *words], args={"k": "it's\n}\n$X"})
    script = """
import json, os, resource, signal, sys
from pathlib import Path

limits = [each for each in dir(resource) if each.startswith("RLIMIT_") and each != "RLIMIT_MSGQUEUE"]
seen = {
    "env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "stdin": os.readlink("/proc/self/fd/0"),
    "files": sorted(map(int, os.listdir("/proc/self/fd"))), "leads": os.getpid() == os.getsid(0) == os.getpgid(0),
    "umask": os.umask(0o22), "signals": [str(signal.getsignal(each)) for each in signal.valid_signals()],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": [resource.getrlimit(getattr(resource, each)) for each in limits],
}
print("said")
print("complained", file=sys.stderr)
Path(os.environ["CORAL_RESULT"]).write_text(json.dumps({"score": 1, "feedback": json.dumps(seen)}))
"""
    folder = tmp_path / "it's\na run"
    found = []
    for is_prestarted in (False, True):
        made = command_in(folder)
        (folder / "private" / "show.py").write_text(script)
        place = place_in(folder)
        command = kind_of(section).command(section, place)
        prepare_folder(command)
        assert made.folder == command.folder
        result = run_grader(command, 60, prestart(section, LAUNCH) if is_prestarted else None)
        assert (result.outcome, result.output) == ("scored", "said\ncomplained\n")
        seen = json.loads(result.feedback)
        for own in (TAG, "CORAL_DEADLINE", "CORAL_SEED"):
            assert seen["env"].pop(own)
        found.append(seen)
    assert found[0] == found[1]
    assert found[0]["argv"][1:] == words


@pytest.mark.parametrize("grader", [SECTION, GraderSection(command="true")])
def test_one_that_waits_is_in_its_control_group_and_reads_no_half_an_order(tmp_path, grader: GraderSection) -> None:
    groups = Groups(f"prestarted-{os.getpid()}")
    group = groups.make("g")
    if not group:
        pytest.skip("no control group may be made here")
    interpreter = prestart(grader, LAUNCH, group)
    pid = interpreter._child.pid
    wait_until(lambda: pid in cgroup.members(group), what="its entry")
    os.write(interpreter._pipe, b'{\n"touch" ' + str(tmp_path / "made").encode())
    interpreter.close()
    assert not (tmp_path / "made").exists()
    assert not Path(group).exists()


def test_no_descriptor_is_left_whatever_becomes_of_it(tmp_path) -> None:
    with no_descriptor_left():
        prestart(SECTION, LAUNCH).close()
        prestart(SECTION, LAUNCH).hold(command_in(tmp_path).program(LAUNCH)).abandon()
        assert run_grader(command_in(tmp_path), 60, prestart(SECTION, LAUNCH)).score == 1
        nowhere = command_in(tmp_path).program(LAUNCH)
        (tmp_path / "g").rename(tmp_path / "away")
        with pytest.raises(FileNotFoundError):
            prestart(SECTION, LAUNCH).hold(nowhere)
