"""Real runs for tests: a task in a temporary folder, a supervisor in a process of its own, scripted agents."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from files import write_files
from forked import ForkedSupervisor, run_command
from records import readable

from attempts.files import parse_object, read_bytes
from attempts.record import Attempt
from attempts.store import Store
from coral.agent_setup.roster import Roster
from coral.config.load import load, load_frozen
from coral.fleet.run_state import Fleet
from coral.journal import Decision, decisions, fold
from coral.processes.cgroup import Groups, own_group
from coral.processes.process_tree import TAG, identify
from coral.records.recent import RecentResults
from coral.runs.create import create_run
from coral.runs.rules import rules_of
from coral.supervisor.context import RunContext
from coral.supervisor.lock import holder
from workspace.layout import OPERATOR, Layout

PATIENCE = 120.0  # seconds, as a machine that does much else may need them, or one that stands still for a while
DYING = 60.0  # seconds until a process that was killed is gone, on a machine that is busy
READ_NUMBER = "def grade(workspace):\n    return float((workspace / 'x.txt').read_text())\n"
TRY = [{"edit": {"file": "x.txt", "content": "{n}"}}, {"submit": "try {n}"}]


def tries(*values: object) -> list[object]:
    """Return the steps of a script that submit these numbers, one after the other."""
    pairs = ([{"edit": {"file": "x.txt", "content": str(value)}}, {"submit": f"value {value}"}] for value in values)
    return [step for pair in pairs for step in pair]


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "it") -> Any:
    """Poll until the condition is true; returns its value. AssertionError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} seconds"
        time.sleep(0.01)
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not: nobody may be there to take its exit code."""
    return identify(pid) is not None


def coral_process(
    *words: str, cwd: Path | None = None, seconds: float = PATIENCE, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run `coral` as an operator does, in a forked process, which takes less time than an interpreter of its own."""
    return run_command(words, cwd or Path.cwd(), {**_operators_environment(), **env}, seconds)


