"""The events about the supervisor's own files, and about the machine that it runs on."""

from collections.abc import Mapping
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
    """Published records are not as the supervisor left them. `altered`: the numbers of those whose file was changed or
    removed; `misindexed`: of those that the index lacks or has otherwise."""

    altered: tuple[int, ...] = ()
    misindexed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatsAltered:
    """The file of the heartbeats in force for an owner is not as the supervisor left it."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailed:
    """An action could not write its file. The supervisor keeps the action and tries it again at `WriteAgain`. `depth`:
    how many times it has failed; the pause before the next try grows with it."""

    item: str
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFailed:
    """The system no longer reports changes in the inboxes: the supervisor finds new files when it polls. `reason`: why;
    empty where changes are reported again."""

    reason: str


class Shortage(StrEnum):
    """What the machine has too little of."""

    MEMORY = "memory"
    LOAD = "load"  # of time on its cores
    WATCHES = "watches"  # for folders


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChecked:
    """The list of what the machine is `short` of has changed. `free`: the free part of its memory, from 0 to 1; `load`:
    how many processes want to run, for each core."""

    short: tuple[Shortage, ...]
    free: float = 1.0
    load: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """The machine was suspended, or the supervisor was stopped: that time does not count on the run's clock."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSet:
    """Somebody has set the time of day, by `seconds`; a negative number is back."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChecked:
    """Whether the run's disk can be written to has changed. `problem`: why it cannot be; empty if it can again."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChecked:
    """Whether the cluster that grades can be used has changed. `problem`: why it cannot be; empty if it can again."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMeasured:
    """The cluster has got or lost nodes. `capacity`: how many grades fit on those that it has now."""

    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesExcluded:
    """Other nodes of the cluster are excluded than before: no grade is sent to them for a while. `nodes`: the address
    of each excluded node, with the reason."""

    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsClusterChecked:
    """The same of the cluster that agents run on."""

    problem: str
