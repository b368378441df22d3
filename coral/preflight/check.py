"""What `coral doctor` finds."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    WELL = "well"
    NOTE = "note"  # works, and could be better
    ABSENT = "absent"  # a program that is not installed and that nothing needs
    WRONG = "wrong"  # no run can start with this


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: Health
    text: str
    advice: str = ""
