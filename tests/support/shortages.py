"""A machine that runs out of something, for a moment: really, and in this process alone."""

import contextlib
import resource
import threading
from collections.abc import Iterator

TOO_LARGE = 1 << 60  # bytes of a stack: no address space has room for them, however much memory may be promised


@contextlib.contextmanager
def no_more_threads() -> Iterator[None]:
    """The system starts no thread meanwhile, as where a user has as many processes as allowed."""
    before = threading.stack_size(TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(before)


@contextlib.contextmanager
def no_more_descriptors() -> Iterator[None]:
    """This process opens no file meanwhile; those that are open stay so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
