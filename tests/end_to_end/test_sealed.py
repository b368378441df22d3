"""What an agent's program can reach, sealed and not: one script tries, and the same tries are open without a seal."""

import contextlib
import ctypes
import json
import os
import platform
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from agent_attacks import ATTACKS, LATE, PRELUDE
from files import write_files
from levels import params
from real_runs import Run, wait_until
from trust import Attack, Outcome, Who, compare, of_the_user

from coral.processes import cgroup
from workspace.seal import Level

SCRIPT = """
[ "$CORAL_AGENT" = agent-1 ] || exec sleep 600
S=$CORAL_RUN/workspace/shared
if [ -e tried ]; then
  grep "def grade" .git/info/exclude && cp .git/info/exclude "$S/shown"
  touch "$S/again"; exec sleep 600
fi
echo 1 > x.txt; coral eval -m "the first"
touch tried
for file in "$S"/tries/*; do
  if sh "$file" >/dev/null 2>&1; then echo "${file##*/}: open"; else echo "${file##*/}: closed"; fi
done > found.txt
echo 2 > y.txt; coral eval --no-wait -m "the second"
mv found.txt "$S/found"
until [ -e "$S/go-on" ]; do sleep 0.05; done
for file in "$S"/late/*; do sh "$file"; done
"""
SEALED = params(Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER)
SHM = 0x434F_0000 | os.getpid() & 0xFFFF  # other tests have their own at the same time
UNLINK, USER_KEYRING = 9, -4
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(
    platform.machine(), (-1, -1)
)  # numbers of system calls


@contextlib.contextmanager
def services(path: str, name: str) -> Iterator[int]:
    """A socket with a path, one with a name, and one with a port, which is given."""
    unix = socket.AF_UNIX
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(unix) as one, socket.socket(unix) as two:
        for server, address in ((one, path), (two, name.replace("@", "\0"))):
            server.bind(address)
            server.listen()
        Path(path).chmod(0o777)  # everybody may use it
        yield port.getsockname()[1]


@contextlib.contextmanager
def of_the_kernel(name: str) -> Iterator[None]:
    """Shared memory and a key that every process of the user can find."""
    libc = ctypes.CDLL(None)
    memory = libc.shmget(SHM, 4096, 0o1600)
    key = libc.syscall(ADD_KEY, b"user", name.encode(), b"x", 1, USER_KEYRING)
    try:
        yield
    finally:
        libc.shmctl(memory, 0, None)
        libc.syscall(KEYCTL, UNLINK, key, USER_KEYRING)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an agent finds on the machine beside the run: the user's home, other runs, services, keys of the kernel."""
    files = {"home/key": "secret", "home/.bashrc": "", "runs/other/run-1/secret": "a score"}
    write_files(tmp_path, {**files, "outside": "of another program", "shut": "of another program"})
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "shut").chmod(0o600)
    name = f"@coral-test-{os.getpid()}"
    places = {
        "HOME": "home",
        "USERS_HOME": "home",
        "OUTSIDE": "outside",
        "SHUT": "shut",
        "OTHER_RUN": "runs/other/run-1",
        "TASK": "task0",
        "SOCKET": "socket",
    }
    known = {name: str(tmp_path / place) for name, place in places.items()}
    site = Path(sysconfig.get_path("purelib"))
    known |= {"PYTHON": sys.executable, "LOADED": pytest.__file__, "PTH": str(next(site.glob("*.pth")))}
    known |= {"SHM": str(SHM), "KEY": name, "GROUP": str(cgroup.own_group() or "/nowhere"), "ABSTRACT": name}
    named = of_the_user("secret")
    with services(known["SOCKET"], name) as port, of_the_kernel(name), named as (known["MEMORY"], known["TERMINAL"]):
        for variable, value in (known | {"SUPERVISOR": str(os.getpid()), "PORT": str(port)}).items():
            monkeypatch.setenv(variable, value)
        yield


