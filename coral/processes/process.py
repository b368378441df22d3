"""Starts processes in a session of their own, blocked until the supervisor has recorded them, and sends them signals.

No other module starts or signals a process of an agent or a grader. A signal goes only to a process whose pid and start
time were recorded when it was started, or that belongs to its launch (see `process_tree`).
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISBLK, S_ISCHR, S_ISREG
from typing import BinaryIO

from coral.processes import cgroup, namespaces, rlimit_tag, usage
from coral.processes.call_filter import filtered
from coral.processes.own_user import end_user
from coral.processes.process_tree import TAG, Identity, ProcessTable, identify, is_alive, members
from coral.processes.result_channel import ResultChannel
from workspace.plain_file import give_like

NEVER_RELEASED = 125
KILL_SECONDS = 5.0  # to wait for a killed process; one in the kernel's hands may take longer
_GONE_SECONDS = 0.002  # between two looks whether killed processes are gone
# Reads a line from a pipe, then becomes the program. An end of file instead means that the supervisor died before it
# had recorded the process: then the program does not start. The child enters its control group by itself, for the
# kernel may take its time over that.
_ENTER = f'if [ "$1" ]; then {cgroup.ENTER}; fi 2>/dev/null; shift'
_WAIT = f"{_ENTER}; IFS= read -r go || exit {NEVER_RELEASED}"
_EXEC = f'{_WAIT}; exec "$@" <"$0"'
# Stays beside the program, whatever signal the two are sent, and writes its exit code to a file: a later supervisor is
# not its parent and cannot wait for it. What the shell itself prints about the end goes nowhere.
_KEEP = (
    f'{_WAIT}; trap : INT TERM HUP; exec 3>&2 2>/dev/null; (shift; exec "$@" <"$0" 2>&3 3>&-); '
    'set -- "$1" $?; echo "$2" >"$1"; exit "$2"'
)


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: arguments, the whole environment, the folder, and the files for its three streams. `tag`: names
    the launch, in every process of it. `group`: its control group, or "". `code`: the file for the exit code, as a
    shell reports it. `sealed`: the arguments start a sandbox that starts the program; `calls`: a filter of system calls
    for that sandbox. `user`: the number of its own user, 0 if it has none."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdin: Path
    stdout: Path
    stderr: Path
    tag: str
    group: str = ""
    code: Path | None = None
    sealed: bool = False
    calls: bytes = b""
    user: int = 0


class HeldChild:
    """A child that is blocked on a pipe until it is released."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        pipe: int,
        identity: Identity,
        word: str = "go",
        channel: ResultChannel | None = None,
    ) -> None:
        """`word`: the line that it waits for. `channel`: by which it hands over its result, if it does."""
        self.channel = channel
        self.child = child
        self.identity = identity
        self._pipe = pipe
        self._word = word

    def release(self) -> None:
        # A child that was killed while it was blocked is found by its exit, like any other.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, f"{self._word}\n".encode())
        os.close(self._pipe)

    def abandon(self) -> None:
        """Never start the program: the child exits by itself. Waits for that."""
        os.close(self._pipe)
        self.child.wait()
        if self.channel is not None:
            self.channel.close()


def start(program: Program) -> HeldChild:
    """Start a child that becomes the program when it is released. OSError where that is not possible."""
    reading, pipe = os.pipe()
    script, code = (_EXEC, []) if program.code is None else (_KEEP, [str(program.code)])
    try:
        with (
            open_output(program.stdout) as out,
            open_output(program.stderr) as err,
            filtered(program.argv, program.calls) as (argv, given),
        ):
            child = subprocess.Popen(
                ["/bin/sh", "-c", script, str(program.stdin), program.group, *code, *argv],
                stdin=reading,
                stdout=out,
                stderr=err,
                cwd=program.cwd,
                env={**program.env, TAG: program.tag, "PWD": str(program.cwd)},
                start_new_session=True,
                pass_fds=given,
            )
    except BaseException:  # also a text that cannot be an argument: whatever it is, the pipe must not stay open
        os.close(pipe)
        raise
    finally:
        os.close(reading)
    try:
        identity, why = identify(child.pid), "it ended before it could be identified"
    except OSError as error:
        identity, why = None, f"it cannot be identified: {error.strerror}"
    if identity is None:
        os.close(pipe)
        child.wait()
        raise OSError(why)
    rlimit_tag.put(child.pid, program.tag)
    usage.end_first(child.pid, usage.AGENT)
    identity = replace(identity, group=program.group, sealed=program.sealed, user=program.user)
    return HeldChild(child, pipe, identity)


