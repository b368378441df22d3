"""Processes: started in a session of their own behind a gate, known by more than their pid, ended with all they left.

No other module starts, signals or looks for a process of an agent or a grader. A signal goes only to a process whose
pid and start time were written down when it was started, or that carries its launch's tag.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

import psutil

TAG = "CORAL_LAUNCH"
GATE_CLOSED = 125
_PROC = Path("/proc")
# Waits for a line, then becomes the program. An end of file instead means that the supervisor died before it had
# written down whom it started: then nothing was started.
_GATE = f'IFS= read -r go || exit {GATE_CLOSED}; exec "$@" <"$0"'


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, not a pid: `started` is its start time in the kernel's ticks, `boot` the machine's current boot."""

    pid: int
    started: int
    boot: str


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: arguments, the whole environment, the folder, and the files for its three streams."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdin: Path
    stdout: Path
    stderr: Path
    tag: str


class Held:
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


def start(program: Program) -> Held:
    """Start a program up to its gate. OSError where that is not possible."""
    reading, gate = os.pipe()
    try:
        with _to_write(program.stdout) as out, _to_write(program.stderr) as err:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, str(program.stdin), *program.argv],
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
    return Held(child, gate, identity)


def _to_write(path: Path) -> BinaryIO:
    """A file to add to. Whatever else lies in its place makes way: a pipe would hold us, a link lead elsewhere."""
    with contextlib.suppress(FileNotFoundError):
        if not S_ISREG(path.lstat().st_mode):
            path.rename(path.with_name(f".{path.name}.foreign-{time.time_ns()}"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o644), "ab")


def rearm_interrupts() -> None:
    """Children must not inherit an ignored SIGINT or SIGTERM (`nohup`, `sh -c 'coral start &'`): a signal with a
    handler is reset to its default when a program starts, an ignored one stays ignored for good."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, signal.default_int_handler)


def identify(pid: int) -> Identity | None:
    """Who has this pid now; None if nobody, or only a zombie."""
    if _PROC.joinpath("self").exists():
        found = _stat(pid)
        return None if found is None else Identity(pid, found.started, _boot())
    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return Identity(pid, int(process.create_time() * 100), _boot()) if alive else None
    except psutil.Error:
        return None


def is_alive(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def interrupt(identity: Identity) -> None:
    """SIGINT for the launch's process group, as a terminal would send it."""
    if is_alive(identity):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(identity.pid, signal.SIGINT)


def terminate(identity: Identity, tag: str) -> None:
    """SIGTERM for everything the launch started."""
    _signal_all(members(identity, tag), signal.SIGTERM)


def kill(identity: Identity, tag: str) -> None:
    """SIGKILL for everything the launch started; again for what was started meanwhile."""
    for _ in range(3):
        found = members(identity, tag)
        _signal_all(found, signal.SIGKILL)
        if not found:
            return


def members(identity: Identity, tag: str) -> list[Identity]:
    """Every living process of a launch: its group, its session, its descendants, and whoever carries its tag."""
    if identity.boot != _boot():
        return []
    table = _table()
    leader = table.get(identity.pid)
    led = leader is not None and leader.started == identity.started
    mine = {identity.pid} if led else set()
    for pid, each in table.items():
        # The group's number is not given to anybody else while one process of the group lives, unless all of them
        # had ended before: then a newer leader has it.
        of_group = identity.pid in (each.group, each.session) and (led or leader is None)
        if each.started >= identity.started and (of_group or _carries(pid, tag)):
            mine.add(pid)
    children: dict[int, list[int]] = {}
    for pid, each in table.items():
        children.setdefault(each.parent, []).append(pid)
    ahead = list(mine)
    while ahead:
        for pid in children.get(ahead.pop(), ()):
            if pid not in mine:
                mine.add(pid)
                ahead.append(pid)
    return [Identity(pid, table[pid].started, identity.boot) for pid in mine if pid != os.getpid()]


@dataclass(frozen=True, slots=True)
class _Stat:
    parent: int
    group: int
    session: int
    started: int


def _signal_all(processes: Sequence[Identity], number: signal.Signals) -> None:
    for each in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not hasattr(os, "pidfd_open"):
                if is_alive(each):
                    os.kill(each.pid, number)
                continue
            handle = os.pidfd_open(each.pid)
            try:
                # The handle stays with this process whatever happens to the number; look only after taking it.
                if is_alive(each):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def _table() -> dict[int, _Stat]:
    if not _PROC.joinpath("self").exists():
        return _portable_table()
    found = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - thousands of entries, once per exit
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            found[int(name)] = stat
    return found


def _stat(pid: int) -> _Stat | None:
    """A process as the kernel tells it; None if it is gone or a zombie."""
    # Without pathlib: every process of the machine is read at every exit, and a path costs more than the reading.
    try:
        file = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    # The name in parentheses may hold anything, parentheses and spaces too: split after the last one.
    part = raw[raw.rfind(b")") + 2 :].split()
    if part[0] in (b"Z", b"X", b"x"):
        return None
    return _Stat(parent=int(part[1]), group=int(part[2]), session=int(part[3]), started=int(part[19]))


def _portable_table() -> dict[int, _Stat]:
    found = {}
    for process in psutil.process_iter(["ppid", "create_time", "status"]):
        if process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        with contextlib.suppress(OSError):
            started = int((process.info["create_time"] or 0) * 100)
            group, session = os.getpgid(process.pid), os.getsid(process.pid)
            found[process.pid] = _Stat(process.info["ppid"] or 0, group, session, started)
    return found


def _carries(pid: int, tag: str) -> bool:
    wanted = f"{TAG}={tag}"
    if _PROC.joinpath("self").exists():
        try:
            return wanted.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
    try:
        return bool(psutil.Process(pid).environ().get(TAG) == tag)
    except (psutil.Error, OSError):
        return False


@cache
def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(int(psutil.boot_time()))
