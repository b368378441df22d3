"""A step's signal, and the situation in which the brain meets it: all it may decide by, and nothing it can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attempts.record import Direction
from coral.native.answers.skill import Lesson
from coral.native.calls import Call
from coral.native.known_attempts import Board, Entry
from coral.native.memory import Memory, Trial
from coral.native.prompt import Section
from workspace.knowledge import Note


@dataclass(frozen=True, slots=True)
class Prompted:
    """Somebody asks for something: the heartbeat sections of a prompt, or those that `coral eval` printed."""

    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is asked: it is time for the next attempt."""


@dataclass(frozen=True, slots=True)
class Explored:
    """An episode of search has ended with a candidate."""

    trial: Trial
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Graded:
    """What was handed in has its result."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Trouble:
    """A tool failed. `again`: the same call may work the next time."""

    call: Call
    message: str
    again: bool


@dataclass(frozen=True, slots=True)
class Written:
    """A note or a skill is in its place."""

    what: str


Event = Prompted | Idle | Explored | Graded | Trouble | Written


@dataclass(frozen=True, slots=True)
class Signal:
    """An event and how deep in a chain it stands: what follows from it stands one deeper."""

    event: Event
    depth: int = 0

    def then(self, event: Event) -> Signal:
        return Signal(event, self.depth + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What was gathered for this step: the shell looks, the brain decides."""

    agent: str
    direction: Direction
    families: tuple[str, ...]  # that can do something here
    checked: bool  # whether there is a public check
    lessons: tuple[Lesson, ...] = ()
    notes: tuple[Note, ...] = ()
    checklist: str = ""
    room: float = 1.0  # the free share of the disk


@dataclass(frozen=True, slots=True)
class Situation:
    memory: Memory
    world: World

    @property
    def board(self) -> Board:
        return self.memory.board

    @property
    def own(self) -> Entry | None:
        """The best attempt of this agent."""
        return self.board.best.get(self.world.agent)

    @property
    def leader(self) -> Entry | None:
        return self.board.leader(self.world.direction)

    @property
    def others(self) -> list[Entry]:
        return self.board.others(self.world.agent, self.world.direction)


def perceive(memory: Memory, world: World) -> Situation:
    """The first stage of a step: memory and world as one value. Pure."""
    return Situation(memory, world)
