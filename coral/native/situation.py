"""What a brain decides by, as data: the situation and the event."""

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
    """What a brain asks for; `calls.py` has them all. `request_heartbeat`: whether the result leads to the next step at
    once; if not, the call yields."""

    request_heartbeat: bool = False

    def perform(self, bench: "SearchBench") -> "Event | None":
        """Do it, and return what came of it, if that is more than its being done. ToolError if it is not possible."""
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
    """A call without a result of its own has succeeded: something was said, remembered or written."""


Event = Prompted | Idle | CandidateFound | ResultReceived | CallFailed | CallDone


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a brain decides by: memory, and what was observed for this event."""

    memory: AgentMemory
    agent: str
    direction: Direction
    families: tuple[str, ...]  # families of moves that can change these files
    constraints: int | None = None  # that the check reports; None where it has not been asked
    skill: SearchSkill | None = None
    hand_overs: tuple[HandOver, ...] = ()  # attempts whose numbers other agents ask to be tuned
    notes: tuple[Note, ...] = ()
    change_of_best: str = ""  # what the fleet's best changes in the seed
    findings: tuple[str, ...] = ()  # what the best and the new bests show of the problem
    free_disk: float = 1.0  # as a share

    @property
    def known(self) -> KnownAttempts:
        return self.memory.known

    @property
    def own_best(self) -> Attempt | None:
        return self.known.best.get(self.agent)

    @property
    def fleet_best(self) -> Attempt | None:
        return self.known.leader(self.direction)
