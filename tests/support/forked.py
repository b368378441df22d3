"""Supervisors and commands forked from a process that has loaded what they need, as `coral start --detach` forks them.

Starting an interpreter for each takes longer than all else that most of these runs do.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from coral.cli import program
from coral.supervisor.loop import supervise_detached
from workspace.layout import Layout

FORKS = multiprocessing.get_context("forkserver")
PRELOADED = ["coral.supervisor.loop", "coral.runtimes.scripted", "coral.runtimes.command", "git.cmd"]
FORKS.set_forkserver_preload([*PRELOADED, "coral.cli.commands.start"])


class ForkedSupervisor:
    """A supervisor of the run; to be waited for and signalled like a Popen."""

    def __init__(self, layout: Layout, ignored: Sequence[int]) -> None:
        self._process = FORKS.Process(target=_supervise, args=(layout, ignored, dict(os.environ)))
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("a supervisor", seconds or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def run_command(
    words: Sequence[str], cwd: Path, environment: Mapping[str, str], seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run our command line as `subprocess.run` would, in a forked process, with its output in files."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("stdout", "stderr")]
        command = FORKS.Process(target=_run_command, args=(words, cwd, environment, outputs))
        command.start()
        command.join(seconds)
        if command.exitcode is None:
            command.kill()
            command.join()
            raise subprocess.TimeoutExpired(words, seconds)
        said, complained = (path.read_text() for path in outputs)
        return subprocess.CompletedProcess(words, command.exitcode, said, complained)


def _run_command(words: Sequence[str], cwd: Path, environment: Mapping[str, str], outputs: Sequence[Path]) -> None:
    _begin(cwd, environment, *outputs)
    sys.argv = ["coral", *words]
    program()


def _supervise(layout: Layout, ignored: Sequence[int], environment: dict[str, str]) -> None:
    os.setsid()
    _begin(layout.root, environment, layout.log, layout.log)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(supervise_detached(layout))


def _begin(cwd: Path, environment: Mapping[str, str], *outputs: Path) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(outputs, start=1):
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.dup2(output, number)
        os.close(output)
