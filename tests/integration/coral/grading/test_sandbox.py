"""What a grader reaches at each level that this machine has: one grader tries, and says what it could."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from files import write_files
from levels import params
from real_runs import wait_until

from coral.config.load import load
from coral.fleet.events import Outcome
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.grading.sandbox import level_of_graders
from coral.processes import seal
from workspace.seal import Level

LEVELS = params(*Level)
SEALED = LEVELS[:-1]

GRADE = """
import json, os, socket, subprocess, tempfile
from pathlib import Path
from coral.grader import run_candidate

TRIES = {
    "the user's files": lambda known: open(Path.home() / "key").read(),
    "the task's folder": lambda known: open(known["task"] + "/other.txt").read(),
    "other runs": lambda known: open(known["runs"] + "/other/secret").read(),
    "temporary files of others": lambda known: open(known["outside"]).read(),
    "an environment": lambda known: open(f"/proc/{known['pid']}/environ").read(),
    "a process": lambda known: os.kill(known["pid"], 0),
    "the network by TCP": lambda known: socket.create_connection(("127.0.0.1", known["port"]), 5),
    "the network by UDP": lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.1", 9)),
}
NEEDS = {
    "its data": lambda known: open(known["private"] / "data.txt").read(),
    "the checkout": lambda known: open(known["workspace"] / "made.txt", "w"),
    "a temporary file": lambda known: tempfile.NamedTemporaryFile().write(b"x"),
    "a program": lambda known: subprocess.run(["git", "--version"], check=True, capture_output=True),
    "a lock": lambda known: __import__("multiprocessing").Lock(),
    "a library": lambda known: __import__("pydantic"),
}
ELSEWHERE = lambda known: open(known["outside"] + ".new", "w")

def works(attempt, known):
    try:
        attempt(known)
    except Exception:
        return False
    return True

def grade(workspace, private, args):
    known = {**args, "workspace": workspace, "private": private}
    found = {name: works(attempt, known) for name, attempt in (TRIES | NEEDS).items()}
    works(ELSEWHERE, known)
    sealed = run_candidate(workspace, "solution.py:solve", seconds=60).sealed
    return {"score": 1, "feedback": json.dumps({"found": found, "candidate": sealed})}
"""
DAEMON = """
import os, subprocess, time

def grade(workspace, args):
    line = f"while :; do touch {args['sign']}; sleep 0.05; done"
    subprocess.Popen(["setsid", "env", "-i", "sh", "-c", f"({line}) & exec sleep 600"])
    while not os.path.exists(args["sign"]):
        time.sleep(0.02)
    return 1
