"""A machine that runs out of something, for a moment: really, and in this process alone."""

import contextlib
import resource
import threading
from collections.abc import Iterator

TOO_LARGE = 1 << 60  # bytes of a stack: no address space has room for them, however much memory may be promised


@contextlib.contextmanager
def no_more_threads() -> Iterator[None]:
    """Let the system start no thread in the context, as where a user has as many processes as allowed."""
    before = threading.stack_size(TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(before)


def no_more_descriptors() -> contextlib.AbstractContextManager[None]:
    """Let this process open no file in the context; files that are open stay so."""
    return _nothing_of(resource.RLIMIT_NOFILE)


def full_disk() -> contextlib.AbstractContextManager[None]:
    """Let this process write nothing to a file in the context."""
    return _nothing_of(resource.RLIMIT_FSIZE)


@contextlib.contextmanager
def _nothing_of(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(limit, (soft, hard))
