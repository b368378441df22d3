"""rich, set up once: colour for people, plain columns for pipes, and no foreign text read as markup."""

import os
import sys

from rich.console import Console
from rich.text import Text

PIPE_WIDTH = 160  # a pipe has no width; rich would fold everything at 80
TONES = {
    "improved": "green",
    "tied": "yellow",
    "regressed": "default",
    "failed": "red",
    "void": "magenta",
    "running": "green",
    "stopping": "yellow",
    "left": "yellow",
    "dead": "red",
    "retired": "dim",
    "parked": "yellow",
}


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """rich would exit with 1, but a reader that left, as in `coral log | head`, is no failure."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output. Its width is the terminal's, or that of $COLUMNS."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return _Screen(highlight=False, markup=False, emoji=False, soft_wrap=False, width=width)


def tone(word: str) -> Text:
    """A verdict or a state in its colour."""
    return Text(word, style=TONES.get(word, "default"))


def dim(text: str) -> Text:
    return Text(text, style="dim")
