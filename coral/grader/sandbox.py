"""Makes the command lines and rules that seal a candidate's program: it has no network, and sees neither the grader's
files, its environment nor any other process. Standard library only.

Levels, the strongest first: `bubblewrap` (namespaces of its own), `landlock` (no file but those named, no capabilities;
processes that it leaves are ended with the grade), `user` (a user of its own, other than the grader's), `none` (limits
of resources alone).
"""

import errno
import os
import platform
import shutil
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SEALED = ("bubblewrap", "landlock", "user")
LEVELS = (*SEALED, "none")
WORK = "/candidate"  # where bubblewrap shows the workspace: no folder in which an environment may lie
SPACE = 67_108_864  # bytes that a sealed program can write
OWN_USERS = range(0x7000_0000, 0x8000_0000)  # those of workspace.plain_file, which a grader cannot import
_ROOTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache", "localtime")


def levels() -> tuple[str, ...]:
    """Return the levels to try, the strongest first. In a sealed grader, `none` is not among them, and `bubblewrap`
    only if the grader has a user of its own."""
    outside = os.environ.get("CORAL_SEAL")
    skipped = {"user": ("none",), "bubblewrap": ("bubblewrap", "none"), "landlock": ("bubblewrap", "none")}
    return tuple(level for level in LEVELS if level not in skipped.get(outside or "", ()))


def prefixes() -> list[str]:
    """Return the folders outside /usr that this Python needs."""
    found = (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent))
    return list(dict.fromkeys(path for path in map(os.path.realpath, found) if not path.startswith("/usr/")))


def bubblewrap(workspace: Path, env: Mapping[str, str], filter: int) -> list[str]:
    """Return the words that come before the program, which gets the variables of `env` and no others. `filter`: a
    descriptor from which bwrap reads the filter of `calls_in_namespaces`."""
    line = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--cap-drop",
        "ALL",
        "--as-pid-1",
        "--die-with-parent",
        "--new-session",
    ]
    line += ["--clearenv", "--ro-bind", "/usr", "/usr"]
    line += ["--seccomp", str(filter)] if calls_in_namespaces() else []
    line += [word for name, value in env.items() for word in ("--setenv", name, value)]
    for path in (Path("/", name) for name in _ROOTS):
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    # /proc/sys must not be written to: root's files there stay root's, whatever capabilities are dropped.
    line += [
        "--dev",
        "/dev",
        "--size",
        str(SPACE),
        "--tmpfs",
        "/dev/shm",
        "--proc",
        "/proc",
        "--ro-bind",
        "/proc/sys",
        "/proc/sys",
    ]
    line += ["--size", str(SPACE), "--tmpfs", "/tmp"]
    for prefix in prefixes():
        line += ["--ro-bind", prefix, prefix]
    line += ["--ro-bind", str(workspace), WORK, "--chdir", WORK, "--remount-ro", "/dev", "--remount-ro", "/"]
    # The first process of the namespace ends it with the program, and takes care of those that it leaves.
    return [*line, "/bin/sh", "-c", 'trap : TERM; "$@"; exit $?', "init"]


def landlock_rules(view: Mapping[str, str], network: bool) -> dict[str, object]:
    """Return the rules by which `coral.grader.landlock` restricts a process to a view. Landlock itself can refuse TCP
    alone, so a filter of system calls refuses the rest of the network."""
    return {"view": dict(view), "network": network, "calls": system_calls(network=network).hex()}


def user_rules(number: int, groups: Sequence[int], umask: int, network: bool) -> dict[str, object]:
    """Return the rules by which `coral.grader.landlock` makes a process run as the user `number`."""
    return {"user": (number, tuple(groups), umask), "calls": system_calls(network=network).hex()}


def starter_rules(number: int, groups: Sequence[int], place: str) -> dict[str, object]:
    """Return the rules of the process that starts candidates as the user `number`. `place`: a folder of that user's."""
    source = str(Path(__file__).with_name("starter.py"))
    return {**user_rules(number, groups, 0o077, network=False), "place": place, "source": source}


