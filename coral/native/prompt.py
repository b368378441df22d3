"""Finds the heartbeat sections of a prompt.

A section begins with a line that the supervisor writes for programs: `## Heartbeat: <name> (id <ids>)`. The rest of a
prompt is prose, of which the brain reads nothing: it takes its facts from the records.
"""

import re
from dataclasses import dataclass

SECTION = re.compile(  # up to the next heading
    r"^## Heartbeat: (?P<name>[^\n]+?) \(id (?P<id>[^)\n]*)\)[ \t]*$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class HeartbeatSection:
    """One heartbeat: its name, the ids of the messages that it stands for, and its text."""

    name: str
    id: str
    text: str


def heartbeat_sections(prompt: str) -> list[HeartbeatSection]:
    return [HeartbeatSection(*map(str.strip, match.groups())) for match in SECTION.finditer(prompt)]
