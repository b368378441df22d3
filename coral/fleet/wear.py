"""How long an agent has come to nothing, and how worn its conversation is.

The records are plain data; `stalls` and `sessions` decide by them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """How long an agent has come to nothing, and what was done about it.

    `since`: from when its work without progress is counted; none while it does not work, and `spent` is what had come
    together by then. `progress_at`: its last progress. `steps`: how often something was done since, the last time
    because it had been `finding` for `lasted` seconds. `asked`: when somebody was sent to look for edited files.
    `excused`: up to when what is no fault of its was taken off.
    """

    since: float | None = None
    spent: float = 0.0
    progress_at: float | None = None
    steps: int = 0
    finding: str = ""
    lasted: float = 0.0
    asked: float | None = None
    excused: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How worn a conversation is: how often it was compacted, and what the agent had used when it began."""

    compactions: int = 0
    tokens_before: int = 0
