"""Shows the current step of long work: in one changing line on a terminal, in one line for each step anywhere else."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Give a function that takes the name of the step that begins now, and shows it in place of the step before."""
    if not sys.stderr.isatty():
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    from rich.console import Console  # only here: a pipe does without
    from rich.status import Status

    with Status("", console=Console(stderr=True, highlight=False, markup=False)) as line:
        yield line.update
