"""The native agent as a real process: interrupted or killed at any moment, it goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest
from native_agent import publish_submissions
from native_task import CHECK, write_task
from real_runs import wait_until

from attempts.store import Store
from coral.config.load import load
from coral.native.memory import AgentMemory, Candidate
from coral.native.snapshots import Snapshots
from coral.runs.create import create_run
from coral.runtimes.model import Ending, LaunchSummary
from coral.runtimes.native import Native
from workspace.layout import Layout

WITHIN = 120.0  # seconds: what takes longer has failed, on any machine


class Agent:
    """One agent of a run without a supervisor: its submissions stay in its inbox."""

    def __init__(self, task: Path, runs: Path) -> None:
        self.layout: Layout = create_run(load(task, ["agents.count=1"]), runs, lambda _: None)
        self.clone, self.state = self.layout.clone("agent-1"), self.layout.state("agent-1")
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        prompt: str = "",
        *,
        resume: bool = True,
        session: str = "s-1",
        check: str = "check.py:check",
        **options: object,
    ) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-P", "-m", "coral.native", "--session", session, "--state", str(self.state)]
        argv += ["--resume"] if resume else []
        argv += ["--check", check] if check else []
        argv += ["--editable", "points.json", "--direction", "minimize", "--seed", "7"]
        argv += ["--options", json.dumps({"seconds": 0.5, **options})]
        environment = {**os.environ, "CORAL_RUN": str(self.layout.root), "CORAL_AGENT": "agent-1"}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            argv, cwd=self.clone, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(prompt.encode())
        process.stdin.close()
        process.stdin = None
        self.started.append(process)
        return process

    def unsubmitted(self) -> Candidate | None:
        """The best candidate of a running search, as far as it is saved."""
        snapshots = Snapshots.resume(self.state, "s-1", AgentMemory)
        return snapshots.memory.unsubmitted if snapshots is not None else None

    def memory(self) -> AgentMemory:
        snapshots = Snapshots.resume(self.state, "s-1", AgentMemory)
        assert snapshots is not None
        assert not snapshots.problem
        return snapshots.memory

    def inbox(self) -> list[dict[str, object]]:
        return [json.loads(path.read_bytes()) for _, _, path in Store(self.layout.attempts).inbox()]

    def grade(self) -> None:
        """Publish a score for every submission, as a supervisor would; each a little better than the last."""
        publish_submissions(self.layout)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    made: list[Agent] = []

    def begin(check: str = CHECK) -> Agent:
        made.append(Agent(write_task(tmp_path / "task", check), tmp_path / "runs"))
        return made[-1]

    yield begin
    for agent in made:
        agent.end()


def lines(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def children_of(agent: Agent) -> list[str]:
    """The command lines of the agent's living processes, known by the run's folder in them."""
    lines = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if str(agent.layout.root) in words:
            lines.append(words)
    return lines


def test_an_unknown_session_is_refused(make):
    agent = make()
    process = agent.start(session="never")
    output, errors = process.communicate(timeout=WITHIN)
    assert b"no such session" in errors
    assert output == b""
    assert Native({}).judge(process.returncode, LaunchSummary(stderr=errors.decode())) is Ending.UNKNOWN_SESSION


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": "long"}, "seconds must be a number"),
        ({"secs": 1}, "no option 'secs'"),
        ({"brain": "lm"}, "got 'lm'"),
        ({"brain": "llm"}, "no option 'seconds'"),
        ({"session": "../x"}, "no session id"),
    ],
)
def test_wrong_options_are_refused_for_good(make, arguments, message):
    process = make().start(resume=False, **arguments)
    output, errors = process.communicate(timeout=WITHIN)
    assert message in errors.decode()
    assert message in output.decode()
    assert Native({}).judge(process.returncode, LaunchSummary(output=True, stderr=errors.decode())) is Ending.TERMINAL


def test_files_without_numbers_are_refused(make):
    agent = make()
    (agent.clone / "points.json").write_text('"none"')
    process = agent.start(resume=False)
    _, errors = process.communicate(timeout=WITHIN)
    assert b"no number and no choice" in errors
    assert process.returncode == 2


def test_the_runtime_reads_what_the_agent_prints(make):
    agent = make()
    process = agent.start("## Heartbeat: checkpoint (id h1)\n\nLook.\n", resume=False, steps=4)
    output, errors = process.communicate(timeout=WITHIN)
    assert errors == b""
    signs = [sign for line in output.splitlines() for sign in Native({}).read(line)]
    assert signs[0].session == "s-1"
    assert any(sign.phase == "search" and sign.progress is not None for sign in signs)
    assert any(sign.phase == "submit" for sign in signs)
    assert any(sign.reply.endswith("HEARTBEAT_OK") for sign in signs)
    assert signs[-1].ended
    assert agent.inbox()[0]["title"].startswith("descent from #0: ")


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """How long a launch takes here until it ends by itself, or a few seconds: its moments come with the machine."""
    began = time.monotonic()
    process.communicate(timeout=WITHIN)
    return min(time.monotonic() - began, 3.0)


def test_an_interrupt_at_any_moment_loses_nothing(make):
    """Each launch is interrupted a little later than the one before: in the imports, a search, a submission, a wait."""
    agent = make()
    whole = seconds_of(agent.start(resume=False, steps=1))
    before = agent.memory()
    for k in count():
        if k >= 16 and before.episodes > 3 and len(before.trials) > 1:
            break
        process = agent.start(f"## Heartbeat: reflect (id h{k})\n\nThink.\n", seconds=0.3)
        time.sleep(whole * k / 13)  # the moment under test, not a wait for something
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=WITHIN)
        summary = LaunchSummary(output=bool(output), stderr=errors.decode())
        given_up = process.returncode == 1 and b"too many failures" in output  # nobody grades here
        assert given_up or Native({}).judge(process.returncode, summary) is Ending.INTERRUPTED, (k, errors)
        lines(output)
        # A supervisor, too, starts an agent only when the tree of its last launch is gone.
        wait_until(lambda: not children_of(agent), WITHIN, "the end of all children")
        after = agent.memory()
        assert after.episodes >= before.episodes
        assert set(before.answered) <= set(after.answered)
        if output:  # which acknowledges the prompt
            assert f"h{k}" in {*after.answered, *(section.id for section in after.waiting)}
        assert after.trials[: len(before.trials)] == before.trials
        # What was found or submitted is still in memory, or has become a trial with a result.
        if before.unsubmitted is not None or before.pending is not None:
            assert after.unsubmitted is not None or after.pending is not None or len(after.trials) > len(before.trials)
        before = after
        agent.grade()
    assert len(before.graded) == sum(trial.number is not None for trial in before.trials)
    wait_until(lambda: not children_of(agent), WITHIN, "the end of all children")


def test_a_kill_at_any_moment_leaves_a_memory(make):
    agent = make()
    whole = seconds_of(agent.start(resume=False, steps=1))
    before = agent.memory()
    for k in count():
        if k >= 8 and before.episodes > 0:
            break
        process = agent.start()
        time.sleep(whole * k / 7)  # the moment under test
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=WITHIN)
        after = agent.memory()
        assert after.episodes >= before.episodes
        before = after
        agent.grade()


def test_the_best_of_an_interrupted_search_is_submitted(make):
    agent = make()
    process = agent.start(resume=False, seconds=600)  # its end is not waited for
    wait_until(agent.unsubmitted, WITHIN, "a better candidate")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WITHIN)
    saved = agent.memory().unsubmitted
    assert saved is not None
    process = agent.start(seconds=600)
    (submitted,) = wait_until(agent.inbox, WITHIN, "a submission")
    assert submitted["title"] == saved.trial.title
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WITHIN)
    pending = agent.memory().pending
    assert pending is not None
    assert pending.title == saved.trial.title
    assert (agent.clone / "points.json").read_text() == saved.texts["points.json"]


def test_a_check_that_hangs_does_not_delay_an_interrupt(make):
    agent = make("def check(folder):\n    open('hung', 'w').close()\n    while True:\n        pass\n")
    process = agent.start(resume=False, check_seconds=600)
    wait_until((agent.state / "scratch" / "hung").exists, WITHIN, "the check")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=WITHIN)  # a fifth of what the check may take
    assert process.returncode == 130
    wait_until(lambda: not children_of(agent), WITHIN, "the end of the check")


def test_without_a_check_that_works_the_search_goes_on(make):
    agent = make("raise RuntimeError('no such library')\n")
    process = agent.start(resume=False)
    (submitted,) = wait_until(agent.inbox, WITHIN, "a submission")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=WITHIN)
    assert " from #0: " in str(submitted["title"])
    assert "no such library" in output.decode()


def test_a_damaged_memory_is_reported_and_survived(make):
    agent = make()
    agent.start(resume=False, steps=1).communicate(timeout=WITHIN)
    newest = sorted((agent.state / "sessions" / "s-1").glob("memory-*.json"))[-1]
    newest.write_bytes(newest.read_bytes()[:100])
    output, errors = agent.start(steps=1).communicate(timeout=WITHIN)
    assert "cannot be read" in output.decode()
    assert errors == b""


def test_a_heartbeat_is_answered_once_however_often_it_is_sent(make):
    agent = make()
    prompt = "## Heartbeat: checkpoint (id h9)\n\nLook.\n"
    first, _ = agent.start(prompt, resume=False, steps=1).communicate(timeout=WITHIN)
    again, _ = agent.start(prompt, steps=1).communicate(timeout=WITHIN)
    assert b"HEARTBEAT_OK" in first
    assert b"HEARTBEAT_OK" not in again


def test_where_nobody_grades_the_agent_ends_after_a_few_failures(make):
    """Without a supervisor it says so a few times and exits as failed; the supervisor decides about a next launch."""
    agent = make()
    process = agent.start(resume=False, seconds=0.2)
    output, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 1
    assert "nobody seems to grade" in output.decode()
    assert len(agent.inbox()) == 1


def test_a_search_imports_nothing_of_the_other_brain():
    modules = "coral.native.main, coral.native.loop, coral.native.brain, coral.native.workbench"
    others = "{'http.client', 'pydantic', 'coral.native.llm'}"
    code = f"import sys, {modules}; sys.exit(bool({others} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
