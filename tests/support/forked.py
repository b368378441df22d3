"""Supervisors forked from a process that has loaded what they need, as `coral start --detach` forks them.

Starting an interpreter for each takes longer than all else that most of these runs do.
"""

import multiprocessing
import os
import signal
import subprocess
import sys

from workspace.layout import Layout

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["coral.supervisor.loop", "coral.runtimes.scripted", "coral.runtimes.command", "git.cmd"])


class ForkedSupervisor:
    """A supervisor of the run; to be waited for and signalled like a Popen."""

    def __init__(self, layout: Layout) -> None:
        self._process = FORKS.Process(target=_supervise, args=(str(layout.root), str(layout.log), dict(os.environ)))
        self._process.start()
        assert self._process.pid is not None
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


def _supervise(root: str, log: str, environment: dict[str, str]) -> None:
    from coral.supervisor.loop import main  # by now it is loaded

    os.setsid()
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    for number in (1, 2):
        os.dup2(output, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main([root]))
