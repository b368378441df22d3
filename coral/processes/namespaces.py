"""Processes in a pid namespace below ours: that of a sealed program, where process 1 receives the launch's signals."""

import signal
from pathlib import Path

_PROC = Path("/proc")
_DEPTH = 3  # from a launch's first process to the process 1 of its sandbox: a job has a shell in between
_BY_SIGNAL = 128  # and the number of the signal: how process 1, a shell, reports a program that a signal ended


def ready_init(pid: int) -> int | None:
    """Return the pid, in our namespace, of process 1 of the sandbox that this process started. None while a SIGINT to
    its process group would not reach the program: until process 1 leads the group, has a handler for SIGINT, and has
    started the program."""
    for _ in range(_DEPTH):
        children = _children(pid)
        if len(children) != 1:
            return None
        (pid,) = children
        status = _status(pid)
        if status.get("NSpid", "").split()[1:] == ["1"]:
            leads = status.get("NSpgid", "").split()[-1:] == ["1"]
            outlives = int(status.get("SigCgt", "0"), 16) >> (signal.SIGINT - 1) & 1
            return pid if leads and outlives and _has_started(pid) else None
    return None


def _has_started(init: int) -> bool:
    """Return whether a child of process 1 has become the program. Until then the child is a copy of that shell with its
    signal handler, so that a signal has no effect."""
    own = _arguments(init)
    return any(_arguments(child) not in (own, b"") for child in _children(init))


def _arguments(pid: int) -> bytes:
    try:
        return (_PROC / f"{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_inside(pid: int) -> bool:
    """Return whether a process is in a pid namespace below ours."""
    return len(_status(pid).get("NSpid", "").split()) > 1


def code_of_program(code: int) -> int:
    """Convert the exit code of process 1 to the one that Popen would give for the program: negative if a signal ended
    it."""
    return _BY_SIGNAL - code if _BY_SIGNAL < code <= _BY_SIGNAL + signal.NSIG else code


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in (_PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _status(pid: int) -> dict[str, str]:
    try:
        lines = (_PROC / f"{pid}/status").read_bytes().decode("latin-1").split("\n")  # a process may have any name
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