def coral_interpreter(
    *words: str, cwd: Path | None = None, seconds: float = PATIENCE, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run `coral` as an operator does, in an interpreter of its own, with its output in pipes."""
    command, environment = [sys.executable, "-P", "-m", "coral", *words], {**_operators_environment(), **env}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )


def _operators_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "CORAL_AGENT"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return environment


def write_task(folder: Path, script: object, *, grade: str = READ_NUMBER, extra: str = "", command: str = "") -> Path:
    """Write a task of one number; returns its folder. `script`: what the agents do, as a list of steps or as the text
    of a shell script. They are not sealed, because many scripts write files for the test beside the run."""
    files = {"seed/x.txt": "0", "grade.py": grade}
    agents = f"runtime: scripted\n  options: {{script: {json.dumps(script)}}}"
    if isinstance(script, str):
        files["seed/agent.sh"] = script
        agents = 'runtime: command\n  options: {start: [/bin/sh, "{clone}/agent.sh"]}'
    grader = f"command: {json.dumps(command)}\n  private: [grade.py]" if command else "entry: grade.py:grade"
    files["task.yaml"] = (
        "task:\n  name: number\n  description: Make the number large.\n"
        f"grader:\n  noise: 0\n  {grader}\n"
        f"agents:\n  {agents}\n"
        "run:\n  interrupt_grace: 1\n  terminate_grace: 0.5\n  backoff: 0.1\n"
        "workspace:\n  seal: none\n" + extra
    )
    write_files(folder, files).chmod(0o700)  # by some seals, what all may read is not hidden
    return folder


class Run:
    """A run, and the process that supervises it. All processes of the run have ended when `end` returns."""

    def __init__(self, task: Path, runs: Path, overrides: Sequence[str] = ()) -> None:
        self.layout: Layout = create_run(load(task, overrides), runs, lambda _: None)
        self.supervisor: ForkedSupervisor | subprocess.Popen[bytes] | None = None

    def supervise(self, ignored: Sequence[int] = ()) -> "Run":
        """Start a supervisor; returns the run. `ignored`: the signals that it inherits as ignored, as from nohup."""
        self.supervisor = ForkedSupervisor(self.layout, ignored)
        return self

    def at(self, root: Path) -> "Run":
        """Return the run in another folder, to which it was moved or copied; it has no supervisor yet."""
        other = Run.__new__(Run)
        other.layout, other.supervisor = Layout(root), None
        return other

    def kill(self) -> None:
        """Kill the supervisor, and none of the processes that it started."""
        self.supervisor.send_signal(signal.SIGKILL)
        self.supervisor.wait(PATIENCE)

    def stop(self, seconds: float = PATIENCE) -> None:
        """Request the end of the run as `coral stop` does, and wait for it."""
        self.request({"type": "stop", "reason": "the test is over"})
        self.wait_for_end(seconds)

    def wait_for_end(self, seconds: float = PATIENCE) -> None:
        assert self.supervisor.wait(seconds) == 0, self.layout.log.read_text()

    def close(self) -> None:
        """Stop the run if it is supervised. AssertionError if a process is left of a run that ended in order."""
        if self.supervisor is None or self.supervisor.poll() == -signal.SIGKILL:
            return
        if self.supervisor.poll() is None:
            self.stop()
        self.wait_for_end()
        if holder(self.layout.lock) is None:
            wait_until(lambda: not self.left(), DYING, "the end of all that it started")

    def end(self) -> None:
        """Kill all processes of the run, in whatever state the test has left it."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.kill()
        # Another supervisor may have taken the run over.
        for pid in [*filter(None, [holder(self.layout.lock)]), *self.left()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # A supervisor that was killed could not remove its control groups.
        wait_until(self._has_no_group, what="the end of what was killed")

    def _has_no_group(self) -> bool:
        run, own = f"{self.layout.root.name}.{self.layout.root.stat().st_ino}", own_group()
        Groups(run).remove_empty()
        return own is None or not (own / f"coral-{run}").exists()

    def request(self, data: dict[str, Any], sender: str = OPERATOR) -> None:
        """Write a request, without waiting for its answer."""
        id = f"{time.time_ns():020d}"
        folder = self.layout.requests_of(sender)
        (folder / f".{id}").write_text(json.dumps(data))
        (folder / f".{id}").rename(folder / f"{id}.json")

    def ask(self, data: dict[str, Any], sender: str = OPERATOR) -> dict[str, Any]:
        """Write a request, and return its answer."""
        before = set(self.layout.replies_to(sender).glob("*.json"))
        self.request(data, sender)
        answer = wait_until(lambda: set(self.layout.replies_to(sender).glob("*.json")) - before, what="an answer")
        return dict(json.loads(answer.pop().read_text()))

    def left(self) -> list[int]:
        """Return the processes that have the tag of a launch of this run, whatever their parent."""
        return left_of(self.layout)

    def attempts(self) -> list[Attempt]:
        """Return the published attempts, without the baseline."""
        return [record for record in readable(Store(self.layout.attempts)) if record.number > 0]

    def events(self, type: str = "") -> list[dict[str, Any]]:
        try:
            lines = read_bytes(self.layout.events).splitlines(keepends=True)
        except (FileNotFoundError, ValueError):  # not there, or an agent laid something else there
            return []
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [line for line in found if not type or line["type"] == type]

    def last_lines(self) -> str:
        """Return the last events and log lines and the status of the run, for the report of a failed test."""
        try:
            events = [json.dumps(line)[:300] for line in self.events()]
        except json.JSONDecodeError as error:  # a test may damage the file
            events = [f"events: {error}"]
        log = self.layout.log.read_text(errors="replace").splitlines() if self.layout.log.exists() else []
        return "\n".join([*events[-60:], *log[-20:], json.dumps(self.status())[:4000]])

    def status(self) -> dict[str, Any]:
        """Return what is in status.json; nothing while there is no such file."""
        try:
            return parse_object(read_bytes(self.layout.status))
        except (FileNotFoundError, ValueError):
            return {}

    def prompts(self, agent: str) -> list[dict[str, Any]]:
        """Return the prompts that a scripted agent received, in order, each with `session`, `launch` and `text`."""
        path = self.layout.state(agent) / "prompts.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]  # the last may be half written

    def received(self, agent: str, heartbeat: str) -> list[str]:
        """Return the ids of a heartbeat in the prompts of an agent."""
        found = (pair for prompt in self.prompts(agent) for pair in heartbeats_in(prompt["text"]))
        return [id for name, id in found if name == heartbeat]

    def fleet(self) -> Fleet:
        """Return the fleet that the journal gives."""
        return fold(self.layout.journal).fleet

    def decisions(self) -> list[Decision]:
        """Return all decisions of the journal, in order."""
        return [decision for _, decision in decisions(self.layout.journal)]

    def wait_for_attempts(self, count: int, seconds: float = PATIENCE) -> list[Attempt]:
        wait_until(lambda: len(self.attempts()) >= count, seconds, f"attempt {count}")
        return self.attempts()


def heartbeats_in(prompt: str) -> list[tuple[str, str]]:
    """Return the name and id of each heartbeat in a prompt."""
    found = re.findall(r"^## Heartbeat: (.*) \(id (.*)\)$", prompt, re.MULTILINE)
    return [(name, id) for name, ids in found for id in ids.split(", ")]


def context_of(layout: Layout) -> RunContext:
    """Return the context that a supervisor of the run would have."""
    config = load_frozen(layout.task_file)
    roster = Roster(config)
    rules = rules_of(config, roster, "")
    return RunContext(layout, config, rules, RecentResults(), roster)


def left_of(layout: Layout) -> list[int]:
    """Return the processes that have the tag of a launch of a run, whatever their parent."""
    found = []
    mark = f"{TAG}={layout.root.name}.{layout.root.stat().st_ino}.".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                living = b") Z " not in (entry / "stat").read_bytes()
                if living and any(part.startswith(mark) for part in (entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
