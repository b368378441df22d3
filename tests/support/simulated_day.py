"""A day of a fleet whose programs always do the same: what each does from its start on, and who was started when.

No process, no clock: a heap of what the programs do next, and the decisions between.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from stage import attempt_zero

from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide, next_deadline
from coral.fleet.events import Ending
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet

DAY = 86_400.0
Making = Callable[[str, int], on.Event]  # an event of this agent's launch
Program = Callable[[float, int], Iterable[tuple[float, Making]]]  # by the clock and the launch: what it does, and when


@dataclass
class Launch:
    """`ended` is none while it runs."""

    agent: str
    number: int
    began: float
    ended: float | None = None


@dataclass
class SimulatedDay:
    """`obeys`: how many seconds after a SIGINT a program is gone."""

    rules: Rules
    programs: Mapping[str, Program]
    obeys: float = 0.25
    clock: float = 0.0
    fleet: Fleet = field(default_factory=Fleet)
    launches: list[Launch] = field(default_factory=list)
    alerts: list[tuple[float, str]] = field(default_factory=list)
    reached: float | None = None  # when the end of the run was decided
    in_flight: list[Launch] = field(default_factory=list)  # and who ran then

    def __post_init__(self) -> None:
        self._next: list[tuple[float, int, Launch, Making]] = []
        self._order = count()
        self._running: dict[str, Launch] = {}
        self._decide([on.Opened(run="run", agents=tuple(self.programs), baseline=attempt_zero())])

    def live(self, until: float = DAY) -> "SimulatedDay":
        while not self.fleet.run.finished and (at := self._soonest()) <= until:
            self.clock = at
            self._decide(self._news())
        return self

    def of(self, agent: str) -> list[Launch]:
        return [launch for launch in self.launches if launch.agent == agent]

    def _soonest(self) -> float:
        due = next_deadline(self.fleet, self.clock, self.rules)
        times = [] if due is None else [due]
        return min([*times, *([self._next[0][0]] if self._next else [])], default=float("inf"))

    def _news(self) -> list[on.Event]:
        news = []
        while self._next and self._next[0][0] <= self.clock:
            _, _, launch, making = heapq.heappop(self._next)
            if launch.ended is None:
                news.append(making(launch.agent, launch.number))
                if isinstance(news[-1], on.Exited | on.SpawnFailed):
                    launch.ended = self.clock
                    del self._running[launch.agent]
        return news

    def _decide(self, events: Iterable[on.Event]) -> None:
        now = on.Moment(run_time=self.clock, wall_time="")
        self.fleet, actions = decide(self.fleet, events, now, self.rules)
        if self.fleet.run.stopping and self.reached is None:
            self.reached, self.in_flight = self.clock, list(self._running.values())
        for action in actions:
            match action:
                case do.Spawn(agent=agent, launch=number):
                    assert agent not in self._running, f"{agent} runs already"
                    self._start(Launch(agent, number, self.clock))
                case do.Interrupt(who=agent):
                    self._plan(self._running[agent], [(self.obeys, exits(Ending.INTERRUPTED))])
                case do.Notify(text=text):
                    self.alerts.append((self.clock, text))

    def _start(self, launch: Launch) -> None:
        self.launches.append(launch)
        self._running[launch.agent] = launch
        self._plan(launch, self.programs[launch.agent](self.clock, launch.number))

    def _plan(self, launch: Launch, steps: Iterable[tuple[float, Making]]) -> None:
        for seconds, making in steps:
            heapq.heappush(self._next, (self.clock + seconds, next(self._order), launch, making))


def says(busy: str = "") -> Making:
    return lambda agent, launch: on.OutputSeen(
        agent=agent, launch=launch, has_prompt=True, session=f"session of {agent}", activity=busy
    )


def exits(ending: Ending, until: float | None = None) -> Making:
    return lambda agent, launch: on.Exited(agent=agent, launch=launch, ending=ending, until=until)


def fails_to_start(agent: str, launch: int) -> on.Event:
    return on.SpawnFailed(who=agent, launch=launch, reason="no such program")


def lingers(agent: str, launch: int) -> on.Event:
    return on.LeftProcesses(who=agent, launch=launch)


def always(*steps: tuple[float, Making]) -> Program:
    """Return a program of which every launch is alike."""
    return lambda _clock, _launch: steps


def pauses(launches: Iterable[Launch]) -> Iterator[float]:
    """Yield the seconds between the end of each launch of an agent and the start of its next."""
    before: Launch | None = None
    for launch in launches:
        if before is not None and before.ended is not None:
            yield launch.began - before.ended
        before = launch
