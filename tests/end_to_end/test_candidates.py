"""What code of a candidate reaches and forges as it is graded: each attack is an attempt of a run, at each level."""

import json
import os
import signal
import socket
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from candidate_attacks import BEHIND, COMMAND, FUNCTION
from files import write_files
from levels import params
from real_runs import Run, wait_until, write_task
from trust import LEVELS, Attack, Outcome, Who, compare, of_the_user

from attempts.record import Attempt
from coral.processes import cgroup
from coral.processes.seal import problem
from workspace.seal import Level

HONEST, FORGED, SECRET, OPEN = 1.2345678, 999.0, "of-the-hidden-data", "it-is-open"
SHOWN = (SECRET, OPEN)
NOTHING = "# nothing\ndef act(known):\n    return ''\n"
FUNCTION_GRADER = """
from coral.grader import run_candidate

def grade(workspace, private, args):
    hidden = (private / "hidden.txt").read_text()
    code, said, space = (workspace / "x.py").read_text(), "", {}
    if code.startswith("# behind "):
        level = code.split()[2]
        said = run_candidate(workspace, "x.py:act", args, seconds=60, returns=str, seal=[level]).value
    elif code:
        exec(compile(code, "x.py", "exec"), space)
        said = space["act"](args)
    return {"score": 1.2345678, "feedback": said}
"""
COMMAND_GRADER = """
import json, os
hidden = open(os.environ["CORAL_PRIVATE"] + "/hidden.txt").read()
code, said, space = open("x.py").read(), "", {}
if code:
    exec(compile(code, "x.py", "exec"), space)
    said = space["act"](json.loads(os.environ["CORAL_ARGS"]))
with open(os.environ["CORAL_RESULT"], "w") as file:
    json.dump({"score": 1.2345678, "feedback": said}, file)
"""
# Submits them all, as `coral eval` does, in one process: it is interrupted by heartbeats now and then.
AGENT = """
exec "$PYTHON" -I -S - <<'END'
import json, os, shutil, subprocess, time
from pathlib import Path

def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()

agent, root = os.environ["CORAL_AGENT"], Path(os.environ["CORAL_RUN"])
shared, inbox = root / "workspace" / "shared", root / "attempts" / "inbox" / agent
for path in sorted((shared / "candidates").iterdir()):
    if (shared / "done" / path.name).exists():
        continue
    shutil.copy(path, "x.py")
    git("commit", "-qm", path.name, "--", "x.py")
    commit, tree = git("rev-parse", "HEAD", "HEAD^{tree}").split()
    data = {"id": f"{time.time_ns():020d}", "agent": agent, "commit": commit, "tree": tree, "title": path.name}
    data |= {"kind": "real", "wait": 0.0, "submitted_at": "2030-01-01T00:00:00Z"}
    (inbox / ".part").write_text(json.dumps(data))
    (inbox / ".part").rename(inbox / f"{data['id']}.json")
    (shared / "done" / path.name).touch()
time.sleep(600)
END
"""
PLANTED = "raise SystemExit('not the grader's')\n"  # in the names of what a command imports, or Python itself


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """What candidates are told of the machine."""
    files = {"home/key": SECRET, "runs/other/secret": SECRET, "forged.json": '{"score": 999}'}
    write_files(tmp_path, files)
    (tmp_path / "home").chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("A_KEY", SECRET)
    monkeypatch.setenv("PYTHON", sys.executable)
    places = {"task": "task/hidden.txt", "other": "runs/other/secret", "login": "home/key", "mine": "home/mine"}
    paths = {name: str(tmp_path / place) for name, place in places.items()} | {"ld": "/etc/ld.so.conf"}
    paths |= {"loaded": pytest.__file__, "pth": str(next(Path(sysconfig.get_path("purelib")).glob("*.pth")))}
    paths |= {"group": str(cgroup.own_group() or "/nowhere"), "forged": str(tmp_path / "forged.json")}
    with socket.create_server(("127.0.0.1", 0)) as server, of_the_user(SECRET) as (memory, terminal):
        paths |= {"memory": memory, "terminal": terminal}
        known = {"pid": os.getpid(), "port": server.getsockname()[1], "sleep": f"300.{time.time_ns()}"}
        yield {**paths, **known, "open": OPEN, "honest": HONEST, "yek": f"A_KEY={SECRET}"[::-1]}


def code_of(attack: Attack, behind: str = "") -> str:
    head = f"# behind {behind}\n" if behind else ""
    act = f"known['is_behind'] = {bool(behind)}\n{attack.act}"
    return head + "def act(known):\n" + textwrap.indent(act, "    ")


def sleeping(seconds: str) -> list[int]:
    """The daemons that sleep so long."""
    found = []
    for process in psutil.process_iter():
        try:
            found += [process.pid] if process.cmdline()[1:] == [seconds] else []
        except psutil.Error:
            continue
    return found


def is_done(attempt: Attempt, attack: Attack, folder: Path) -> bool:
    """Whether the attack came to something, as its record shows, or a file below the folder."""
    if attack.made:
        return any(folder.glob(attack.made))
    return attempt.score == FORGED or attempt.verdict == "void" or any(word in attempt.feedback for word in SHOWN)


