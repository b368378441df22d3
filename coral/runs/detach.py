"""Supervises a run in the background: in a child of this process that leaves the terminal and outlives it.

The child is forked and does not start another interpreter: what this process has imported, and that takes longer than
all else that a supervisor does before it starts agents, it need not import again.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from typing import NoReturn

from attempts.files import make_way, parse_object, read_bytes
from coral.config.load import Config
from coral.errors import CoralError
from coral.processes import received_signals
from coral.supervisor.lock import holder
from workspace.disk import disk_problem_of
from workspace.layout import Layout

BEGIN_SECONDS = 20.0


def detach(layout: Layout, overrides: tuple[str, ...] = (), config: Config | None = None) -> int:
    """Supervise the run in a process of its own that outlives this terminal; returns its pid once it has begun.
    `overrides` and `config` are those of `supervise`.

    CoralError with its last word, or with what the disk lacks for any, when it could not. This process must have no
    other threads: a lock that one of them held would stay locked in the child.
    """
    with received_signals.hold() as held:
        held.check()
        make_way(layout.log)
        log = os.open(layout.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        _flush()  # or the child would say it once more
        pid = os.fork()
        if pid == 0:
            _supervise(layout, overrides, config, log)
        os.close(log)
        _wait_for(_Child(pid), layout, held)
        return pid


class _Child:
    """A forked process that nobody else waits for. `code`: None while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self, flags: int = os.WNOHANG) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, flags)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def end(self) -> None:
        """SIGTERM, which ends a supervisor in order; returns when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            self.poll(0)


def _wait_for(child: _Child, layout: Layout, held: received_signals.HeldSignals) -> None:
    """Until it supervises the run. An interrupt ends it in order; it may have started agents."""
    deadline = time.monotonic() + BEGIN_SECONDS
    while _shown_by(layout) != child.pid and child.poll() != 0:
        problem = disk_problem_of(layout.root)
        late = bool(problem) or time.monotonic() > deadline
        if late and not problem and holder(layout.lock) == child.pid:
            break  # it has the run, and reads a long journal
        if child.code is not None or late or held.came:
            child.end()
            held.check()
            last = problem or layout.log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise CoralError(f"cannot supervise in the background: {last or 'no word from it'}", f"see {layout.log}")
        time.sleep(0.01)


def _shown_by(layout: Layout) -> int | None:
    """The pid of the supervisor that wrote the run's status: it does so when it has begun."""
    try:
        found = parse_object(read_bytes(layout.status)).get("pid")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, int) else None


def _supervise(layout: Layout, overrides: tuple[str, ...], config: Config | None, log: int) -> NoReturn:
    """What the child does until its end, which is not that of the command that it was forked from."""
    code = 1
    try:
        _leave(layout, log)
        from coral.supervisor.loop import supervise_detached

        code = supervise_detached(layout, overrides, config)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        _flush()
        os._exit(code)


def _leave(layout: Layout, log: int) -> None:
    """Keep nothing of the terminal, nor of what this process was given: a pipe that stays open in the background keeps
    its reader waiting. What this interpreter opened itself is not inheritable, and stays."""
    os.setsid()
    os.chdir(layout.root)
    given = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - names alone
    for descriptor in given:
        with contextlib.suppress(OSError):  # that of the listing itself is closed by now
            if descriptor > 2 and os.get_inheritable(descriptor):
                os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, number)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as it is where whoever started us had closed it
            stream.flush()
