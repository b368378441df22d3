"""Simulated days of programs that are of no use: nobody is started more often than the back-off allows.

And of programs that spend: what is over the budget at the end is what was in flight when that was reached.
"""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from simulated_day import (
    DAY,
    Launch,
    Making,
    Program,
    SimulatedDay,
    always,
    exits,
    fails_to_start,
    lingers,
    pauses,
    says,
)
from stage import brief

from coral.fleet import events as on
from coral.fleet.agent_state import Spent
from coral.fleet.events import Ending
from coral.fleet.policy import JITTER_SECONDS, PROBE_SECONDS, REST_SECONDS, RETURN_SECONDS
from coral.fleet.rules import Allowance, Rules
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed

NAMES = ("ann", "ben", "cid")
# As a new run has them, with the built-in heartbeats: those are owed to whoever does nothing, too.
RULES = Rules(stagger=0.05, no_progress=7200.0, outage=900.0, retries=30)
SHARED = replace(RULES, accounts=dict.fromkeys(NAMES, "acme"))
# 5, 10, 20 ... 320 seconds are 635 in all, and then it is 600 each time.
MAX_STARTS = 8 + (DAY - 635) / 600


def least(failures: int) -> float:
    """The pause after so many launches in a row that were for nothing."""
    return min(5.0 * 2 ** (failures - 1), 600.0)


def assert_backs_off(day: SimulatedDay, agent: str) -> None:
    launches = day.of(agent)
    assert 100 < len(launches) <= MAX_STARTS
    assert all(pause >= least(failures) for failures, pause in enumerate(pauses(launches), 1))


def limited(until: float | None) -> Program:
    """It prints that the limit is reached, in words of its own before or not, and exits 0."""
    return always((0.25, says()), (0.5, exits(Ending.LIMIT, until)))


USELESS: dict[str, Program] = {
    "answers at once and exits": always((0.25, says()), (0.5, exits(Ending.CLEAN))),
    "exits without a word": always((0.5, exits(Ending.CLEAN))),
    "crashes every 16 seconds": always((1.0, says("tool")), (16.0, exits(Ending.CRASHED))),
    "crashes without a word": always((0.0, exits(Ending.CRASHED))),
    "is told that its session is unknown": always((0.5, exits(Ending.UNKNOWN_SESSION))),
    "cannot be started": always((0.0, fails_to_start)),
    "answers, and leaves something running": always((0.25, says()), (0.5, lingers), (0.75, exits(Ending.CLEAN))),
    "crashes, and leaves something running": always((0.5, lingers), (0.75, exits(Ending.CRASHED))),
}


@pytest.mark.parametrize("what", USELESS)
@pytest.mark.parametrize("rules", [RULES, SHARED], ids=["alone", "shared"])
def test_a_program_that_is_of_no_use_is_started_no_more_often_than_the_back_off_allows(what: str, rules: Rules) -> None:
    day = SimulatedDay(rules, dict.fromkeys(NAMES, USELESS[what])).live()
    for name in NAMES:
        assert_backs_off(day, name)


@pytest.mark.parametrize("until", [0.0, 0.5, 10.0], ids=["passed", "now", "soon"])
@pytest.mark.parametrize("rules", [RULES, SHARED], ids=["alone", "shared"])
def test_a_limit_whose_reset_is_never_true_is_waited_out_longer_each_time(until: float, rules: Rules) -> None:
    day = SimulatedDay(rules, dict.fromkeys(NAMES, limited(until))).live()
    assert_backs_off(day, "ann")
    assert all(pause >= until for pause in pauses(day.of("ann")))
    # Of those who share an account, one tries for all.
    assert len(day.of("ben")) == (1 if rules is SHARED else len(day.of("ann")))


@pytest.mark.parametrize("rules", [RULES, SHARED], ids=["alone", "shared"])
def test_a_limit_of_which_nobody_knows_when_it_ends_is_asked_for_every_ten_minutes_at_most(rules: Rules) -> None:
    day = SimulatedDay(rules, dict.fromkeys(NAMES, limited(None))).live()
    assert all(pause >= 600 for pause in pauses(day.of("ann")))
    assert 15 < len(day.of("ann")) <= 1 + DAY / 600


def test_work_that_is_cut_short_by_one_limit_after_the_other_is_no_reason_to_hurry_either() -> None:
    # Each time it works for so long that the account seems to have usage again; and the reset has passed already.
    program = always((0.25, says()), (PROBE_SECONDS + 5, exits(Ending.LIMIT, 0.0)))
    day = SimulatedDay(SHARED, {"ann": program}).live()
    assert_backs_off(day, "ann")


@pytest.mark.parametrize("words", [[], [0.5], [float(second) for second in range(0, 86_400, 300)]])
def test_a_program_that_hangs_or_works_for_nothing_is_started_less_and_less_often(words: list[float]) -> None:
    day = SimulatedDay(RULES, {"ann": always(*((word, says()) for word in words))}).live()
    apart = [later.began - earlier.began for earlier, later in pairwise(day.of("ann"))]
    assert 4 <= len(apart) <= 15
    assert min(apart) > 1190
    # A checkpoint that falls due while it works interrupts it once: that launch follows without a rest.
    rests = [rest for rest in pauses(day.of("ann")) if rest >= REST_SECONDS]
    assert len(rests) >= 3
    assert all(earlier < later for earlier, later in pairwise(rests))


def test_what_the_clock_owes_goes_along_and_hurries_nobody() -> None:
    often = Heartbeat(name="checkpoint", trigger=Elapsed(30.0))
    day = SimulatedDay(replace(RULES, heartbeats=(often,)), {"ann": USELESS["answers at once and exits"]}).live()
    assert_backs_off(day, "ann")