# By the machine: its number; the calls of the kernel's keys; of System V's shared memory; `prlimit64` and `setrlimit`;
# `socket`.
_CALLS = {
    "x86_64": (0xC000003E, (248, 249, 250), (29, 64, 68), (302, 160), 41),
    "aarch64": (0xC00000B7, (217, 218, 219), (194, 190, 186), (261, 164), 198),
}
_IO_URING = 425  # its setup, on every machine: it makes sockets without a call
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of a filter
# The places of a call's arguments in what a filter looks at: 8 bytes each, the low ones first.
_FIRST_ARGUMENT, _SECOND, _THIRD = 16, 24, 32
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_MARK = 10  # RLIMIT_LOCKS, the limit by which the supervisor knows whose a process is
_AF_UNIX, _AF_VSOCK = 1, 40  # sockets of the file system; of the host of this virtual machine


def system_calls(machine: str = "", *, network: bool = True) -> bytes:
    """Return a seccomp filter, as bytes. It refuses system calls that Landlock does not refuse: those of the user's
    keyrings, of System V shared memory, of the limits of other processes, and of the own limit that is the mark of a
    launch, because the marks of others can be read; without `network`, also sockets but those of the file system. Empty
    for an unknown machine."""
    known = _CALLS.get(machine or platform.machine())
    if known is None:
        return b""
    number, keys, shared, limits, socket = known
    refused = (*keys, *shared) if network else (*keys, *shared, _IO_URING)
    own_limits, set_limit = limits
    return _filter(
        number, refused, () if network else ((socket, _AF_UNIX),), ((set_limit, _MARK),), _own_limits(own_limits)
    )


def calls_in_namespaces(machine: str = "", *, network: bool = True) -> bytes:
    """Return a seccomp filter, as bytes, against what no namespace separates: the user's keyrings; without `network`,
    also io_uring and sockets to the host of a virtual machine. Empty for an unknown machine."""
    known = _CALLS.get(machine or platform.machine())
    if known is None:
        return b""
    number, keys, *_, socket = known
    return _filter(number, keys, ()) if network else _filter(number, (*keys, _IO_URING), (), ((socket, _AF_VSOCK),))


def _filter(
    number: int,
    refused: Sequence[int],
    first_arguments: Sequence[tuple[int, int]],
    not_first: Sequence[tuple[int, int]] = (),
    more: Sequence[tuple[int, int, int, int]] = (),
) -> bytes:
    """Return a filter that refuses the calls `refused`; each call of `first_arguments` unless its first argument is the
    one beside it; each call of `not_first` if its first argument is the one beside it. `more`: further instructions.
    Programs made for another machine than `number` can make no call at all."""
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, number), (_RETURN, 0, 0, _UNKNOWN), (_LOAD, 0, 0, 0)]
    lines += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _UNKNOWN)]  # other numbers for the same calls
    for call in refused:
        lines += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE)]
    for call, allowed in first_arguments:
        lines += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 1, 0, allowed)]
        lines += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    for call, wrong in not_first:
        lines += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 0, 1, wrong)]
        lines += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    lines += [*more, (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _own_limits(call: int) -> list[tuple[int, int, int, int]]:
    """Return the instructions that refuse `prlimit64` for other processes, and with a new value for _MARK."""
    lines = [(_EQUAL, 0, 11, call), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)]
    lines += [(_LOAD, 0, 0, _SECOND), (_EQUAL, 1, 0, _MARK), (_RETURN, 0, 0, _ALLOW)]
    # The third argument is where the new value lies: nowhere, if the limit is only read.
    lines += [(_LOAD, 0, 0, _THIRD), (_EQUAL, 0, 2, 0), (_LOAD, 0, 0, _THIRD + 4), (_EQUAL, 1, 0, 0)]
    return [*lines, (_RETURN, 0, 0, _REFUSE)]
