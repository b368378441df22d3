"""The answer to a checkpoint: `HEARTBEAT_OK` is kept silent, `ALERT: ...` is delivered to the operator.

Agents decorate what they write; a contract that breaks on two asterisks would lose the alerts that matter.
"""

import re
from dataclasses import dataclass

from attempts.fields import printable

LONGEST_ALERT = 2_000
_ALERT = re.compile(r"ALERT\s*:[\s*_`]*(.*)")
_DECORATION = "*_`~>#-. \t\"'"


@dataclass(frozen=True, slots=True)
class Ok:
    """Nothing to report."""


@dataclass(frozen=True, slots=True)
class Alert:
    """What the operator is to read."""

    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """Neither: the agent has not answered, or not yet."""

    text: str


Reply = Ok | Alert | Other


def parse_reply(text: str) -> Reply:
    """Read what an agent said. The last line decides; an alert that has more lines after it still counts."""
    lines = [line.strip() for line in printable(text).splitlines() if line.strip(_DECORATION)]
    if lines and lines[-1].strip(_DECORATION) == "HEARTBEAT_OK":
        return Ok()
    for index in range(len(lines) - 1, -1, -1):
        found = _ALERT.match(lines[index].lstrip(_DECORATION))
        if found:
            # `ALERT:` alone on its line is followed by its text.
            content = found[1].rstrip("*_` ") or " ".join(lines[index + 1 :])
            return Alert(content[:LONGEST_ALERT]) if content else Other(text)
    return Other(text)
