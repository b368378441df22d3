"""Supervisors forked from a process that has loaded what they need, as `coral start --detach` forks them.

Starting an interpreter for each takes longer than all else that most of these runs do.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from coral.supervisor.loop import supervise_detached
from workspace.layout import Layout

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["coral.supervisor.loop", "coral.runtimes.scripted", "coral.runtimes.command", "git.cmd"])


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


def _supervise(layout: Layout, ignored: Sequence[int], environment: dict[str, str]) -> None:
    os.setsid()
    os.chdir(layout.root)
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(layout.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    for number in (1, 2):
        os.dup2(output, number)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(supervise_detached(layout))