"""


def task(tmp_path: Path, grade: str, more: str = "", **args: object) -> Path:
    grader = f"{{entry: 'grade.py:grade', timeout: 120, private: [data.txt], args: {json.dumps(args)}{more}}}"
    files = {
        "grade.py": grade,
        "data.txt": "1",
        "other.txt": "of the task",
        "seed/solution.py": "def solve(): return 1",
    }
    text = f"task: {{name: t, description: d, seed: seed}}\ngrader: {grader}\nagents: {{runtime: scripted}}\n"
    folder = write_files(tmp_path / "task", {"task.yaml": text, **files})
    folder.chmod(0o700)
    return folder


def command_task(folder: Path, command: str, seed: dict[str, str]) -> Path:
    sections = ("task: {name: t, description: d}", f"grader: {{command: {json.dumps(command)}}}")
    text = "\n".join((*sections, "agents: {runtime: scripted}"))
    write_files(folder, {"task.yaml": text, **{f"seed/{name}": content for name, content in seed.items()}})
    folder.chmod(0o700)
    return folder


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    (tmp_path / "outside").write_text("of another program")
    write_files(tmp_path, {"home/key": "secret", "runs/other/secret": "a score"})
    (tmp_path / "home" / "key").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    places = {name: str(tmp_path / name) for name in ("task", "runs", "outside")}
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {**places, "pid": os.getpid(), "port": server.getsockname()[1]}


def graded(folder: Path, level: Level, place: Path) -> GradeResult:
    return grade_once(load(folder, [f"workspace.seal={level}"]), place)


@pytest.mark.parametrize("level", LEVELS)
def test_a_sealed_grader_has_what_it_needs_and_nothing_else(
    tmp_path: Path, known: dict[str, object], level: Level
) -> None:
    result = graded(task(tmp_path, GRADE, **known), level, tmp_path / "grade")
    assert result.outcome is Outcome.SCORED, result
    said = json.loads(result.feedback)
    needs = {"its data", "the checkout", "a temporary file", "a program", "a lock", "a library"}
    more = {Level.NONE: set(said["found"]), Level.USER: {"temporary files of others"}}  # which all may read
    assert {name for name, works in said["found"].items() if works} == needs | more.get(level, set())
    assert (tmp_path / "outside.new").exists() == (level is Level.NONE)
    assert said["candidate"] == ("landlock" if level is not Level.NONE else "bubblewrap")
    assert result.channel == "open"  # by the git that it starts


@pytest.mark.parametrize("level", SEALED)
def test_what_the_task_names_a_sealed_grader_has(tmp_path: Path, known: dict[str, object], level: Level) -> None:
    more = f", network: true, readable: [~/key], writable: [{tmp_path}/written]"
    (tmp_path / "written").mkdir()
    (tmp_path / "written").chmod(0o777)  # as a user of its own needs it, and the next as well
    (tmp_path / "home" / "key").chmod(0o644)
    known = {**known, "outside": str(tmp_path / "written" / "outside")}
    (tmp_path / "written" / "outside").touch()
    said = json.loads(graded(task(tmp_path, GRADE, more, **known), level, tmp_path / "grade").feedback)
    named = {"the user's files", "temporary files of others", "the network by TCP", "the network by UDP"}
    assert (tmp_path / "written" / "outside.new").exists()
    assert {name for name in said["found"] if said["found"][name]} >= named
    assert not any(said["found"][name] for name in ("the task's folder", "other runs", "an environment", "a process"))


@pytest.mark.parametrize("level", SEALED)
def test_a_command_begins_in_the_sandbox_too(tmp_path: Path, level: Level) -> None:
    folder = command_task(tmp_path / "task", 'echo 3 >"$CORAL_RESULT"', {"x.txt": "0"})
    assert graded(folder, level, tmp_path / "grade").score == 3


@pytest.mark.parametrize("level", LEVELS)
def test_a_module_of_the_candidate_is_what_a_command_imports_unless_python_is_told(
    tmp_path: Path, level: Level
) -> None:
    writes = """-c "import json, os; json.dump({'score': 1}, open(os.environ['CORAL_RESULT'], 'w'))\""""
    forges = "def dump(value, file): file.write('{\"score\": 999}')\n"
    found = {}
    for option in ("", "-P "):
        folder = command_task(tmp_path / f"task{option}", f"python3 {option}{writes}", {"json.py": forges})
        result = graded(folder, level, tmp_path / f"grade{option}")
        found[option] = (result.score, result.channel)
    assert found == {"": (999.0, "open"), "-P ": (1.0, "open")}


@pytest.mark.parametrize("level", SEALED)
def test_no_daemon_outlives_a_sealed_grade(tmp_path: Path, level: Level) -> None:
    place = tmp_path / "grade"
    sign = place / "sign"
    assert graded(task(tmp_path, DAEMON, sign=str(sign)), level, place).score == 1
    assert wait_until(sign.exists, what="the daemon's sign")
    last = sign.stat().st_mtime_ns
    time.sleep(0.5)
    assert sign.stat().st_mtime_ns == last


