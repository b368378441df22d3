"""How the agents are driven that the operator has added or moved, whatever the task says of them."""

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
    """How the operator wants an agent to be driven. A field that is None stays as it is; of a new agent, it is as for
    the task's own agents."""

    runtime: str | None = None
    model: str | None = None
    role: str | None = None
    options: Mapping[str, object] | None = None  # of the runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A runtime that drove an agent before its present one, and the last launch (`through`) for which it did."""

    through: int
    runtime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """How an agent is driven. `rest`: the other keys of its assignment, as in task.yaml. `account` and `prices` follow
    from the other fields; "" and None where the agent has none."""

    runtime: str
    model: str = ""
    role: str = ""
    rest: Mapping[str, object] = field(default_factory=dict)
    account: str = ""
    prices: Prices | None = None
    added: bool = False  # by the operator: the task does not have it
    former: tuple[Former, ...] = ()  # its earlier runtimes, with which the outputs of its earlier launches are read

    @property
    def title(self) -> str:
        return f"{self.runtime}, {self.model}" if self.model else self.runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move that waits for the end of its agent's launch. `notice`: the id of the message that tells the agent of the
    move, and for which its launch is interrupted."""

    member: Member
    was: Member
    notice: str = ""
