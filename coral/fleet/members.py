"""The agents that the operator has added or moved: how each is driven since, whatever the task says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars for a million tokens: of input, of input that was read from a cache, of output."""

    input: float
    cached: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMember:
    """How the operator wants an agent to be driven. None: as it is; of a new agent, as the task's own are."""

    runtime: str | None = None
    model: str | None = None
    role: str | None = None
    options: Mapping[str, object] | None = None  # of the runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """The runtime that drove an agent up to this launch."""

    through: int
    runtime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """How an agent is driven. `rest`: the other keys of its assignment, as in task.yaml. `account` and `prices`: those
    that follow from all these; "" and None where it has none."""

    runtime: str
    model: str = ""
    role: str = ""
    rest: Mapping[str, object] = field(default_factory=dict)
    account: str = ""
    prices: Prices | None = None
    added: bool = False  # by the operator: the task does not have it
    former: tuple[Former, ...] = ()  # the runtimes that it had before, whose outputs are read with them

    @property
    def title(self) -> str:
        return f"{self.runtime}, {self.model}" if self.model else self.runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move that waits for the end of its agent's launch. `notice`: the message that tells the agent of it, and causes
    that end."""

    member: Member
    was: Member
    notice: str = ""