def write_tries(folder: Path, attacks: Mapping[str, Attack]) -> None:
    write_files(folder, {f"{at:02} {name}": PRELUDE + attack.act for at, (name, attack) in enumerate(attacks.items())})


def told(run: Run) -> str:
    """The alerts of a run, and why attempts have failed."""
    return "\n".join([event["text"] for event in run.events("alert")] + [attempt.reason for attempt in run.attempts()])


def beating(daemons: Mapping[str, Path]) -> set[str]:
    """The daemons that still write a file."""

    def last() -> dict[str, int]:
        return {name: path.stat().st_mtime_ns for name, path in daemons.items() if path.exists()}

    before = last()
    time.sleep(1.0)
    return {name for name, at in last().items() if at != before.get(name)}


def judged(run: Run, reached: Mapping[str, bool]) -> dict[str, Outcome]:
    """What came of each attack: from outside, where it can be seen there."""
    found = {}
    alerts = told(run)
    for name, attack in {**ATTACKS, **LATE}.items():
        done = any(run.layout.root.glob(attack.made)) if attack.made else reached[name]
        is_told = bool(attack.alert) and attack.alert in alerts
        found[name] = (Outcome.NOTICED if is_told else Outcome.OPEN) if done else Outcome.CLOSED
    return found


@pytest.mark.slow
@pytest.mark.parametrize("level", params(*Level))
def test_what_an_agent_reaches_is_what_the_page_says(start, machine, level):
    """It tries all of it in one launch, and what is seen at the next one after that."""
    reflect = "heartbeats=[{name: reflect, every: 10}]"
    run = start(
        SCRIPT,
        supervise=False,
        # A launch that finds a link in the place of its logs is tried again soon.
        overrides=("agents.count=2", f"workspace.seal={level}", "run.poll_seconds=0.2", "run.backoff=0.1", reflect),
    )
    shared = run.layout.shared
    daemons = {"leaves a daemon": shared / "daemon", "leaves a daemon outside its group": shared / "stray"}
    write_tries(shared / "tries", ATTACKS)
    write_tries(shared / "late", LATE)
    write_files(run.layout.attempts / "inbox" / "agent-2", {".waiting": "x"})
    run.supervise()
    lines = wait_until(lambda: (shared / "found").exists() and (shared / "found").read_text(), what="the tries")
    reached = {line[3:].partition(": ")[0]: line.endswith("open") for line in lines.splitlines()}
    noticed = [attack.alert for name, attack in ATTACKS.items() if reached[name] and attack.alert]
    try:
        wait_until(lambda: all(alert in told(run) for alert in noticed), what="what is told of it")
        (shared / "go-on").touch()
        wait_until((shared / "again").exists, what="the next launch")
        if (noticed_late := [attack.alert for attack in LATE.values() if attack.alert]) and level == Level.NONE:
            wait_until(lambda: all(alert in told(run) for alert in noticed_late), what="what is told of the links")
            # It may have been told first that the folder was gone.
            laid = [attack.made for attack in LATE.values() if attack.alert]
            wait_until(lambda: all(any(run.layout.root.glob(made)) for made in laid), what="the links that were laid")
        found = judged(run, reached)
        living = beating(daemons)
        found |= {name: Outcome.OPEN if name in living else Outcome.CLOSED for name in daemons}
    finally:
        for process in psutil.process_iter(["cmdline"]):  # what a sandbox wrote is a number of its own
            if any(str(path) in word for word in process.info["cmdline"] or () for path in daemons.values()):
                process.kill()
    assert compare(Who.AGENT, level, found, {**ATTACKS, **LATE}) == {}
    assert run.status()["seal"] == level
    assert {attempt.kind for attempt in run.attempts()} == {"real"}


