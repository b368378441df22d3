"""Makes real runs in a temporary folder, started as a user starts them. Closing the arena removes them and their
processes.

All processes inherit BENCH_NOTES, the folder where agents and graders note their times; by it, the arena finds the
processes that are left.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from attempts.record import Attempt
from attempts.store import Store
from coral.supervisor.lock import holder
from workspace.layout import Layout, runs_under

MARK = "BENCH_NOTES"
HERE = Path(__file__).parent
AGENTS = HERE / "agents"
CORAL = (sys.executable, "-P", "-m", "coral")
FILES, LINES = 30, 40  # of the small repository
STOP_SECONDS = 30.0


class BenchmarkError(Exception):
    """A benchmark could not be finished; what it measured until then is not a figure."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run in the background. `lines`: what `coral start` printed, each with its time in nanoseconds."""

    layout: Layout
    began: int
    lines: tuple[tuple[int, str], ...]

    def attempts(self) -> list[Attempt]:
        """Return the published attempts, without the baseline."""
        store = Store(self.layout.attempts)
        return [store.read(number) for number in store.numbers() if number > 0]

    def record(self, number: int) -> Path:
        return self.layout.attempts / f"{number:06d}.json"


class Arena:
    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="coral-bench-")).resolve()
        self.notes = self.root / "notes"
        self.notes.mkdir()
        self.root.chmod(0o711)  # agents and graders may have users of their own
        self.notes.chmod(0o777)
        self._environment = {**os.environ, MARK: str(self.notes)}
        self.sessions: set[int] = set()  # whose processes end with the arena, even if they overwrite their environment

    def small_task(self) -> Path:
        """Make the task of instant grades: its repository has thirty small files, and one that agents change."""
        task = self.root / "task"
        shutil.copytree(HERE / "task", task)
        for number in range(FILES):
            path = task / "seed" / f"part{number % 5}" / f"file{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"line {line} of file {number}\n" for line in range(LINES)))
        (task / "seed" / "trial.txt").write_text("seed")
        task.chmod(0o700)
        return task

    def start(self, task: Path, *overrides: str) -> Started:
        """Run `coral start --detach` and read its lines as they come. BenchmarkError if it fails."""
        # Agents and graders are sealed, and note their times outside.
        shown = [f"{section}.writable=[{self.notes}]" for section in ("workspace", "grader")]
        command = [*CORAL, "start", "--detach", str(task), *shown, *overrides]
        began = time.time_ns()
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as child:
            assert child.stdout is not None
            lines = tuple((time.time_ns(), line.strip()) for line in child.stdout)
        if child.returncode:
            raise BenchmarkError("coral start failed:\n" + "\n".join(line for _, line in lines))
        return Started(runs_under(self.root / "runs")[0], began, lines)

    def fail(self, task: Path, *overrides: str, saying: str, prefix: Sequence[str] = ()) -> float:
        """Run a `coral start --detach` that cannot work; return how long it took, in milliseconds. BenchmarkError if it
        does not fail with the words `saying`, or leaves something behind."""
        command = [*prefix, *CORAL, "start", "--detach", str(task), *overrides]
        began = time.perf_counter_ns()
        done = subprocess.run(
            command, cwd=self.root, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        took = ms(time.perf_counter_ns() - began)
        if done.returncode != 1 or saying not in done.stderr:
            raise BenchmarkError(f"coral start was to say {saying!r}; it ended with {done.returncode}:\n{done.stderr}")
        if self._left() or (self.root / "runs").exists():
            raise BenchmarkError(f"coral start failed, saying {saying!r}, and left something behind")
        return took

    def call(self, *words: str) -> None:
        """Run any other command. BenchmarkError if it fails."""
        done = self._call(*words)
        if done.returncode:
            raise BenchmarkError(f"coral {words[0]} failed:\n{done.stdout}{done.stderr}")

    @contextmanager
    def beside(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command that goes on until its input ends, which is at the end of the context."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*CORAL, *words], cwd=self.root, env=self._environment, stdin=pipe, stdout=pipe, text=True
        ) as child:
            yield child  # leaving closes its input and waits for it

    def stop(self, run: Started) -> None:
        self._stop(run.layout)

    def wait_for_end(self, run: Started, seconds: float) -> None:
        """Wait until the run has ended by itself, by its budget."""
        wait_until(lambda: holder(run.layout.lock) is None, seconds, "the end of the run")

    def close(self) -> None:
        """Stop the runs, kill the processes that are left, and remove the folder, whatever Ctrl-C comes meanwhile."""
        with _undisturbed():
            try:
                for layout in runs_under(self.root / "runs"):
                    if holder(layout.lock) is not None:
                        self._stop(layout)
            finally:
                self._kill_all()
                shutil.rmtree(self.root, ignore_errors=True)

    def _stop(self, layout: Layout) -> None:
        self._call("stop", "--run", str(layout.root), "--timeout", str(STOP_SECONDS))

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CORAL, *words], cwd=self.root, env=self._environment, capture_output=True, text=True, check=False
        )

    def _kill_all(self) -> None:
        deadline = time.monotonic() + 10
        while (left := self._left() or self._left_soon()) and time.monotonic() < deadline:
            for process in left:
                try:
                    process.kill()
                except psutil.Error:
                    continue
            psutil.wait_procs(left, timeout=1)

    def _left_soon(self) -> list[psutil.Process]:
        """Look again: a process that was just beginning a program had no environment."""
        time.sleep(0.3)
        return self._left()

    def _left(self) -> list[psutil.Process]:
        """Return the living processes that have this arena's BENCH_NOTES in their environment, or belong to one of its
        sessions."""
        return [
            process
            for process in psutil.process_iter(["environ", "status"])
            if ((process.info["environ"] or {}).get(MARK) == str(self.notes) or self._is_in_session(process.pid))
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    def _is_in_session(self, pid: int) -> bool:
        try:
            return os.getsid(pid) in self.sessions
        except ProcessLookupError:
            return False


@contextmanager
def arena() -> Iterator[Arena]:
    made = Arena()
    try:
        yield made
    finally:
        made.close()


def agents_run(program: str, *arguments: str) -> str:
    """Return the override that makes every agent run a program of the folder `agents`."""
    return f"agents.options={_options(program, *arguments)}"


def agents_run_each(programs: Mapping[str, int]) -> str:
    """Return the override for a mixed fleet. `programs`: how many agents run each program of the folder `agents`."""
    parts = (f"{{runtime: command, count: {n}, options: {_options(program)}}}" for program, n in programs.items())
    return f"agents.assignments=[{', '.join(parts)}]"


def _options(program: str, *arguments: str) -> str:
    interpreter = ["/bin/sh"] if program.endswith(".sh") else [sys.executable, "-P"]
    return f"{{start: {_quoted([*interpreter, str(AGENTS / program), *arguments])}}}"


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{what} did not come within {seconds:g} seconds")
        time.sleep(0.05)


def ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 3)


def _quoted(words: Sequence[str]) -> str:
    return "[" + ", ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words) + "]"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold off Ctrl-C here. Handlers, not SIG_IGN: what is started meanwhile must not inherit an ignored signal."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
