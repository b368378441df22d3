"""Gives bubblewrap a filter of system calls, which it reads from a descriptor. Landlock's program has its own in its
arguments."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence

_FREE = 10  # the first descriptor that the shells before the sandbox use for nothing by its number


@contextlib.contextmanager
def filtered(argv: Sequence[str], calls: bytes) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The arguments, which start bubblewrap, with the filter, and the descriptors that its process must be given. An
    empty filter changes nothing."""
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
