"""Processes in a pid namespace below ours: that of a sealed program, whose process 1 gets the launch's signals."""

import signal
from pathlib import Path

_PROC = Path("/proc")
_DEPTH = 3  # from a launch's first process to the process 1 of its sandbox: a job has a shell in between
_BY_SIGNAL = 128  # and the number of the signal: how process 1, a shell, reports a program that a signal ended


def ready_init(pid: int) -> int | None:
    """The process 1 below this process, as seen from here, once a SIGINT for its process group reaches the program:
    it leads the group, would outlive the signal, and has started the program. None before that."""
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
    """Whether a child of process 1 has become the program: until then it is a copy of that shell, whose trap would
    swallow the signal."""
    own = _arguments(init)
    return any(_arguments(child) not in (own, b"") for child in _children(init))


def _arguments(pid: int) -> bytes:
    try:
        return (_PROC / f"{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_inside(pid: int) -> bool:
    """Whether a process is in a pid namespace below ours."""
    return len(_status(pid).get("NSpid", "").split()) > 1


def code_of_program(code: int) -> int:
    """The exit code as Popen would give it of the program itself: negative if a signal ended it."""
    return _BY_SIGNAL - code if _BY_SIGNAL < code <= _BY_SIGNAL + signal.NSIG else code


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in (_PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _status(pid: int) -> dict[str, str]:
    try:
        lines = (_PROC / f"{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
