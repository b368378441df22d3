"""Renders Markdown that agents wrote for a terminal. Import this module only when it is needed: that takes as long as
importing everything else."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.padding import Padding

from coral.views.format import clean

INDENT = 2  # columns


class _Heading(Heading):
    """Draws headings at the left, in three weights; rich would centre those of the first level."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize({"h1": "bold", "h2": "bold cyan"}.get(self.tag, "cyan"))
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - as rich declares it


def markdown(text: str) -> Padding:
    """Return the text rendered. The addresses of links are shown."""
    return Padding(_Markdown(clean(text), hyperlinks=False), (0, 0, 0, INDENT))
