"""The events that the brain reasons about, and the situation in which it meets them: all it may decide by."""

from dataclasses import dataclass

from attempts.record import Direction
from coral.native.answers.skill import SearchSkill
from coral.native.calls import Call
from coral.native.known_attempts import KnownAttempt, KnownAttempts
from coral.native.memory import AgentMemory, Candidate, Trial
from coral.native.prompt import HeartbeatSection
from workspace.notes import Note


@dataclass(frozen=True, slots=True)
class Prompted:
    """Heartbeats ask for something: the sections of a prompt, or those that `coral eval` printed."""

    sections: tuple[HeartbeatSection, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is asked: it is time for the next attempt."""


@dataclass(frozen=True, slots=True)
class CandidateFound:
    """An episode of search has ended."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class ResultReceived:
    """A submission has its result."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A tool failed. `transient`: the same call may succeed the next time."""

    call: Call
    message: str
    transient: bool


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call has succeeded that has no other result: something was said, remembered or written."""


Event = Prompted | Idle | CandidateFound | ResultReceived | CallFailed | CallDone


@dataclass(frozen=True, slots=True)
class Signal:
    """An event and how deep in a chain it stands: what follows from it stands one deeper."""

    event: Event
    depth: int = 0

    def then(self, event: Event) -> "Signal":
        return Signal(event, self.depth + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the tools gathered for this step."""

    agent: str
    direction: Direction
    families: tuple[str, ...]  # that can do something here
    has_check: bool
    skills: tuple[SearchSkill, ...] = ()
    notes: tuple[Note, ...] = ()
    checklist: str = ""
    free_disk: float = 1.0  # as a share


@dataclass(frozen=True, slots=True)
class Situation:
    """The first stage of a step, perceive: memory and observation as one value."""

    memory: AgentMemory
    observation: Observation

    @property
    def known(self) -> KnownAttempts:
        return self.memory.known

    @property
    def own_best(self) -> KnownAttempt | None:
        return self.known.best.get(self.observation.agent)

    @property
    def fleet_best(self) -> KnownAttempt | None:
        return self.known.fleet_best(self.observation.direction)

    @property
    def best_of_others(self) -> list[KnownAttempt]:
        return self.known.best_of_others(self.observation.agent, self.observation.direction)
