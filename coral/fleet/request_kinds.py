"""The requests that the operator and agents send to the supervisor: plain frozen data, which the journal records."""

from collections.abc import Mapping
from dataclasses import dataclass

from coral.fleet.members import WantedMember
from coral.fleet.reasons import RunEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHeartbeat:
    """Set or change a heartbeat. `entry`: the heartbeat as in task.yaml; keys that it leaves out keep their present
    values."""

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
    """Send a message to an agent, or to all (`*`)."""

    to: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Interrupt an agent, and do not start it again until `Unpause`."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpause:
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Begin a new launch of an agent, whatever it does now; `fresh`: in a new session."""

    agent: str
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAgent:
    """Add an agent to the fleet. `name`: empty for the next free one."""

    wanted: WantedMember
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAgent:
    """Drive an agent in another way from its next launch on. Its present launch is interrupted for it, when no tool is
    at work."""

    agent: str
    wanted: WantedMember


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldGrading:
    """Begin no grade until `ReleaseGrading`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseGrading:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelGrade:
    """End an attempt that waits or is being graded as void."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget:
    """Change a budget while the run goes on. `key`: as in `budget` of task.yaml (`per_agent.money`). `limit`: the new
    limit, None for no limit; `as_task`: use the task's limit again, and ignore `limit`."""

    key: str
    limit: float | None = None
    as_task: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the run. `after_grades`: end the agents at once, and the run when everything that they submitted is
    graded."""

    end: RunEnd
    after_grades: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """End the supervisor alone; agents and grades go on, until `coral resume` takes the run over."""

    end: RunEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """The agent has read the messages with these ids, and has seen the ends of these jobs."""

    messages: tuple[str, ...] = ()
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseAlert:
    """Send a message to the operator."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An agent asks the operator something, and goes on meanwhile."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """Run a command that belongs to an agent. `what`: its name; `folder`: where it runs, within the agent's clone."""

    agent: str
    argv: tuple[str, ...]
    what: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeAlerts:
    """The operator has seen the alerts up to number `through`; None: all alerts so far."""

    through: int | None


Steering = (
    Pause
    | Unpause
    | Restart
    | Retire
    | AddAgent
    | MoveAgent
    | HoldGrading
    | ReleaseGrading
    | CancelGrade
    | AcknowledgeAlerts
    | AnswerQuestion
    | SetBudget
)
Request = (
    SetHeartbeat
    | RemoveHeartbeat
    | ResetHeartbeats
    | Tell
    | Steering
    | Stop
    | Leave
    | Acknowledge
    | RaiseAlert
    | Ask
    | RunJob
    | StopJob
)
