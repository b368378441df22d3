"""What agents and the operator may ask for, in the imperative: plain frozen data that the journal can hold."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHeartbeat:
    """`entry`: the heartbeat as in task.yaml; what it leaves out stays as it is in force."""

    owner: str
    entry: Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveHeartbeat:
    owner: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetHeartbeats:
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    to: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The supervisor ends, and nothing else does: whoever resumes the run takes it over as it is then."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """`jobs`: those whose end was seen."""

    owed: tuple[str, ...] = ()
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """Run a command that belongs to an agent; `folder`: where, within the agent's clone."""

    agent: str
    argv: tuple[str, ...]
    what: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    number: int


Request = (
    SetHeartbeat | RemoveHeartbeat | ResetHeartbeats | Tell | Stop | Leave | Acknowledge | Alert | StartJob | StopJob
)
