"""What gemini and qwen have in common, of one origin: the file of settings, and replies in pieces."""

import json
from pathlib import Path

from attempts.fields import printable
from coral.runtimes.event import REPLY, Event

LARGEST = 1_000_000  # bytes
QUIET = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "disableAutoUpdate": True},
}


def login_type(path: Path) -> str:
    """How the user chose to log in; empty where nobody did."""
    try:
        with path.open("rb") as file:
            data: object = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return ""
    return Event(data).line("security", "auth", "selectedType", limit=60)


def piece(value: object) -> str:
    """A piece of a reply as it is: the blanks at its ends belong to the words around it."""
    return printable(value[:REPLY]) if isinstance(value, str) else ""