@pytest.mark.parametrize("level", SEALED)
@pytest.mark.parametrize(
    ("ends", "seconds", "words"),
    [("os.kill(os.getpid(), 9)", 120, "SIGKILL"), ("os._exit(3)", 120, "3"), ("time.sleep(600)", 5, "timeout")],
)
def test_how_a_sealed_grader_ends_is_told_as_without(
    tmp_path: Path, level: Level, ends: str, seconds: float, words: str
) -> None:
    folder = task(tmp_path, f"import os, time\ndef grade(workspace):\n    {ends}\n")
    config = load(folder, [f"workspace.seal={level}"])
    result = grade_once(config, tmp_path / "grade", seconds)
    without = grade_once(load(folder, ["workspace.seal=none"]), tmp_path / "unsealed", seconds)
    assert (result.outcome, result.reason) == (without.outcome, without.reason)
    assert words in result.reason


THIRD = """
import json, os, subprocess
from coral.grader import run_candidate

def grade(workspace, private, args):
    answer = run_candidate(workspace, "solution.py:spy", str(private), os.getpid(), args, seconds=60, seal=["user"])
    return {"score": 1, "feedback": json.dumps({"said": answer.value, "me": os.getuid()})}
"""
SPY = """
import os, subprocess, time

def spy(private, grader, args):
    capabilities = {line.split()[1].strip("0") for line in open("/proc/self/status") if line.startswith("Cap")}
    found = {"me": os.getuid(), "capabilities": list(capabilities)}
    starter = os.getppid()
    tries = {
        "hidden data": lambda: open(private + "/data.txt").read(),
        "memory of its grader": lambda: open(f"/proc/{grader}/mem", "rb"),
        "memory of what started it": lambda: open(f"/proc/{starter}/mem", "rb"),
        "environment of what started it": lambda: open(f"/proc/{starter}/environ", "rb").read(),
        "descriptors of what started it": lambda: os.listdir(f"/proc/{starter}/fd"),
        "its own tree": lambda: open("solution.py", "a"),
        "the folder of the grade": lambda: open("../planted", "w"),
    }
    found["open"] = []
    for name, attempt in tries.items():
        try:
            attempt()
            found["open"].append(name)
        except OSError:
            pass
    line = f"while :; do touch {os.environ['TMPDIR']}/alive {args['sign']}; sleep 0.05; done"
    subprocess.Popen(["setsid", "env", "-i", "sh", "-c", f"({line}) & exec sleep 600"])
    while not os.path.exists(args["sign"]):
        time.sleep(0.02)
    if args["kills"]:
        os.kill(starter, 9)
    return found
"""


@pytest.mark.parametrize("level", params(Level.USER))
@pytest.mark.parametrize("kills", [False, True])
def test_a_candidate_of_a_user_is_a_third_one(tmp_path: Path, level: Level, kills: bool) -> None:
    """Whether or not it ends what has started it: all that it leaves is gone."""
    signs = tmp_path / "signs"
    signs.mkdir()
    signs.chmod(0o777)
    folder = task(tmp_path, THIRD, sign=str(signs / "sign"), kills=kills)
    (folder / "seed" / "solution.py").write_text(SPY)
    result = graded(folder, level, tmp_path / "grade")
    assert result.channel == "closed"
    last = (signs / "sign").stat().st_mtime_ns
    time.sleep(0.3)
    assert (signs / "sign").stat().st_mtime_ns == last
    if kills:
        assert (result.outcome, result.reason) == (Outcome.FAILED, "solution.py:spy ended with signal SIGKILL")
        return
    said = json.loads(result.feedback)
    assert said["said"] == {"me": said["me"] + 1, "capabilities": [""], "open": []}


def test_without_landlock_no_grader_is_sealed_for_its_candidates_could_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    have = {Level.BUBBLEWRAP: "", Level.LANDLOCK: "the kernel has none", Level.NONE: ""}
    monkeypatch.setattr(seal, "problem", lambda level, _=None: have[level])
    assert seal.level_for("best") is Level.BUBBLEWRAP
    assert level_of_graders("best") is Level.NONE
