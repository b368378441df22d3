"""Jobs in real runs: started by an agent, alive through interrupts and resumes, told of at the end, gone at a stop."""

import json
import os
import shlex
import signal
import sys
from typing import Any

import pytest
from real_runs import Run, coral_process, is_alive, wait_until

from coral.cli import main
from coral.fleet.agent_state import Phase
from coral.fleet.reasons import JobOutcome, ReasonKind
from coral.supervisor.lock import holder

QUICK = ("run.max_defer=0.05",)
# Works until it is told to end.
WORK = "echo begun; echo $$ >../pid; while [ ! -e ../go ]; do sleep 0.05; done; echo the end; exit 3"
FIRST = '[ "$(ls ../../../logs/agent-1/*.prompt.md | wc -l)" = 1 ]'
AGENT = f"""
if {FIRST}; then
  (mkdir -p .sub; cd .sub; coral job start -m 'wide net' -- sh -c 'cd ..; {WORK}') >../said 2>&1
  echo 1 >x.txt; coral eval -m one
fi
echo at work; exec sleep 300
"""


def record(run: Run, number: int = 1) -> dict[str, Any]:
    path = run.layout.job("agent-1", number)
    return dict(json.loads(path.read_text())) if path.exists() else {}


def prompt(run: Run, launch: int) -> str:
    path = run.layout.prompt("agent-1", launch)
    return path.read_text() if path.exists() else ""


def wait_for_launch(run: Run, launch: int) -> None:
    """Until the agent is at work in this launch, or in a later one."""

    def is_there() -> bool:
        agent = run.fleet().agents.get("agent-1")
        return agent is not None and agent.launch >= launch

    wait_until(is_there, what=f"launch {launch}")


def wait_for_word(run: Run) -> str:
    """The first prompt that tells of a job that has ended."""

    def told() -> str:
        prompts = (path.read_text() for path in sorted(run.layout.logs("agent-1").glob("*.prompt.md")))
        return next((text for text in prompts if "## Heartbeat: job ended (id h" in text), "")

    return str(wait_until(told, what="the word of its end"))


def pid_of(run: Run) -> int:
    path = run.layout.agents / "pid"
    wait_until(lambda: path.exists() and path.read_text().strip(), what="the job")
    return int(path.read_text())


def coral(capsys: pytest.CaptureFixture[str], run: Run, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["job", words[0], "--run", str(run.layout.root), *words[1:]])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_job_survives_a_heartbeat_and_its_agent_is_told_of_its_end(start, capsys):
    run = start(AGENT, overrides=QUICK)
    pid = pid_of(run)
    wait_until(lambda: "Heartbeat: reflect" in prompt(run, 2), what="the launch after the heartbeat")
    assert "Your jobs that run: job 1 (wide net), for " in prompt(run, 2)
    assert is_alive(pid)
    said = "job 1 starts: `coral job log 1` shows its output, and a message says when it ends\n"
    assert (run.layout.agents / "said").read_text() == said
    assert record(run)["command"][0] == "sh"
    assert (record(run)["state"], record(run)["folder"]) == ("running", ".sub")
    (row,) = json.loads(coral(capsys, run, "list", "--json")[1])
    assert (row["number"], row["agent"], row["what"]) == (1, "agent-1", "wide net")
    assert coral(capsys, run, "wait", "1", "--timeout", "0.01")[:2] == (2, "job 1 still runs\n  coral job wait 1\n")
    assert "job 1" in status_of(capsys, run)
    (run.layout.agents / "go").touch()
    text = wait_for_word(run)
    assert "Your job 1 (wide net) ended with exit code 3, " in text
    assert "\n    begun\n    the end\n" in text
    assert "../../../logs/agent-1/job-1.out" in text
    assert (run.layout.clone("agent-1") / "../../../logs/agent-1/job-1.out").read_text() == "begun\nthe end\n"
    assert record(run)["code"] == 3
    code, out, _ = coral(capsys, run, "wait", "1")
    assert code == 1
    assert out.startswith("job 1: wide net: ended with exit code 3, after ")
    code, out, _ = coral(capsys, run, "log", "1", "-n", "1")
    assert out.splitlines()[1:] == ["the end"]


