"""The step that long work is at: a line that changes on a terminal, one line per step anywhere else."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Shows one step at a time; what is yielded takes the name of the step that begins now."""
    if not sys.stderr.isatty():
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    from rich.console import Console  # only here: a pipe does without
    from rich.status import Status

    with Status("", console=Console(stderr=True, highlight=False, markup=False)) as line:
        yield line.update
