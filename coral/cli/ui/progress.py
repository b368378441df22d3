"""The step that long work is at: a line that changes on a terminal, one line per step anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.status import Status


class Steps:
    """Shows one step at a time; `say` names the step that begins now."""

    def __init__(self) -> None:
        self._line = _line() if sys.stderr.isatty() else None

    def say(self, text: str) -> None:
        if self._line is not None:
            self._line.update(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._line is not None:
            self._line.stop()


def _line() -> Status:
    from rich.console import Console  # only here: a pipe does without
    from rich.status import Status

    return Status("", console=Console(stderr=True, highlight=False, markup=False))