@pytest.mark.parametrize("level", SEALED)
def test_the_words_of_a_job_show_it_nothing(start, tmp_path, level):
    words = '"$CORAL_RUN/../$(basename $CORAL_RUN)/private" "/proc/..$CORAL_RUN/private" "$1/grade.py"'
    script = f"set -- {tmp_path}/task0\n"
    script += (
        """export LD_PRELOAD=/planted PYTHONPATH=/planted
coral job start -m look -- /bin/sh -c 'for f; do ls "$f" | cat; cat "$f"; done; env; echo over' x """
        + words
        + "\nsleep 600\n"
    )
    run = start(script, overrides=(f"workspace.seal={level}",))
    output = run.layout.job_output("agent-1", 1)
    text = wait_until(lambda: output.exists() and "over" in (text := output.read_text()) and text, what="the job")
    assert "grader" not in text
    assert "def grade" not in text
    assert "planted" not in text


@pytest.mark.parametrize("level", SEALED)
def test_the_supervisor_reads_nothing_through_a_link_for_an_agent(start, tmp_path, level):
    script = f"""
if [ -e tried ]; then cp .git/info/exclude .shared/found; echo 1 > x.txt; coral eval -m one; sleep 600; fi
touch tried; rm -f .git/info/exclude; ln -s {tmp_path}/task0/grade.py .git/info/exclude; exit 1
"""
    run = start(script, overrides=(f"workspace.seal={level}",))
    run.wait_for_attempts(1)
    assert "def grade" not in (run.layout.shared / "found").read_text()


ANSWERS = """
import os

def grade(workspace, artifacts, kind):
    (artifacts / "plot.txt").write_text(f"of {(workspace / 'x.txt').read_text()}")
    found = []
    for path in (os.environ["TASK"] + "/grade.py", f"/proc/{os.environ['SUPERVISOR']}/environ"):
        try:
            found.append(open(path).read()[:1])
        except OSError:
            found.append("")
    return {"score": float((workspace / "x.txt").read_text()), "feedback": f"reached {any(found)}"}
"""


@pytest.mark.parametrize("level", SEALED)
def test_the_graders_of_a_run_are_sealed_and_leave_files_for_agents(start, tmp_path, monkeypatch, level):
    monkeypatch.setenv("TASK", str(tmp_path / "task0"))
    monkeypatch.setenv("SUPERVISOR", str(os.getpid()))
    seen = "grader.pass_env=[TASK, SUPERVISOR]"
    script = "echo 3 > x.txt; coral eval -m three; coral show 1 > .shared/shown; sleep 600\n"
    run = start(script, grade=ANSWERS, overrides=(f"workspace.seal={level}", seen))
    (attempt,) = run.wait_for_attempts(1)
    assert (attempt.score, attempt.feedback, attempt.channel) == (3.0, "reached False", "closed")
    plot = run.layout.grade(1) / "plot.txt"
    wait_until(lambda: plot.exists() and plot.read_text() == "of 3\n", what="the grader's file")


LESS = """
def grade(workspace):
    return float((workspace / "x.txt").read_text())
"""


@pytest.mark.parametrize("level", SEALED)
def test_an_agent_is_told_the_order_of_scores_the_best_and_the_lead(start, level):
    """Neither status.json nor the task is in its sandbox."""
    script = """
[ "$CORAL_AGENT" = agent-1 ] || exec sleep 600
for x in 5 3 4; do echo $x > x.txt; coral eval -m "try $x"; done
(coral log --json; coral status) > .shared/seen 2>&1
coral checkout lead && cp x.txt .shared/lead
exec sleep 600
"""
    overrides = (f"workspace.seal={level}", "grader.direction=minimize", "heartbeats=[{name: reflect, every: 10}]")
    run = start(script, grade=LESS, overrides=overrides)
    lead = run.layout.shared / "lead"
    wait_until(lambda: lead.exists() and lead.read_text() == "3\n", 120, "the agent at the lead")
    text = (run.layout.shared / "seen").read_text()
    assert [row["title"] for row in json.loads(text[: text.rindex("]") + 1])] == ["try 3", "try 4", "try 5"], text
    assert ("lead 3 #2 by agent-1" in text, "3 attempts" in text) == (True, True), text
