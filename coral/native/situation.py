"""Defines the data that a brain receives when it chooses the agent's next calls: the situation and the event."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attempts.record import Attempt, Direction
from coral.native.memory import AgentMemory, Candidate, KnownAttempts, Trial
from coral.native.prompt import HeartbeatSection
from coral.native.shared_skills import HandOver, SearchSkill
from workspace.notes import Note

if TYPE_CHECKING:
    from coral.native.workbench import SearchBench


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An action that a brain chooses; `calls.py` defines all of them. `request_heartbeat`: whether its result starts
    the next step at once; if not, only a failure does."""

    request_heartbeat: bool = False

    def perform(self, bench: "SearchBench") -> "Event | None":
        """Perform the action and return its result; None if it has no result but that it was done. ToolError if it is
        not possible."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Prompted:
    """A heartbeat has come: a section of a prompt, or one that `coral eval` printed."""

    section: HeartbeatSection


@dataclass(frozen=True, slots=True)
class Idle:
    """No heartbeat is left to answer, and nothing is unfinished: it is time for the next attempt."""


@dataclass(frozen=True, slots=True)
class CandidateFound:
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class ResultReceived:
    trial: Trial


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A tool failed. `transient`: the same call may succeed the next time."""

    call: Call
    message: str
    transient: bool


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call that returns no result has succeeded: it has printed, remembered or written something."""


Event = Prompted | Idle | CandidateFound | ResultReceived | CallFailed | CallDone


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Holds what a brain knows when an event comes: the agent's memory, and what was read for this event."""

    memory: AgentMemory
    agent: str
    direction: Direction
    families: tuple[str, ...]  # families of moves that can change these files
    constraints: int | None = None  # how many the check reports; None if it was not run or gave no result
    skill: SearchSkill | None = None
    hand_overs: tuple[HandOver, ...] = ()  # attempts whose numbers other agents ask to be tuned
    notes: tuple[Note, ...] = ()
    change_of_best: str = ""  # how the fleet's best attempt differs from the seed
    findings: tuple[str, ...] = ()  # sentences about the problem, from the check's results near the best attempts
    free_disk: float = 1.0  # the share of the disk that is free

    @property
    def known(self) -> KnownAttempts:
        return self.memory.known

    @property
    def own_best(self) -> Attempt | None:
        return self.known.best.get(self.agent)

    @property
    def fleet_best(self) -> Attempt | None:
        return self.known.leader(self.direction)
