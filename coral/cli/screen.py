"""rich, set up once: colour for people, plain columns for pipes, and no text of others that is read as markup."""

from __future__ import annotations

import os
import sys

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.padding import Padding
from rich.text import Text

from coral.cli.words import clean

PIPE_WIDTH = 160  # a pipe has no width; rich would fold everything at 80
TONES = {
    "improved": "green",
    "tied": "yellow",
    "regressed": "default",
    "failed": "red",
    "void": "magenta",
    "running": "green",
    "stopping": "yellow",
    "dead": "red",
    "retired": "dim",
    "parked": "yellow",
}


def console() -> Console:
    """Standard output. Its width is the terminal's, or that of $COLUMNS."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False, width=width)


def tone(word: str) -> Text:
    """A verdict or a state in its colour."""
    return Text(word, style=TONES.get(word, "default"))


def dim(text: str) -> Text:
    return Text(text, style="dim")


class _Heading(Heading):
    """Headings to the left, in three weights: rich centres the first kind."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize({"h1": "bold", "h2": "bold cyan"}.get(self.tag, "cyan"))
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - so it is in rich


def markdown(text: str, indent: int = 2) -> Padding:
    """What agents wrote, rendered; links show where they lead."""
    return Padding(_Markdown(clean(text), hyperlinks=False), (0, 0, 0, indent))