def wait(child: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Return the exit code of a child as soon as it has ended; None if it has not after `seconds`. Faster than
    `Popen.wait` with a timeout, which polls, in the end every 50 ms."""
    with contextlib.suppress(AttributeError, OSError):  # where the system has no such handle
        handle = os.pidfd_open(child.pid)
        try:
            with selectors.DefaultSelector() as ends:
                ends.register(handle, selectors.EVENT_READ)
                ends.select(max(seconds, 0.0))
        finally:
            os.close(handle)
        return child.poll()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(seconds)
    return None


def open_output(path: Path) -> BinaryIO:
    """Open a file to append to. Anything else that lies in its place is renamed: a pipe would block us, a link would
    lead elsewhere. Devices stay: they belong to the system. OSError where its folder is a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
            if not (S_ISREG(mode) or S_ISCHR(mode) or S_ISBLK(mode)):
                kept = f".{path.name}.foreign-{time.time_ns()}"
                os.rename(path.name, kept, src_dir_fd=folder, dst_dir_fd=folder)
        file = os.fdopen(os.open(path.name, flags, 0o600, dir_fd=folder), "ab")
        if S_ISREG(os.fstat(file.fileno()).st_mode):
            give_like(file.fileno(), folder)
        return file
    finally:
        os.close(folder)


def rearm_interrupts() -> None:
    """Install handlers for SIGINT and SIGTERM if these are ignored, as after `nohup` or `sh -c 'coral start &'`.
    Children would inherit an ignored signal for good; a handled one is reset to its default when their program
    starts."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, signal.default_int_handler)


def interrupt(identity: Identity) -> None:
    """Send SIGINT to the process group of a launch, as a terminal would. The program of a sealed launch has a group of
    its own inside the sandbox: SIGINT goes to that group if it is ready for signals, else to the sandbox itself."""
    if is_alive(identity):
        group = namespaces.ready_init(identity.pid) if identity.sealed else None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group or identity.pid, signal.SIGINT)


def terminate(identity: Identity, tag: str, table: ProcessTable | None = None) -> None:
    """Send SIGTERM to every process of the launch. Of a sealed launch, only to those inside the sandbox, which ends
    with them. `table`: one that has seen these processes before, and knows those that have removed their tags since."""
    found = members(identity, tag, table)
    inside = [process for process in found if namespaces.is_inside(process.pid)] if identity.sealed else []
    _signal_all(inside or found, signal.SIGTERM)


def end_supervisor(pid: int) -> None:
    """Send SIGTERM to a supervisor, whose pid was read as the holder of its run's lock. OSError where that is not
    possible."""
    os.kill(pid, signal.SIGTERM)


def kill(identity: Identity, tag: str, table: ProcessTable | None = None) -> None:
    """Send SIGKILL to every process of the launch, and to those started meanwhile. `table`: as for `terminate`."""
    cgroup.kill(identity.group)
    if identity.user and not (table and table.others_of_user(identity)):
        end_user(identity.user)
    for _ in range(3):
        found = members(identity, tag, table)
        _signal_all(found, signal.SIGKILL)
        if not found:
            return


def kill_and_wait(identity: Identity, tag: str, table: ProcessTable | None = None) -> None:
    """Kill every process of a launch, and wait until they have ended, for at most KILL_SECONDS: one that waits for a
    disk ends only when the disk answers."""
    deadline = time.monotonic() + KILL_SECONDS
    kill(identity, tag, table)
    while members(identity, tag, table) and time.monotonic() < deadline:
        time.sleep(_GONE_SECONDS)
        kill(identity, tag, table)


def _signal_all(processes: Sequence[Identity], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not hasattr(os, "pidfd_open"):
                if is_alive(process):
                    os.kill(process.pid, number)
                continue
            handle = os.pidfd_open(process.pid)
            try:
                # The handle refers to one process even if its pid is given away: check the identity after opening it.
                if is_alive(process):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
