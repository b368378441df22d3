"""The calls that a brain can make, as data, and the error of a call that fails.

Each call carries `request_heartbeat`: true chains its result straight into the next step, false yields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coral.native.memory import Candidate, Redirection, Trial
from workspace.frontmatter import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Answer in prose, for readers of the log."""

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
    about: tuple[int, ...] = ()  # own attempts that need no other note after this one
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
    """Search for a few seconds with a family of moves, from an attempt (None: from the files as they are)."""

    family: str
    start: int | None
    why: str
    request_heartbeat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Write the files and submit them."""

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


class ToolError(Exception):
    """A call failed. `transient`: the same call may succeed the next time."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
