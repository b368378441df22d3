"""Calls: what a brain can ask for, as data. Each carries `request_heartbeat`: true chains straight into the next step
with the result, false yields. A brain that is a model writes the same calls as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coral.native.memory import Steer, Trial
from workspace.frontmatter import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Answer in prose; whoever reads the log sees it."""

    text: str
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Edit a block of memory: replace it, or add a line."""

    block: str
    text: str
    add: bool = False
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNote:
    """Leave a note in the shared knowledge."""

    name: str
    title: str
    kind: str
    attempts: tuple[int, ...]
    body: str
    about: tuple[int, ...] = ()  # own attempts that need no other note
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSkill:
    """Leave a skill in the shared knowledge."""

    name: str
    front: Mapping[str, Value]
    body: str
    request_heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Search for a few seconds: a family of moves, from an attempt (None: from the files as they are)."""

    family: str
    start: int | None
    why: str
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Write the files and hand them in."""

    trial: Trial
    texts: Mapping[str, str] = field(default_factory=dict)
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Stay for the result of what was handed in before an interrupt."""

    trial: Trial
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Decide where the next episodes start and which families they take."""

    steer: Steer
    request_heartbeat: bool = False


Call = Say | Remember | WriteNote | WriteSkill | Steering | Search | Submit | Await