def test_many_that_crash_are_held_up_together() -> None:
    names = [f"agent-{number}" for number in range(20)]
    day = SimulatedDay(RULES, dict.fromkeys(names, USELESS["crashes every 16 seconds"])).live(7200)
    for name in names:
        assert all(round(pause, 6) >= least(failures) for failures, pause in enumerate(pauses(day.of(name)), 1))
    held = [at for at, text in day.alerts if "nothing starts for 300 seconds" in text]
    assert held
    assert not [launch for launch in day.launches for at in held if at < launch.began < at + 300]


# --- one account, many agents ---------------------------------------------------------------------------------------

WINDOW, WORTH = 5 * 3600.0, 1800.0  # the account is good for half an hour in every five hours


def subscriber(clock: float, _launch: int) -> list[tuple[float, Making]]:
    """It works until the usage of the window is spent; whoever asks after that hears so at once."""
    within = clock % WINDOW
    left = WORTH - within
    if left <= 0:
        return [(0.5, exits(Ending.LIMIT, WINDOW - within - 0.5))]
    words = [(second, says()) for second in range(1, int(left), 600)]
    return [*words, (left, exits(Ending.LIMIT, WINDOW - WORTH))]


@pytest.mark.slow
def test_133_agents_of_one_account_ask_once_at_each_reset_of_a_day() -> None:
    names = [f"agent-{number}" for number in range(133)]
    rules = Rules(heartbeats=(), accounts=dict.fromkeys(names, "acme"), slots=4)
    day = SimulatedDay(rules, dict.fromkeys(names, subscriber)).live()
    for window in range(1, int(DAY // WINDOW) + 1):
        reset = window * WINDOW
        early = [launch for launch in day.launches if reset - WINDOW + WORTH < launch.began < reset]
        assert early == []
        probe, *others = sorted(
            (launch for launch in day.launches if reset <= launch.began < reset + WORTH),
            key=lambda launch: launch.began,
        )
        assert probe.began <= reset + JITTER_SECONDS
        assert {launch.agent for launch in (probe, *others)} == set(names)
        assert len(others) == 132
        assert all(other.began >= probe.began + PROBE_SECONDS + RETURN_SECONDS for other in others)
    assert len([text for _, text in day.alerts if "133 agents are parked" in text]) == int(DAY // WINDOW) + 1


# --- budgets --------------------------------------------------------------------------------------------------------


class Purse:
    """Agents that spend: each turn asks its model a few times, and tells at each, or at the end, what it has used."""

    def __init__(self, seed: int, *, at_the_end: bool) -> None:
        self.random = Random(seed)
        self.at_the_end = at_the_end
        self.asked: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def program(self, agent: str) -> Program:
        def turn(clock: float, launch: int) -> list[tuple[float, Making]]:
            times = sorted(self.random.uniform(1, 300) for _ in range(self.random.randrange(1, 6)))
            costs = [self.random.uniform(0.01, 0.5) for _ in times]
            self.asked[agent, launch] = [(clock + time, cost) for time, cost in zip(times, costs, strict=True)]
            told = [(time, used(sum(costs[: place + 1]))) for place, time in enumerate(times)]
            return [(0.5, says()), *(told[-1:] if self.at_the_end else told), (times[-1] + 1, exits(Ending.CLEAN))]

        return turn

    def cost(self, launch: Launch) -> float:
        """What the model's provider wants for it: everything that was asked before it was gone."""
        asked = self.asked[launch.agent, launch.number]
        return sum(cost for time, cost in asked if launch.ended is None or time <= launch.ended)

    def untold(self, launch: Launch) -> float:
        """What nobody ever hears of: of a turn that a heartbeat interrupted before its end, where that is told."""
        last, _ = self.asked[launch.agent, launch.number][-1]
        cut = launch.ended is not None and launch.ended < last
        return self.cost(launch) if self.at_the_end and cut else 0.0


def used(money: float) -> Making:
    return lambda agent, launch: on.Used(agent=agent, launch=launch, figure=Spent(input=1, money=money))


@pytest.mark.parametrize("at_the_end", [False, True], ids=["step by step", "at the end"])
@pytest.mark.parametrize("obeys", [0.25, 9.0])
def test_no_more_is_spent_beyond_the_budget_than_was_in_flight_when_it_was_reached(
    at_the_end: bool, obeys: float
) -> None:
    for seed in range(10):
        purse, names = Purse(seed, at_the_end=at_the_end), [f"agent-{number}" for number in range(1 + seed)]
        cap = 5.0 + seed
        rules = Rules(heartbeats=(), budget_money=cap)
        day = SimulatedDay(rules, {name: purse.program(name) for name in names}, obeys=obeys).live()
        assert brief(day.fleet.run.finished) == f"budget ({cap:g} money)"
        assert day.reached is not None
        assert all(launch.began <= day.reached for launch in day.launches)
        assert len(day.in_flight) <= len(names)
        spent = sum(purse.cost(launch) for launch in day.launches)
        unheard = sum(
            purse.cost(launch) if launch in day.in_flight else purse.untold(launch) for launch in day.launches
        )
        assert spent - unheard < cap <= spent


def test_an_agent_spends_no_more_of_its_own_than_its_last_turn_costs() -> None:
    for seed in range(10):
        purse = Purse(seed, at_the_end=True)
        rules = Rules(heartbeats=(), own=Allowance(money=3.0))
        day = SimulatedDay(rules, {name: purse.program(name) for name in NAMES}).live()
        assert brief(day.fleet.run.finished) == "all retired"
        for name in NAMES:
            *before, last = (purse.cost(launch) for launch in day.of(name))
            assert sum(before) < 3.0 <= sum(before) + last
