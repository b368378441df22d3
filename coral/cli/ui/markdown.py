"""Markdown that agents wrote, rendered for a terminal. Import it late: that takes as long as everything else."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.padding import Padding

from coral.views.format import clean


class _Heading(Heading):
    """Headings at the left, in three weights: rich centres the first kind."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize({"h1": "bold", "h2": "bold cyan"}.get(self.tag, "cyan"))
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - as rich declares it


def markdown(text: str, indent: int = 2) -> Padding:
    """The text rendered; links show their targets."""
    return Padding(_Markdown(clean(text), hyperlinks=False), (0, 0, 0, indent))
