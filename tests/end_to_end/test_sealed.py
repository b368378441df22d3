"""What an agent's program can reach, sealed and not: one script tries, and the same tries are open without a seal."""

import os
import time

import pytest
from files import write_files
from levels import params
from real_runs import wait_until

from workspace.seal import Level

SEALED = params(Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER)
# What everybody on the machine may read, users of their own may read as well.
OPEN = {Level.USER: {"the machine's temporary files"}}

# Each try is a line for the shell that succeeds if it reaches what it should not. $1: the folder of what the tests say.
TRIES = {
    "hidden data": 'cat "$CORAL_RUN/private/grader/grade.py"',
    "the task's folder": 'cat "$TASK/grade.py"',
    "the journal": 'ls "$CORAL_RUN/private/journal"',
    "another run": 'cat "$OTHER_RUN/secret"',
    "another agent's clone": 'cat "$CORAL_RUN/workspace/agents/agent-2/x.txt"',
    "another agent's state": 'ls "$CORAL_RUN/workspace/state/agent-2"',
    "another agent's log": 'ls "$CORAL_RUN/logs/agent-2"',
    "another agent's inbox": 'touch "$CORAL_RUN/attempts/inbox/agent-2/mine"',
    "another agent's requests": 'touch "$CORAL_RUN/requests/agent-2/mine"',
    "the operator's requests": 'touch "$CORAL_RUN/requests/operator/mine"',
    "the published records": 'touch "$CORAL_RUN/attempts/mine"',
    "the heartbeats' state": 'touch "$CORAL_RUN/heartbeats/mine"',
    "the hub's objects": 'touch "$CORAL_RUN/workspace/hub.git/objects/mine"',
    "the hub's settings": 'cat "$CORAL_RUN/workspace/hub.git/config"',
    "an environment": 'tr "\\0" "\\n" <"/proc/$SUPERVISOR/environ" | grep -q ^PATH=',
    "a process": 'kill -0 "$SUPERVISOR"',
    "the machine's temporary files": 'cat "$OUTSIDE"',
    "the user's home": 'touch "$USERS_HOME/mine"',
    "the history of the notes": 'touch "$CORAL_RUN/workspace/history.git/mine"',
    "rights by a program of another user": "grep -q '^NoNewPrivs:.0' /proc/self/status",
    "what Python loads": ': >>"$LOADED"',
}
SCRIPT = """
[ "$CORAL_AGENT" = agent-1 ] || exec sleep 600
while read -r name; do read -r line
  if sh -c "$line" >/dev/null 2>&1; then echo "$name: open"; else echo "$name: closed"; fi
done <"$CORAL_RUN/workspace/shared/tries" >found.txt
mv found.txt "$CORAL_RUN/workspace/shared/found"
echo 1 > x.txt; coral eval -m one
sleep 600
"""
# A daemon without marks, session and parent, which shows that it is alive.
DAEMON = """
sign="$CORAL_RUN/workspace/shared/daemon-$(date +%s%N)"
(setsid env -i PATH="$PATH" sh -c "(while :; do touch '$sign'; sleep 0.1; done) &" &)
sleep 0.5
echo 1 > x.txt; coral eval -m one
sleep 600
"""


@pytest.fixture
def tried(start, tmp_path, monkeypatch):
    """A run whose first agent tries at a level, and what it found; the run goes on."""

    def begin(level: str):
        outside = tmp_path / "outside"
        outside.write_text("of another program")
        (tmp_path / "home").mkdir()
        write_files(tmp_path / "runs/other/run-1", {"secret": "a score"})
        known = {
            "HOME": "home",
            "USERS_HOME": "home",
            "OUTSIDE": "outside",
            "OTHER_RUN": "runs/other/run-1",
            "TASK": "task0",
        }
        for name, place in known.items():
            monkeypatch.setenv(name, str(tmp_path / place))
        monkeypatch.setenv("SUPERVISOR", str(os.getpid()))
        monkeypatch.setenv("LOADED", pytest.__file__)
        run = start(SCRIPT, supervise=False, overrides=("agents.count=2", f"workspace.seal={level}"))
        lines = [line for pair in TRIES.items() for line in pair]
        (run.layout.shared / "tries").write_text("\n".join(lines) + "\n")
        run.supervise()
        found = wait_until(lambda: run.attempts() and (run.layout.shared / "found").read_text(), what="the tries")
        return run, dict(line.split(": ") for line in found.splitlines())

    return begin


@pytest.mark.parametrize("level", SEALED)
def test_a_sealed_agent_reaches_nothing_but_its_own(tried, level):
    run, found = tried(level)
    assert found == dict.fromkeys(TRIES, "closed") | dict.fromkeys(OPEN.get(level, ()), "open")
    assert run.status()["seal"] == level
    assert {attempt.seal for attempt in run.attempts()} == {level}


def test_without_a_seal_all_of_it_is_open(tried):
    run, found = tried("none")
    assert found == dict.fromkeys(TRIES, "open")
    assert run.status()["seal"] == "none"
    assert {attempt.seal for attempt in run.attempts()} == {"none"}


@pytest.mark.parametrize("level", SEALED)
def test_a_sealed_daemon_without_any_mark_ends_with_its_launch(start, level):
    run = start(DAEMON, overrides=(f"workspace.seal={level}",))
    (number,) = wait_until(lambda: set(run.layout.shared.glob("daemon-*")), what="the daemon")
    beat = number.stat().st_mtime_ns
    wait_until(lambda: number.stat().st_mtime_ns > beat, what="its first sign of life")
    wait_until(lambda: run.events("exited"), what="the end of its launch")
    beat = number.stat().st_mtime_ns
    time.sleep(1.0)
    assert number.stat().st_mtime_ns == beat


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
