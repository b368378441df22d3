"""Reading a prompt: the heartbeat sections that ask for something, and whether anything else is said.

Sections begin with a line that programs write and read: `## Heartbeat: <name> (id <ids>)`. The rest is prose for
readers of prose; the brain takes its facts from the records instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = re.compile(r"^## Heartbeat: (?P<name>[^\n]+?) \(id (?P<id>[^)\n]*)\)[ \t]*$", re.MULTILINE)
NEXT_PART = re.compile(r"^## ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One heartbeat: its name, the ids of what is owed, and its text."""

    name: str
    id: str
    text: str


def sections(prompt: str) -> list[Section]:
    """The heartbeat sections of a prompt, in order."""
    found = []
    for heading in HEADING.finditer(prompt):
        end = NEXT_PART.search(prompt, heading.end())
        text = prompt[heading.end() : end.start() if end else len(prompt)].strip()
        found.append(Section(heading["name"].strip(), heading["id"].strip(), text))
    return found
