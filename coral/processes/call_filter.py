"""Gives bubblewrap a filter of system calls, which it reads from a descriptor.

The program that Landlock restricts has its filter in its arguments.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence

_FREE = 10  # the shells before the sandbox use no descriptor from this number on


@contextlib.contextmanager
def filtered(argv: Sequence[str], calls: bytes) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Add the filter `calls` to arguments that start bubblewrap; yields the new arguments and the descriptors that its
    process must inherit. With an empty filter, the arguments as they are."""
    if not calls:
        yield list(argv), ()
        return
    memory = os.memfd_create("calls", os.MFD_CLOEXEC)
    try:
        os.write(memory, calls)
        os.lseek(memory, 0, os.SEEK_SET)
        given = fcntl.fcntl(memory, fcntl.F_DUPFD_CLOEXEC, _FREE)
    finally:
        os.close(memory)
    try:
        yield [argv[0], "--seccomp", str(given), *argv[1:]], (given,)
    finally:
        os.close(given)
