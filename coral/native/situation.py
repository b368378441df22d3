"""The input and output of a brain, as data: the situation and the events that it decides by, the calls that it makes.

Each call carries `request_heartbeat`: if it is true, its result leads to the next step at once; if false, it yields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from attempts.record import Direction
from coral.native.answers.skill import SearchSkill
from coral.native.memory import AgentMemory, Candidate, KnownAttempt, KnownAttempts, Redirection, Trial
from coral.native.prompt import HeartbeatSection
from coral.native.search.hand_over import HandOver
from workspace.frontmatter import Value
from workspace.notes import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    text: str
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Edit a block of memory: replace it, or add a line."""

    block: str
    text: str
    add: bool = False
    about: tuple[int, ...] = ()  # own attempts that were looked at by this
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNote:
    """Leave a note in the shared knowledge."""

    name: str
    title: str
    kind: str
    attempts: tuple[int, ...]
    body: str
    topics: tuple[str, ...] = ()  # what the note is about: families of moves, starts
    about: tuple[int, ...] = ()  # own attempts that were looked at by this
    claims: str = ""  # what the agent will try, so that no other does
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSkill:
    name: str
    front: Mapping[str, Value]
    body: str
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Search for a few seconds with a family of moves, from an attempt (None: from the files as they are)."""

    family: str
    start: int | None
    why: str
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    candidate: Candidate
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitResult:
    """Wait for the result of what was submitted before an interrupt."""

    trial: Trial
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Decide where the next episodes start and which families they use."""

    redirection: Redirection
    request_heartbeat: bool = False


Call = Say | Remember | WriteNote | WriteSkill | Redirect | Search | Submit | AwaitResult


@dataclass(frozen=True, slots=True)
class Prompted:
    """Heartbeats have come: the sections of a prompt, or those that `coral eval` printed."""

    sections: tuple[HeartbeatSection, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """No heartbeat is left to answer: it is time for the next attempt."""


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
    families: tuple[str, ...]  # families of moves that can change these files
    has_check: bool
    constraints: int | None = None  # that the check reports; None where it has not been asked
    skills: tuple[SearchSkill, ...] = ()
    hand_overs: tuple[HandOver, ...] = ()  # attempts whose numbers other agents ask to be tuned
    notes: tuple[Note, ...] = ()
    change_of_best: str = ""  # what the fleet's best changes in the seed
    findings: tuple[str, ...] = ()  # what the best and the new bests show of the problem
    checklist: str = ""
    free_disk: float = 1.0  # as a share


@dataclass(frozen=True, slots=True)
class Situation:
    """What a brain decides by: memory and observation as one value, the result of a step's first stage."""

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
