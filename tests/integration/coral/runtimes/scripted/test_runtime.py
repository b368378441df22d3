"""The scripted agent, as a real process: it is interrupted, resumed, killed, and remembers every prompt."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from launch_specs import launch_spec
from real_runs import wait_until

from coral.runtimes.model import Command, LaunchSummary
from coral.runtimes.scripted.runtime import Scripted
from coral.runtimes.scripted.steps import Interrupted, Interrupts
from coral.supervisor.lock import hold_lock
from workspace import hub
from workspace.layout import Layout, create

WITHIN = 120.0  # seconds: what takes longer has failed, on any machine


class Fleet:
    """One agent of one run, whose launches the test starts itself."""

    def __init__(self, root: Path, script: object) -> None:
        self.layout = Layout(root)
        create(self.layout, ["agent-1"])
        self.runtime = Scripted({"script": script})
        assert self.runtime.check() == []
        self.launch = 0
        self.session: str | None = None
        self.path = str(Path(sys.executable).parent)
        self.clone = self.layout.clone("agent-1")
        self.clone.mkdir(parents=True, exist_ok=True)
        self.running: list[subprocess.Popen[bytes]] = []

    @property
    def state(self) -> Path:
        return self.layout.state("agent-1")

    def command(self) -> Command:
        spec = launch_spec(self.session, self.layout.root, launch=self.launch)
        return self.runtime.command(spec)

    def start(self, prompt: str = "go") -> subprocess.Popen[bytes]:
        self.launch += 1
        command = self.command()
        self.session = command.session
        path = self.layout.prompt("agent-1", self.launch)
        path.write_text(prompt)
        environment = {
            **os.environ,
            "PATH": f"{self.path}{os.pathsep}{os.environ['PATH']}",
            "CORAL_RUN": str(self.layout.root),
            "CORAL_AGENT": "agent-1",
        }
        with path.open("rb") as stdin, self.output.open("wb") as out, self.errors.open("wb") as err:
            streams = {"stdin": stdin, "stdout": out, "stderr": err}
            child = subprocess.Popen(command.argv, cwd=self.clone, env=environment, start_new_session=True, **streams)
        self.running.append(child)
        return child

    @property
    def output(self) -> Path:
        return self.layout.output("agent-1", self.launch)

    @property
    def errors(self) -> Path:
        return self.layout.errors("agent-1", self.launch)

    def said(self) -> list[dict[str, object]]:
        """What the last launch has printed so far; text that is no JSON as {"text": ...}."""
        lines = self.output.read_text().splitlines(keepends=True)
        return [_parsed(line) for line in lines if line.endswith("\n")]

    def phases(self) -> list[object]:
        return [line.get("phase") for line in self.said() if "phase" in line]

    def until(self, phase: str) -> None:
        wait_until(lambda: phase in self.phases())

    def prompts(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.state / "prompts.jsonl").read_text().splitlines()]

    def submissions(self) -> list[dict[str, object]]:
        inbox = self.layout.attempts / "inbox" / "agent-1"
        return [json.loads(path.read_text()) for path in sorted(inbox.glob("[0-9]*.json"))]


def _parsed(line: str) -> dict[str, object]:
    return json.loads(line) if line.startswith("{") else {"text": line.rstrip("\n")}


@pytest.fixture
def fleet(tmp_path) -> Iterator[Callable[[object], Fleet]]:
    made: list[Fleet] = []

    def make(script: object) -> Fleet:
        made.append(Fleet(tmp_path / "run", script))
        return made[-1]

    yield make
    for child in (child for agent in made for child in agent.running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_steps_are_done_in_order(fleet) -> None:
    script = [
        {"print": "hello {agent}"},
        {"repeat": {"times": 2, "steps": [{"edit": {"file": "d/a.txt", "append": "line {n}\n"}}]}},
        {"edit": {"file": "d/a.txt", "replace": ["line", "row"]}},
        {"say": "launch {launch}"},
        {"sleep": 0.01},
        {"busy": 0.01},
    ]
    agent = fleet(script)
    assert agent.start().wait(WITHIN) == 0
    assert (agent.clone / "d" / "a.txt").read_text() == "row 1\nrow 2\n"
    assert agent.phases() == ["starting", "print", "edit", "edit", "edit", "say", "say", "sleep", "busy", "done"]
    assert {"text": "hello agent-1"} in agent.said()
    assert [line["reply"] for line in agent.said() if "reply" in line] == ["launch 1"]
    assert agent.said()[-1]["ended"] is True


def test_an_interrupted_session_goes_on_at_its_place(fleet) -> None:
    agent = fleet([{"print": "one"}, "hang", {"print": "two"}, {"sleep": 60}, {"print": "three"}])
    for prompt, waits, code in (("first", "hang", 130), ("second", "sleep", 130), ("third", "done", 0)):
        child = agent.start(prompt)
        agent.until(waits)
        if code:
            os.killpg(child.pid, signal.SIGINT)
        assert child.wait(WITHIN) == code
    assert [line["text"] for line in agent.said() if "text" in line] == ["three"]
    kept = [(prompt["text"], prompt["session"], prompt["launch"], prompt["resumed"]) for prompt in agent.prompts()]
    assert kept == [
        ("first", agent.session, 1, False),
        ("second", agent.session, 2, True),
        ("third", agent.session, 3, True),
    ]


BUSY = [{"repeat": [{"edit": {"file": "n", "content": "{n}"}}, {"sleep": 0.001}]}]


def test_one_interrupt_at_any_moment_of_its_work_is_enough(fleet) -> None:
    agent = fleet(BUSY)
    for delay in [0.0, 0.0, 0.001, 0.002, 0.003, 0.005, 0.008]:
        child = agent.start()
        agent.until("starting")
        time.sleep(delay)  # not to wait for anything, but to hit another moment
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(WITHIN) == 130


def test_an_interrupt_right_after_the_start_is_no_crash(fleet) -> None:
    agent = fleet(BUSY)
    for delay in [0.0, 0.004, 0.008, 0.012, 0.016, 0.02, 0.03]:
        agent.session = None
        child = agent.start()
        time.sleep(delay)  # as above
        while child.poll() is None:  # Python itself may lose one that comes before the program is loaded
            os.killpg(child.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(1)
        said = LaunchSummary(output=bool(agent.said()), stderr=agent.errors.read_text())
        assert agent.runtime.judge(child.returncode, said) == "interrupted", said


def test_a_session_that_does_not_exist_cannot_be_resumed(fleet) -> None:
    agent = fleet(["hang"])
    agent.session = "never-seen"
    child = agent.start()
    assert agent.runtime.judge(child.wait(WITHIN), LaunchSummary()) == "unknown_session"
    assert agent.said()[0]["error"] == "unknown session never-seen"


def test_a_crash_step_is_done_once(fleet) -> None:
    agent = fleet([{"crash": 3}, {"crash": "KILL"}, {"print": "survived"}])
    assert [agent.start().wait(WITHIN) for _ in range(3)] == [3, -signal.SIGKILL, 0]


def test_a_step_that_was_killed_is_done_again(fleet) -> None:
    agent = fleet([{"print": "before"}, "hang"])
    for _ in range(2):
        child = agent.start()
        agent.until("hang")
        child.kill()
        child.wait()
    assert agent.said()[0]["message"] == "launch 2, step 2"


def test_it_and_its_child_can_ignore_signals(fleet) -> None:
    agent = fleet([{"ignore": ["INT", "TERM"]}, {"fork": {"session": True, "deaf": True, "seconds": 60}}, "hang"])
    child = agent.start()
    agent.until("hang")
    [forked] = psutil.Process(child.pid).children()
    assert os.getsid(forked.pid) != os.getsid(child.pid) == child.pid
    for number in (signal.SIGINT, signal.SIGTERM):
        os.killpg(child.pid, number)
        forked.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.3)
    assert forked.is_running()
    forked.kill()
    child.kill()
    assert child.wait(WITHIN) == -signal.SIGKILL


def test_a_forked_child_otherwise_dies_with_its_group(fleet) -> None:
    agent = fleet(["fork", "hang"])
    child = agent.start()
    agent.until("hang")
    [forked] = psutil.Process(child.pid).children()
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(WITHIN) == 130
    wait_until(lambda: not forked.is_running() or forked.status() == psutil.STATUS_ZOMBIE)


def test_a_submit_step_runs_coral_eval(fleet) -> None:
    agent = _with_repository(
        fleet([{"edit": {"file": "a.txt", "content": "2"}}, {"submit": {"message": "two", "wait": False}}])
    )
    assert agent.start().wait(WITHIN) == 0
    assert not [line for line in agent.said() if "error" in line], agent.said()
    assert [sent["title"] for sent in agent.submissions()] == ["two"]


def test_a_submission_that_was_made_is_not_made_again(fleet) -> None:
    steps = [{"edit": {"file": "a.txt", "content": "{n}"}}, {"submit": "number {n}"}]
    agent = _with_repository(fleet([{"repeat": {"times": 3, "steps": steps}}]))
    with hold_lock(agent.layout.lock):  # or `coral eval` sees that nobody will grade it, and does not wait
        for count in (1, 2):
            child = agent.start()
            wait_until(lambda count=count: len(agent.submissions()) == count)
            os.killpg(child.pid, signal.SIGINT)
            assert child.wait(WITHIN) == 130
    assert [sent["title"] for sent in agent.submissions()] == ["number 1", "number 2"]
    assert agent.phases() == ["starting", "edit", "submit", "interrupted"], "the second launch began behind the first"


def test_a_submission_that_was_not_made_is_tried_again(fleet, tmp_path) -> None:
    slow = tmp_path / "bin" / "coral"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")  # as slow as an addition of many files, before anything is handed in
    slow.chmod(0o755)
    agent = fleet([{"submit": "one"}])
    agent.path = str(slow.parent)
    for _ in range(2):
        child = agent.start()
        agent.until("submit")
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(WITHIN) == 130
    assert agent.said()[0]["message"] == "launch 2, step 1"


def test_an_interrupt_is_delivered_only_while_the_program_waits() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        interrupts = Interrupts()
        with interrupts.waiting():
            pass
        signal.raise_signal(signal.SIGINT)
        assert interrupts.pending
        with pytest.raises(Interrupted), interrupts.waiting():
            pytest.fail("it was not answered")
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_submission_that_fails_is_reported_and_the_script_goes_on(fleet) -> None:
    agent = fleet([{"submit": "no repository"}, {"print": "on"}])
    assert agent.start().wait(WITHIN) == 0
    assert any("coral eval ended with exit code 1" in str(line.get("error")) for line in agent.said())


def test_a_script_that_cannot_be_read_is_a_fatal_error(fleet, tmp_path) -> None:
    path = tmp_path / "script.json"
    path.write_text('["hang"]')
    agent = fleet(str(path))
    path.write_text("[")
    assert agent.runtime.judge(agent.start().wait(WITHIN), LaunchSummary()) == "terminal"


def _with_repository(agent: Fleet) -> Fleet:
    seed = agent.layout.root.with_name("seed")
    seed.mkdir()
    (seed / "a.txt").write_text("0")
    agent.clone.rmdir()
    commit = hub.create(agent.layout.root / "workspace" / "hub.git", seed)
    hub.clone(agent.layout.root / "workspace" / "hub.git", agent.clone, "agent-1", commit, exclude=[])
    return agent
