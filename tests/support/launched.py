"""A process of the simulated world: what it obeys, what it printed, how it ended, what it left behind."""

from dataclasses import dataclass, field

from coral.fleet.events import Ending

OBEDIENT, NEEDS_TERM, NEEDS_KILL, UNKILLABLE = range(4)  # which signal a process obeys at last


@dataclass(slots=True)
class Process:
    """A launch. `deaf`: which signals it does not obey; `unread`: whether it printed more than was heard."""

    who: str
    launch: int
    deaf: int = OBEDIENT
    printed: bool = False
    unread: bool = False
    busy: str = ""
    reply: str = ""
    ending: Ending | None = None
    leftovers: bool = False
    lingered_at: float = -1.0
    printed_inline: list[str] = field(default_factory=list)

    @property
    def is_gone(self) -> bool:
        return self.ending is not None and not self.leftovers
