"""Supervises a run in the background: in a child of this process that leaves the terminal and outlives it.

The child is forked and starts no new interpreter, so that it need not import again what this process has imported: that
would take longer than everything else that a supervisor does before it starts agents.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from attempts.files import make_way, parse_object, read_bytes
from coral.config.load import Config
from coral.errors import CoralError
from coral.processes import received_signals
from coral.supervisor.lock import holder
from workspace.disk import disk_problem_of
from workspace.layout import Layout

BEGIN_SECONDS = 20.0

Begin = Callable[[], object]


def detach(
    layout: Layout, overrides: tuple[str, ...] = (), config: Config | None = None, begin: Begin = lambda: None
) -> int:
    """Supervise the run in a child process that continues when this terminal is closed. Return the pid of the child
    once it supervises. `overrides`, `config`, `begin`: as for `supervise`.

    CoralError if it cannot, with the last line of its log, or with what is wrong with the disk. This process must have
    no other threads: a lock that one of them held would stay locked in the child.
    """
    with received_signals.hold() as held:
        held.check()
        make_way(layout.log)
        log = os.open(layout.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        _flush()  # or the child would print it again
        pid = os.fork()
        if pid == 0:
            _supervise(layout, overrides, config, begin, log)
        os.close(log)
        _wait_for(_Child(pid), layout, held)
        return pid


class _Child:
    """A forked child of this process, which waits for it. `code`: its exit code; None while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self, flags: int = os.WNOHANG) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, flags)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def end(self) -> None:
        """Send SIGTERM, at which a supervisor ends in order, and wait for its end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            self.poll(0)


def _wait_for(child: _Child, layout: Layout, held: received_signals.HeldSignals) -> None:
    """Wait until the child supervises the run. An interrupt ends the child in order, because it may have started
    agents."""
    deadline = time.monotonic() + BEGIN_SECONDS
    while shown_supervisor(layout) != child.pid and child.poll() != 0:
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


def shown_supervisor(layout: Layout) -> int | None:
    """Return the pid in the run's status, which a supervisor writes when it has begun; None if there is none."""
    try:
        found = parse_object(read_bytes(layout.status)).get("pid")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, int) else None


def _supervise(layout: Layout, overrides: tuple[str, ...], config: Config | None, begin: Begin, log: int) -> NoReturn:
    """Supervise in the child, and exit: the child never returns into the command that it was forked from."""
    code = 1
    try:
        _leave(layout, log)
        from coral.supervisor.loop import supervise_detached

        code = supervise_detached(layout, overrides, config, begin)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        _flush()
        os._exit(code)


def _leave(layout: Layout, log: int) -> None:
    """Leave the terminal, and close the files that this process inherited: a pipe that stays open would keep its reader
    waiting. Files that this interpreter opened are not inheritable, and stay open."""
    os.setsid()
    os.chdir(layout.root)
    given = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - names alone
    for descriptor in given:
        with contextlib.suppress(OSError):  # the listing's own is closed already
            if descriptor > 2 and os.get_inheritable(descriptor):
                os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, number)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if it was closed when this process started
            stream.flush()