def graded(run: Run, codes: Mapping[str, str]) -> dict[str, Attempt]:
    """Their attempts, by their titles."""
    shared = run.layout.shared
    write_files(shared / "candidates", codes)
    (shared / "done").mkdir()
    write_files(run.layout.state("agent-1"), {"secret": SECRET})
    run.supervise()
    by_title: dict[str, Attempt] = {}

    def is_over() -> bool:
        by_title.update((attempt.title, attempt) for attempt in run.attempts())
        return by_title.keys() >= codes.keys()

    wait_until(is_over, what="the last grade")
    return by_title


DAEMONS = ("leaves a daemon", "leaves a daemon outside its group")
OPTIONS = ("grader.slots=3", "grader.timeout=60", "run.poll_seconds=0.2", "heartbeats=[{name: reflect, every: 10}]")


@pytest.fixture
def begin(start, tmp_path: Path, known: dict[str, object]) -> Callable[..., Run]:
    """A run with one of the two kinds of grader, at a level."""

    def of(level: str, is_function: bool) -> Run:
        grade, command = (FUNCTION_GRADER, "") if is_function else (COMMAND_GRADER, "python3 grade.py")
        names = () if is_function else ("json.py", "sitecustomize.py", "usercustomize.py")
        planted = {f"seed/{name}": PLANTED for name in names}
        folder = write_task(tmp_path / "task", AGENT, grade=grade, command=command)
        write_files(folder, {"hidden.txt": SECRET, "seed/x.py": "", **planted})
        private = "grader.private=[hidden.txt, grade.py]"
        told = f"grader.args={json.dumps(known)}"
        return start(folder, supervise=False, overrides=(*OPTIONS, f"workspace.seal={level}", private, told))

    return of


def judged(run: Run, attempts: Mapping[str, Attempt], attacks: Mapping[str, Attack]) -> dict[str, Outcome]:
    """What came of each attack; what is to be noticed is waited for."""
    folder = run.layout.root.parents[2]
    done = {name: attack for name, attack in attacks.items() if is_done(attempts[name], attack, folder)}
    noticed = {attack.alert for attack in done.values() if attack.alert}

    def alerts() -> str:
        return "\n".join(event["text"] for event in run.events("alert"))

    wait_until(lambda: all(alert in alerts() for alert in noticed), what=f"an alert of each of {noticed}")
    kinds = {name: Outcome.NOTICED if attack.alert else Outcome.OPEN for name, attack in done.items()}
    return {name: kinds.get(name, Outcome.CLOSED) for name in attacks}


def check(run: Run, level: str, attempts: Mapping[str, Attempt]) -> None:
    assert (attempts["does nothing"].score, attempts["does nothing"].channel) == (HONEST, "open")
    assert {attempt.verdict for attempt in attempts.values()} <= {"new best", "own best", "tied", "worse", "failed"}
    assert [name for name, attempt in attempts.items() if attempt.score == FORGED and attempt.channel != "open"] == []
    assert {attempt.score for attempt in attempts.values()} <= {HONEST, FORGED, None}
    assert {attempt.seal for attempt in attempts.values()} == {level}
    alerts = [event["text"] for event in run.events("alert")]
    assert level == Level.NONE or all("attempts failed for one reason" in alert for alert in alerts)


def sandboxes_in(level: str) -> list[str]:
    """The sandboxes that a grader of this level can start for a candidate: bubblewrap does not nest, and others than
    root cannot pass the folders of a grade that has no user of its own."""
    if level == Level.USER:
        return [one for one in (Level.LANDLOCK, Level.USER) if not problem(one)]
    inside = [one for one in LEVELS[Who.BEHIND] if one != Level.USER] if level == Level.NONE else [Level.LANDLOCK]
    return [one for one in inside if not problem(Level(one))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["function", "command"])
@pytest.mark.parametrize("level", params(*Level))
def test_what_a_candidate_reaches_is_what_the_page_says(begin, known, level: str, kind: str) -> None:
    """A grader that is a function also calls what is behind `run_candidate`."""
    attacks = FUNCTION if kind == "function" else COMMAND
    codes = {name: code_of(attack) for name, attack in attacks.items()} | {"does nothing": NOTHING}
    of_behind = sandboxes_in(level) if kind == "function" else []
    codes |= {f"{one}: {name}": code_of(attack, one) for one in of_behind for name, attack in BEHIND.items()}
    run = begin(level, kind == "function")
    daemons = {name: f"{known['sleep']}{which}" for which, name in enumerate(DAEMONS)}
    try:
        attempts = graded(run, codes)
        found = judged(run, attempts, attacks)
        found |= {name: Outcome.OPEN if sleeping(seconds) else Outcome.CLOSED for name, seconds in daemons.items()}
    finally:
        for pid in [pid for seconds in daemons.values() for pid in sleeping(seconds)]:
            os.kill(pid, signal.SIGKILL)
    check(run, level, attempts)
    assert compare(Who.GRADED, level, found, attacks) == {}
    for one in of_behind:
        by_name = {name: attempts[f"{one}: {name}"] for name in BEHIND}
        assert compare(Who.BEHIND, one, judged(run, by_name, BEHIND), BEHIND) == {}
        channels = {attempt.channel for attempt in by_name.values() if attempt.score is not None}
        assert channels == {"open" if one == Level.NONE else "closed"}