def status_of(capsys: pytest.CaptureFixture[str], run: Run) -> str:
    def shown() -> str:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "200")  # where there is less, the end of a cell is cut off
            main(["status", "--run", str(run.layout.root)])
        out = capsys.readouterr().out
        return out if "· job 1" in out else ""

    return str(wait_until(shown, what="the job in the status"))


def test_a_job_outlives_its_supervisor_and_the_next_one_ends_it(start, capsys):
    run = start(AGENT, overrides=QUICK)
    pid = pid_of(run)
    wait_for_launch(run, 2)
    run.kill()
    assert is_alive(pid)
    run.supervise()
    wait_until(lambda: holder(run.layout.lock) is not None, what="the next supervisor")
    code, out, _ = coral(capsys, run, "stop", "1")
    assert (code, out) == (0, "job 1 ends\n")
    wait_until(lambda: record(run).get("state") == "ended", what="its end")
    assert not is_alive(pid)
    assert (record(run)["how"], record(run)["code"]) == ("was ended by signal 2 (operator stopped it)", -2)
    assert (record(run)["outcome"], record(run)["reason"]["kind"]) == (JobOutcome.SIGNALLED, ReasonKind.REQUEST)
    wait_until(lambda: "job 1 was ended by signal 2 (operator stopped it)" in str(run.events("job")), what="its line")
    assert "operator stopped it" in wait_for_word(run)


def test_what_ends_while_nobody_looks_is_found_by_the_next_supervisor(start):
    run = start(AGENT, overrides=QUICK)
    pid = pid_of(run)
    run.request({"type": "leave"})
    run.wait_for_end()
    assert run.fleet().jobs[1].phase is Phase.RUNNING
    assert is_alive(pid)
    (run.layout.agents / "go").touch()
    wait_until(lambda: not is_alive(pid), what="its end")
    # Nor was the end of an earlier one ever shown.
    old = {"number": 9, "agent": "agent-1", "command": ["true"], "state": "running"}
    run.layout.job("agent-1", 9).write_text(json.dumps(old))
    run.layout.job("agent-1", 8).write_text("{")
    run.supervise()
    wait_until(lambda: record(run).get("state") == "ended", what="the finding")
    assert (record(run)["code"], record(run)["how"]) == (3, "ended with exit code 3")
    wait_until(lambda: record(run, 9).get("state") == "ended", what="the end of the earlier one")
    assert not run.fleet().jobs


DEAF = f"""
if {FIRST}; then
  coral job start -- sh -c 'trap "" INT TERM; setsid sleep 300 & echo $$ >../pid; sleep 300'
  coral job start -- env -i sleep 300
  coral job start -- /no/such/program --at all
fi
echo at work; exec sleep 300
"""


def test_a_stop_ends_jobs_however_deaf_and_says_why_to_who_goes_on(start):
    run = start(DEAF, overrides=("run.max_defer=600",))
    pid_of(run)
    wait_until(lambda: record(run, 3).get("state") == "ended", what="the end of what never was")
    assert record(run, 3)["code"] == 127
    assert run.fleet().jobs.keys() == {1, 2}
    run.stop()
    assert not run.fleet().jobs
    assert run.left() == []
    assert record(run, 1)["how"] == "was ended by signal 9 (the run stopped)"
    launch = run.fleet().agents["agent-1"].launch
    run.supervise()
    wait_until(lambda: prompt(run, launch + 1), what="the words of their ends")
    assert prompt(run, launch + 1).count("## Heartbeat: job ended") == 1
    assert [line for line in prompt(run, launch + 1).splitlines() if "(the run stopped), " in line and "job 1" in line]
    assert prompt(run, launch + 1).count("Your job ") == 3


WAITS = """
coral job start -- true >/dev/null; coral job wait 1 >../said
echo 1 >x.txt; coral eval -m one
echo at work; exec sleep 300
"""


def test_who_waited_for_a_job_is_not_told_of_its_end_again(start):
    run = start(f"if {FIRST}; then {WAITS} fi; echo at work; exec sleep 300", overrides=("run.max_defer=600",))
    wait_until(lambda: "Heartbeat: reflect" in prompt(run, 2), what="the launch after the heartbeat")
    assert (run.layout.agents / "said").read_text().startswith("job 1: true: ended well, after ")
    assert "Your job 1" not in prompt(run, 2)


