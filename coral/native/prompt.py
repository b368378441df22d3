"""Finds the heartbeat sections of a prompt.

A section begins with a line that the supervisor writes for programs: `## Heartbeat: <name> (id <ids>)`. The rest of a
prompt is prose, of which the brain reads nothing: it takes its facts from the records.
"""

import re
from dataclasses import dataclass

HEADING = re.compile(r"^## Heartbeat: (?P<name>[^\n]+?) \(id (?P<id>[^)\n]*)\)[ \t]*$", re.MULTILINE)
NEXT_HEADING = re.compile(r"^## ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HeartbeatSection:
    """One heartbeat: its name, the ids of the messages that it stands for, and its text."""

    name: str
    id: str
    text: str


def heartbeat_sections(prompt: str) -> list[HeartbeatSection]:
    sections = []
    for heading in HEADING.finditer(prompt):
        end = NEXT_HEADING.search(prompt, heading.end())
        text = prompt[heading.end() : end.start() if end else len(prompt)].strip()
        sections.append(HeartbeatSection(heading["name"].strip(), heading["id"].strip(), text))
    return sections
