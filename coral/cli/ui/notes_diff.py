"""Compares two notes, section by section."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from coral.cli.ui.notes_page import title_line
from coral.cli.ui.table import dim
from coral.views import format
from workspace.notes import Note

_HEADING = re.compile(r"^#{2,6} +(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SectionChange:
    """The lines of one section that only the older note has (`gone`) and that only the newer one has (`new`)."""

    heading: str
    gone: tuple[str, ...]
    new: tuple[str, ...]


def changes(old: Note, new: Note) -> list[SectionChange]:
    """Return the sections that differ, in the order of the newer note. The order of lines and blank lines are
    ignored."""
    before, after = _sections(old), _sections(new)
    found = []
    for heading in dict.fromkeys((*after, *before)):
        one, other = before.get(heading, {}), after.get(heading, {})
        gone, added = tuple(line for line in one if line not in other), tuple(line for line in other if line not in one)
        if gone or added:
            found.append(SectionChange(heading, gone, added))
    return found


def print_changes(out: Console, old: Note, new: Note, found: Sequence[SectionChange]) -> None:
    out.print(Text.assemble(dim("from "), title_line(old)))
    out.print(Text.assemble(dim("to   "), title_line(new)))
    for change in found:
        out.print()
        out.print(Text(change.heading or "At the beginning", style="bold cyan"))
        for lines, sign, style in ((change.gone, "-", "red"), (change.new, "+", "green")):
            for line in lines:
                out.print(Text(f"{sign} {line}", style=style))
    if not found:
        out.print()
        out.print("the two say the same")


def _sections(note: Note) -> dict[str, dict[str, None]]:
    """Return the lines of each section, each once; those before the first heading are in the section "". The time is
    linear: a note may have 100,000 lines."""
    parts = _HEADING.split(note.body)
    named = zip(["", *parts[1::2]], parts[::2], strict=True)
    found: dict[str, dict[str, None]] = {}
    for heading, text in named:
        lines = (format.line(line) for line in text.splitlines() if line.strip() and not line.startswith("# "))
        found.setdefault(format.line(heading), {}).update(dict.fromkeys(lines))
    return {heading: lines for heading, lines in found.items() if lines}