def test_a_job_that_cannot_begin_is_no_job(start, capsys):
    run = start("echo at work; exec sleep 300", overrides=QUICK)
    wait_for_launch(run, 1)
    outside = {"type": "start_job", "agent": "agent-1", "command": ["true"], "folder": "../.."}
    assert run.ask(outside)["ok"] is True
    wait_until(lambda: record(run, 1).get("state") == "ended", what="its end")
    assert record(run, 1)["how"] == "could not be started: there is no folder ../.. in the workspace"
    for command in ([], "true", ["a\0b"], [1], ["\udc80"]):
        answer = run.ask({**outside, "command": command})
        assert answer["ok"] is False
        assert "cannot read the request: command: must be" in answer["message"]
    assert run.ask({"type": "stop_job", "number": "1"})["ok"] is False
    assert coral(capsys, run, "log", "7")[0] == 1
    assert coral(capsys, run, "start", "--", "true")[2].startswith("coral: cannot start a job: no agent is named")
    assert coral(capsys, run, "start", "--agent", "agent-1", "--", "echo", "--", "a b")[0] == 0
    wait_until(lambda: record(run, 2).get("state") == "ended", what="its end")
    assert run.layout.job_output("agent-1", 2).read_text() == "-- a b\n"
    assert "ended well" in coral(capsys, run, "list")[1]


def test_a_record_that_cannot_be_written_is_written_later(start):
    run = start(AGENT, overrides=("run.poll_seconds=0.2",))
    pid_of(run)
    place = run.layout.job("agent-1", 1)
    wait_until(place.exists, what="its record")
    place.unlink()
    (place / "in the way").mkdir(parents=True)
    (run.layout.agents / "go").touch()
    wait_until(lambda: any("the record of job 1" in event["text"] for event in run.events("alert")), what="the alert")
    (place / "in the way").rmdir()
    place.rmdir()
    wait_until(lambda: record(run).get("state") == "ended", what="the record of its end")
    assert record(run)["code"] == 3


LEAVES = """
[ -e ../left ] ||
  env -i setsid sh -c 'sh -c "echo \\$\\$ >../new; mv ../new ../left; exec sleep 300" & ' </dev/null >/dev/null 2>&1
while [ ! -e ../left ]; do sleep 0.01; done
echo at work; exec sleep 300
"""


def test_a_new_supervisor_ends_what_a_launch_left_while_nobody_looked(start):
    """A daemon that was forked twice, in a session of its own, without an environment."""
    run = start(LEAVES)
    wait_until(lambda: (run.layout.agents / "left").exists(), what="the daemon")
    daemon = int((run.layout.agents / "left").read_text())
    wait_until(lambda: run.fleet().agents["agent-1"].has_output, what="its first word")
    run.kill()
    os.kill(run.left()[0], signal.SIGKILL)
    assert is_alive(daemon)
    run.supervise()
    wait_for_launch(run, 2)
    assert not is_alive(daemon)


PULSE = """
import pathlib, time
from heartbeats import Pulse

with Pulse("training", total=4, checkpoint="../kept") as pulse:
    pulse.update(1, message="fold 1 of 4")
    while not pathlib.Path("../go").exists():
        time.sleep(0.05)
"""


def test_the_pulse_of_a_job_reaches_status_by_itself(start) -> None:
    words = shlex.join([sys.executable, "-c", PULSE])
    run = start(f"coral job start -m training -- {words}; echo at work; exec sleep 300", overrides=QUICK)

    def pulses() -> list[dict[str, Any]]:
        status = run.layout.status
        agents = json.loads(status.read_text())["agents"] if status.exists() else []
        return [pulse for agent in agents for pulse in agent["pulses"]]

    shown = {"task": "training", "phase": "", "progress": 0.25, "message": "fold 1 of 4"}
    wait_until(lambda: pulses() == [shown], what="its pulse")
    text = coral_process("status", "--run", str(run.layout.root), COLUMNS="250").stdout
    assert " · training (25%, fold 1 of 4)" in text
    (run.layout.agents / "go").touch()
    wait_until(lambda: pulses() == [], what="its end")
    run.stop()
    replayed = coral_process("replay", str(run.layout.root), "--beats", "agent-1", "--json").stdout
    ended = {(beat["task"], beat["status"]) for beat in json.loads(replayed) if beat["launch"] == 0}
    assert {("training", "success"), ("job 1", "success")} <= ended
    assert "  training    success" in coral_process("replay", str(run.layout.root), "--beats", "agent-1").stdout
