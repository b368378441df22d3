"""Of a long simulated fleet whose agents are all alive nobody is taken for dead; whoever does stop is found in time."""

from dataclasses import dataclass
from random import Random

import pytest
from stage import attempt_zero

from attempts.record import Attempt
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Phase
from coral.fleet.decide import decide
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.supervisor.cpu_watch import PARTS

AGENTS, POLL, DAY = 50, 60.0, 86400.0
RULES = Rules(heartbeats=(), stall=1200.0, no_progress=None)
BASELINE: Attempt | None = attempt_zero(0.0)


@dataclass
class Worker:
    """Talks at intervals of any length below the limit, and now and then computes for hours without a word."""

    random: Random
    speaks_at: float = 0.0
    computes_until: float = 0.0
    measured_at: float = 0.0
    stopped_at: float = float("inf")

    def events(self, name: str, launch: int, clock: float) -> list[on.Event]:
        if clock >= self.stopped_at:
            return []
        if clock >= max(self.speaks_at, self.computes_until):
            gap = min(self.random.expovariate(1 / 200), 0.9 * RULES.stall)
            self.speaks_at, self.measured_at = clock + gap, clock + RULES.stall / 2
            if self.random.random() < 0.02:
                self.computes_until = clock + self.random.uniform(0.5, 4) * 3600
            return [on.OutputSeen(agent=name, launch=launch, has_prompt=True, session=name)]
        if self.computes_until > clock >= self.measured_at + RULES.stall / PARTS:
            # Under load, the measurement comes later than it is due.
            self.measured_at = clock + RULES.stall / 2 + self.random.uniform(0, RULES.stall / PARTS)
            return [on.LifeSeen(agent=name, launch=launch)]
        return []


class LiveFleet:
    def __init__(self) -> None:
        self.random = Random(13)
        self.names = [f"agent-{number}" for number in range(1, AGENTS + 1)]
        self.workers = {name: Worker(Random(name)) for name in self.names}
        self.fleet, self.clock, self.slept = Fleet(), 0.0, 0.0
        self.stalled: list[tuple[float, str]] = []
        self.turn(on.Opened(run="run", agents=tuple(self.names), baseline=BASELINE))

    def turn(self, *events: on.Event) -> None:
        # While the machine is suspended nothing runs, the supervisor's clock neither: the time of day jumps.
        now = on.Moment(run_time=self.clock, wall_time=f"wall {self.clock + self.slept:g}")
        self.fleet, actions = decide(self.fleet, events, now, RULES)
        for action in actions:
            if isinstance(action, do.LogEvent) and action.type == "stalled":
                self.stalled.append((self.clock, action.agent))

    def live(self, until: float) -> None:
        while self.clock < until:
            self.clock += POLL * self.random.uniform(0.5, 1.5)  # a busy machine polls late
            self.slept += 8 * 3600 * (self.random.random() < 4 * POLL / DAY)
            at_work = (agent for agent in self.fleet.agents.values() if agent.phase is Phase.RUNNING)
            found = [self.workers[agent.name].events(agent.name, agent.launch, self.clock) for agent in at_work]
            self.turn(*(event for events in found for event in events))


@pytest.mark.parametrize("days", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_nobody_alive_is_taken_for_dead_and_whoever_stops_is_found_in_time(days: int) -> None:
    fleet = LiveFleet()
    fleet.live(days * DAY)
    assert fleet.slept > 0
    assert fleet.stalled == []
    assert all(agent.launch == 1 for agent in fleet.fleet.agents.values())
    for name in fleet.names[::7]:
        fleet.workers[name].stopped_at = fleet.clock
    stopped_at = fleet.clock
    fleet.live(stopped_at + RULES.stall + 2 * POLL)
    assert {name for _, name in fleet.stalled} == set(fleet.names[::7])
    assert all(at <= stopped_at + RULES.stall + 1.5 * POLL for at, _ in fleet.stalled)
