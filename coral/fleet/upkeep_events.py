"""The events about the supervisor's own files, and about the machine that it runs on."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An item could not be read or handled, and was set aside."""

    item: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A file that only the supervisor writes was changed by somebody else, and was restored."""

    item: str
    found: str  # what had been done to it
    source: str = "the journal"  # what it was restored from; empty: it could not be restored


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDamaged:
    """Published records are not as the supervisor left them: the numbers of those whose file is `altered` or gone, and
    of those that are `misindexed`: the index lacks them or says something else."""

    altered: tuple[int, ...] = ()
    misindexed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatsAltered:
    """The file of the heartbeats in force for an owner is not as the supervisor left it."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailed:
    """What an action writes could not be written. The performer keeps the action until `WriteAgain`. `depth`: how often
    it has failed by now; each time it is tried again after a longer pause."""

    item: str
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFailed:
    """Changes in the inboxes no longer wake the supervisor: it finds them when it polls. `reason`: empty where they do
    again."""

    reason: str


class Shortage(StrEnum):
    """What the machine has too little of."""

    MEMORY = "memory"
    LOAD = "load"  # of time on its cores
    WATCHES = "watches"  # for folders


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChecked:
    """Of what the machine is `short` has changed. `free`: the part of its memory that is; `load`: how many processes
    want to run, for each core."""

    short: tuple[Shortage, ...]
    free: float = 1.0
    load: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """The machine was suspended, or the supervisor was stopped: that time does not count on the run's clock."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSet:
    """Somebody has set the time of day, by so many `seconds`; below 0: back."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChecked:
    """Whether the run's disk can be written to has changed. `problem`: why it cannot be; empty when it can again."""

    problem: str
