"""The rules a run is decided by: what its task fixed. Times in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from attempts.record import Direction
from heartbeats.heartbeat import BUILT_IN, Heartbeat, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars for a million tokens; `cached` are those that were read from a cache."""

    input: float
    cached: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What each agent may use of its own; None is without limit."""

    attempts: int | None = None
    money: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the task fixed for a run. Times in seconds; a budget of None is without limit. `accounts`: whose purse an
    agent spends from; who is not named there spends from nobody's. `prices`: for programs that tell tokens only.
    `plateau`: so many attempts without a new best end the run. `research`: for how
    many seconds an agent only reads and thinks first. `stagger`: the seconds between the starts of two agents, when a
    run begins, when it is resumed and after a pause of the whole fleet.

    `outage` and `retries`: how long and how often in a row a program may ask its model again. `no_progress`: how long
    work without a result may go on; `fresh_compactions` and `fresh_tokens`: how worn a conversation may be that is gone
    on with; None is without end."""

    direction: Direction = Direction.MAXIMIZE
    noise: float = 0.0
    slots: int = 1
    grade_timeout: float = 300.0
    seed_commit: str = ""
    heartbeats: tuple[Heartbeat, ...] = BUILT_IN
    stall: float = 1200.0
    interrupt_grace: float = 10.0
    terminate_grace: float = 5.0
    start_grace: float = 60.0
    max_defer: float = 600.0
    backoff: float = 5.0
    backoff_max: float = 600.0
    breaker_crashes: int = 6
    breaker_window: float = 60.0
    breaker_pause: float = 300.0
    accounts: Mapping[str, str] = field(default_factory=dict)
    stop_at_limit: bool = False
    prices: Mapping[str, Prices] = field(default_factory=dict)
    budget_attempts: int | None = None
    budget_seconds: float | None = None
    budget_money: float | None = None
    budget_tokens: int | None = None
    plateau: int | None = None
    own: Allowance = field(default_factory=Allowance)
    research: Mapping[str, float] = field(default_factory=dict)
    stagger: float = 0.05
    target: float | None = None
    no_progress: float | None = None
    outage: float = 900.0
    retries: int = 30
    fresh_compactions: int | None = None
    fresh_tokens: int | None = None

    def defaults(self, scope: Scope) -> tuple[Heartbeat, ...]:
        """The heartbeats a new owner of this scope starts with."""
        return tuple(heartbeat for heartbeat in self.heartbeats if heartbeat.scope is scope)
