"""An agent's reply to a checkpoint: `HEARTBEAT_OK` is not shown, `ALERT: ...` is delivered to the operator.

Agents write Markdown: the words count with asterisks and quotes around them too, or alerts would be lost.
"""

import re
from dataclasses import dataclass

from attempts.fields import printable

LONGEST_ALERT = 2_000
_ALERT = re.compile(r"ALERT\s*:[\s*_`]*(.*)")
_DECORATION = "*_`~>#-. \t\"'\u201c\u201d\u2018\u2019\u200b\ufeff"  # also typographic quotes and invisible characters


@dataclass(frozen=True, slots=True)
class OkReply:
    """The agent has nothing to report."""


@dataclass(frozen=True, slots=True)
class AlertReply:
    text: str


@dataclass(frozen=True, slots=True)
class OtherReply:
    """The agent has not answered yet, or speaks of something else."""

    text: str

    @property
    def first_line(self) -> str:
        """The first line that can be printed; "" if there is none, or another line says HEARTBEAT_OK."""
        lines = [line.strip() for line in printable(self.text).splitlines() if line.strip(_DECORATION)]
        if any(line.strip(_DECORATION) == "HEARTBEAT_OK" for line in lines):
            return ""
        return lines[0][:LONGEST_ALERT] if lines else ""


Reply = OkReply | AlertReply | OtherReply


def parse_reply(text: str) -> Reply:
    """Read an agent's reply: HEARTBEAT_OK if that is its last line, else the last alert in it, even with lines after
    it."""
    lines = [line.strip() for line in printable(text).splitlines() if line.strip(_DECORATION)]
    if lines and lines[-1].strip(_DECORATION) == "HEARTBEAT_OK":
        return OkReply()
    for index in range(len(lines) - 1, -1, -1):
        found = _ALERT.match(lines[index].lstrip(_DECORATION))
        if found:
            # `ALERT:` alone on its line is followed by its text.
            content = found[1].rstrip("*_` ") or " ".join(lines[index + 1 :])
            return AlertReply(content[:LONGEST_ALERT]) if content else OtherReply(text)
    return OtherReply(text)
