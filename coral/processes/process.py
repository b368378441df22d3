"""Processes: started in a session of their own behind a gate, known by more than their pid, ended with all they left.

No other module starts or signals a process of an agent or a grader. A signal goes only to a process whose
pid and start time were written down when it was started, or that belongs to its launch (see `census`).
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISBLK, S_ISCHR, S_ISREG
from typing import BinaryIO

from coral.processes import cgroup, rlimit_tag
from coral.processes.process_table import TAG, Identity, identify, is_alive, members

NEVER_RELEASED = 125
# Waits for a line, then becomes the program. An end of file instead means that the supervisor died before it had
# written down whom it started: then nothing was started. It enters its control group by itself: the kernel may take its
# time over that.
_ENTER = f'if [ "$1" ]; then {cgroup.ENTER}; fi 2>/dev/null; shift'
_WAIT = f"{_ENTER}; IFS= read -r go || exit {NEVER_RELEASED}"
_GATE = f'{_WAIT}; exec "$@" <"$0"'
# Stays beside the program, whatever signal the two are sent, and writes down with which code it ended: for whoever
# was not its parent when it did. What the shell itself says of it goes nowhere.
_KEEP = (
    f'{_WAIT}; trap : INT TERM HUP; exec 3>&2 2>/dev/null; (shift; exec "$@" <"$0" 2>&3 3>&-); '
    'set -- "$1" $?; echo "$2" >"$1"; exit "$2"'
)


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: arguments, the whole environment, the folder, and the files for its three streams. `tag` names
    the launch in all that comes of it; `group` is its control group, where there is one; into the file `code` its exit
    code is written, as a shell tells it."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdin: Path
    stdout: Path
    stderr: Path
    tag: str
    group: str = ""
    code: Path | None = None


class HeldChild:
    """A child that waits at its gate."""

    def __init__(self, child: "subprocess.Popen[bytes]", gate: int, identity: Identity) -> None:
        self.child = child
        self.identity = identity
        self._gate = gate

    def release(self) -> None:
        # A child that was killed while it waited is found by its exit, like any other.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._gate, b"go\n")
        os.close(self._gate)

    def abandon(self) -> None:
        """Never let it go: it exits by itself."""
        os.close(self._gate)
        self.child.wait()


def start(program: Program) -> HeldChild:
    """Start a program up to its gate. OSError where that is not possible."""
    reading, gate = os.pipe()
    script, place = (_GATE, []) if program.code is None else (_KEEP, [str(program.code)])
    try:
        with _to_write(program.stdout) as out, _to_write(program.stderr) as err:
            child = subprocess.Popen(
                ["/bin/sh", "-c", script, str(program.stdin), program.group, *place, *program.argv],
                stdin=reading,
                stdout=out,
                stderr=err,
                cwd=program.cwd,
                env={**program.env, TAG: program.tag, "PWD": str(program.cwd)},
                start_new_session=True,
            )
    except BaseException:  # also a text that cannot be an argument: whatever it is, the gate must not stay open
        os.close(gate)
        raise
    finally:
        os.close(reading)
    identity = identify(child.pid)
    if identity is None:
        os.close(gate)
        child.wait()
        raise OSError("it ended before it could be identified")
    rlimit_tag.put(child.pid, program.tag)
    return HeldChild(child, gate, replace(identity, group=program.group))


def _to_write(path: Path) -> BinaryIO:
    """A file to add to. Whatever else lies in its place makes way: a pipe would hold us, a link lead elsewhere. Only a
    device does not: it belongs to the system."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not (S_ISREG(mode) or S_ISCHR(mode) or S_ISBLK(mode)):
            path.rename(path.with_name(f".{path.name}.foreign-{time.time_ns()}"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o644), "ab")


def rearm_interrupts() -> None:
    """Children must not inherit an ignored SIGINT or SIGTERM (`nohup`, `sh -c 'coral start &'`): a signal with a
    handler is reset to its default when a program starts, an ignored one stays ignored for good."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, signal.default_int_handler)


def interrupt(identity: Identity) -> None:
    """SIGINT for the launch's process group, as a terminal would send it."""
    if is_alive(identity):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(identity.pid, signal.SIGINT)


def terminate(identity: Identity, tag: str) -> None:
    """SIGTERM for everything the launch started."""
    _signal_all(members(identity, tag), signal.SIGTERM)


def end_supervisor(pid: int) -> None:
    """SIGTERM for the one process that is known by something else: it holds its run's lock. OSError if it cannot be."""
    os.kill(pid, signal.SIGTERM)


def kill(identity: Identity, tag: str) -> None:
    """SIGKILL for everything the launch started; again for what was started meanwhile."""
    cgroup.kill(identity.group)
    for _ in range(3):
        found = members(identity, tag)
        _signal_all(found, signal.SIGKILL)
        if not found:
            return


def _signal_all(processes: Sequence[Identity], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not hasattr(os, "pidfd_open"):
                if is_alive(process):
                    os.kill(process.pid, number)
                continue
            handle = os.pidfd_open(process.pid)
            try:
                # The handle stays with this process whatever happens to the number; look only after taking it.
                if is_alive(process):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
