"""Restricts this process, and all that it starts, to the files that a view names. Landlock, a part of Linux, enforces
that; no privilege is needed. Or makes this process run as a user of its own, for which it must be root.

`landlock.py RULES PROGRAM...` restricts itself and becomes the program. RULES are those of
`coral.grader.sandbox`, marshalled, in hexadecimal: to import json takes as long as all the rest.
Standard library only.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import struct
import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this to run
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, with these numbers on every machine
_NO_NEW_PRIVILEGES, _DROP, _SECCOMP, _DUMPABLE = 38, 24, 22, 4  # options of prctl
_STARTER_SOCKET = 3
_LIST, _READ = 0b1000, 0b1101  # list a folder; that, execute and read a file
_OF_FILES = 0b111 | 1 << 14 | 1 << 15  # rights that a file can have: execute, write, read, truncate, control a device
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many a version of Landlock knows; 16 from the fifth on
_NETWORK, _SCOPES = 0b11, 0b11  # bind and connect by TCP; abstract sockets and signals of other processes


def version() -> int:
    """Return the version of the kernel's Landlock; less than 1 if the kernel has none."""
    return int(ctypes.CDLL(None).syscall(_CREATE, None, 0, 1))


def restrict(view: Mapping[str, str], network: bool) -> None:
    """Restrict this process to the view. The view maps paths to `read`, `write`, `hidden` or `private`; the process
    cannot open what is hidden or private. An access holds for everything below its path, except paths that have an
    access of their own. Paths outside the view can be read. If something in a folder is hidden, the folder can be
    listed only if the view names it; then the names of what is hidden can be listed too. Every capability is given
    up. OSError if the kernel cannot do it."""
    libc, known = ctypes.CDLL(None, use_errno=True), version()
    if known < 1:
        raise OSError("there is no Landlock")
    rights = (1 << _RIGHTS.get(known, 16)) - 1
    fields = [rights, 0 if network else _NETWORK, _SCOPES][: 3 if known >= 6 else 2 if known >= 4 else 1]
    ruleset = libc.syscall(_CREATE, struct.pack(f"={len(fields)}Q", *fields), 8 * len(fields), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "cannot make rules")
    for path, access in _rules(view):
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = rights & {"list": _LIST, "read": _READ}.get(access, rights)
        allowed &= rights if os.path.isdir(path) else _OF_FILES  # noqa: PTH112 - pathlib is slow to import
        libc.syscall(_ADD, ruleset, 1, struct.pack("=Qi", allowed, handle), 0)
        os.close(handle)
    for capability in range(64):
        libc.prctl(_DROP, capability, 0, 0, 0)
    header, nothing = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    steps = (libc.capset(header, nothing), libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if any(steps) or libc.syscall(_RESTRICT, ruleset, 0):
        raise OSError(ctypes.get_errno(), "cannot restrict itself")
    os.close(ruleset)


def become(user: int, groups: Sequence[int], umask: int) -> None:
    """Make this process run as a user, whose own group has the same number, for good. OSError if it may not, or if the
    user cannot reach the current folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_DROP, capability, 0, 0, 0)
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)  # this takes the capabilities as well
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up privileges")
    # Root entered this folder. Below one that is closed to this user, relative paths would lead past what closes it.
    os.chdir(os.getcwd())  # noqa: PTH109 - pathlib is slow to import
    os.umask(umask)


def add_starter(rules: Mapping[str, Any]) -> None:
    """Start `coral.grader.starter` beside this process, which is still root's, and put the number of the socket that it
    listens to into the environment, as CORAL_STARTER."""
    import _socket
    import fcntl

    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        become_starter(rules, theirs.fileno())
    theirs.close()
    # A high number: shells use the low ones.
    os.environ["CORAL_STARTER"] = str(fcntl.fcntl(ours.detach(), fcntl.F_DUPFD, 10))


def become_starter(rules: Mapping[str, Any], socket: int) -> None:
    """Serve as the starter until its grader has ended, then end this process. All descriptors but `socket` are
    closed."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.dup2(socket, _STARTER_SOCKET, inheritable=False)
        os.closerange(_STARTER_SOCKET + 1, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")
        become(*rules["user"])
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)  # its candidates must not look into it
        refuse_calls(bytes.fromhex(rules["calls"]))
        space: dict[str, Any] = {"__name__": "starter"}
        with open(rules["source"], encoding="utf-8") as file:
            exec(compile(file.read(), "starter.py", "exec"), space)
        space["serve"](_STARTER_SOCKET, rules["place"])
    finally:
        os._exit(0)


def refuse_calls(filter: bytes) -> None:
    """Have the kernel refuse system calls by a filter, see `coral.grader.sandbox.system_calls`. An empty filter refuses
    none."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    if filter and ctypes.CDLL(None).prctl(_SECCOMP, 2, ctypes.byref(Program(len(filter) // 8, filter)), 0, 0):
        raise OSError("cannot filter its system calls")


def _rules(view: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the paths that get a rule, with their access. Rules can only allow: a folder in which something is hidden
    gets none, but each entry beside what is hidden does."""
    hidden = [path for path, access in view.items() if access in ("hidden", "private")]
    for path, access in {"/": "read", **view}.items():
        if access in ("read", "write"):
            if path in view:
                yield path, "list"
            yield from ((shown, access) for shown in _beside(path, hidden, view))


def _beside(path: str, hidden: Sequence[str], view: Mapping[str, str]) -> Iterator[str]:
    inside = path.rstrip("/") + "/"
    if not any(other.startswith(inside) for other in hidden):
        yield path
        return
    try:
        with os.scandir(path) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        # A rule follows a link, which may lead to what is hidden. What it leads to is reached by its own path.
        if entry.path not in view and not entry.is_symlink():
            yield from _beside(entry.path, hidden, view)


def main() -> None:
    # What `signal` is made of, without its names, which take 9 ms to import.
    import _signal  # type: ignore[import-not-found]

    for number in (_signal.SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):  # Python has changed what they do
        _signal.signal(number, _signal.SIG_DFL)
    rules, argv = marshal.loads(bytes.fromhex(sys.argv[1])), sys.argv[2:]
    if "socket" in rules:
        become_starter(rules["starter"], rules["socket"])
    if "starter" in rules:
        add_starter(rules["starter"])
    if "user" in rules:
        become(*rules["user"])
    else:
        restrict(rules["view"], rules["network"])
    refuse_calls(bytes.fromhex(rules["calls"]))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"cannot start {argv[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
