"""Every text in the state is written backwards before each decision, as if a supervisor with other words had written
it. In a week with stops, resumes and deaths exactly the same is decided, and the state ends as the same.
"""

import os
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

import pytest
from simulated_machine import RULES, SimulatedMachine, live
from world import Turn

from attempts.record import Attempt
from coral.fleet import actions as do
from coral.fleet.agent_state import Phase
from coral.fleet.reasons import ReasonKind
from coral.journal import RecoveredState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DAY = 86_400.0
STOPS = ["stop"] * 3 + ["leave"] + ["job"] * 8 + ["stop job", "end job"] + ["end"] * 9
# Fields that name something. Any other text is one that people or agents read.
_NAMES = """
id name agent agents who sender owner to type session activity in_flight awaiting_reply recent_submissions commit tree
parent submission submitted_at published_at heartbeats argv folder output began ended probe failed account by requests
concluder key
"""
# Why an attempt fails is data: failures are counted by it, and the operator hears of one that recurs.
_FAILURES = "suspicion exceeded failures alerted_failures"
IDENTIFIERS = frozenset(f"{_NAMES} {_FAILURES}".split())
# Records whose texts are backwards, by their id: most of a state is as it was a decision before.
KNOWN: dict[int, Any] = {}
MAX_KNOWN = 10_000
MARK = "\N{RIGHT-TO-LEFT OVERRIDE}"


def reworded(value: Any, backwards: bool = True, name: str = "") -> Any:
    """The same with every text in it backwards, or, for a comparison, with none. What holds no text stays itself."""
    if value is None or isinstance(value, int | float | Enum):
        return value
    if isinstance(value, str):
        if name in IDENTIFIERS or not value:
            return value
        return "" if not backwards else value if value.startswith(MARK) else MARK + value[::-1]
    if is_dataclass(value):
        if backwards and KNOWN.get(id(value)) is value:
            return value
        parts = {part: (getattr(value, part), part) for part in value.__slots__}
        if isinstance(value, Attempt):
            del parts["reason"]
    elif isinstance(value, Mapping):
        parts = {key: (held, name) for key, held in value.items()}
    elif isinstance(value, tuple):
        made = tuple(reworded(held, backwards, name) for held in value)
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    else:
        return value
    changed = {key: new for key, (held, of) in parts.items() if (new := reworded(held, backwards, of)) is not held}
    if changed:
        value = {**value, **changed} if isinstance(value, Mapping) else replace(value, **changed)
    if backwards and is_dataclass(value):
        if len(KNOWN) >= MAX_KNOWN:
            KNOWN.clear()
        KNOWN[id(value)] = value
    return value


class Reworded(SimulatedMachine):
    def _decide(self, events: list[Any]) -> None:
        self.fleet = reworded(self.fleet)
        super()._decide(events)

    def _perform(self, action: do.Action) -> None:
        super()._perform(reworded(action))

    def recall(self) -> RecoveredState:
        memory = super().recall()
        self.log[-1] = replace(self.log[-1], after=reworded(self.log[-1].after))
        return replace(memory, fleet=reworded(memory.fleet))


def lived(kind: type[SimulatedMachine], folder: Path) -> SimulatedMachine:
    folder.mkdir()
    world = kind(RULES, folder)
    live(world, Random(0), 7 * DAY, STOPS)
    return world


def test_the_same_is_decided_whatever_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    plain, other = lived(SimulatedMachine, tmp_path / "plain"), lived(Reworded, tmp_path / "other")
    for turn, again in zip(plain.log, other.log, strict=True):
        assert (again.clock, reworded(again.actions, False)) == (turn.clock, reworded(turn.actions, False))
    assert reworded(other.fleet, backwards=False) == reworded(plain.fleet, backwards=False)
    assert_it_was_worth_it(plain.log, other.log)


def assert_it_was_worth_it(log: list[Turn], other: list[Turn]) -> None:
    """Everything that once went by words has come up, and there were words to be written backwards."""
    finished = [turn for turn in log if any(isinstance(action, do.Finish) for action in turn.actions)]
    reasons = {agent.reason.kind for turn in log for agent in turn.after.agents.values()}
    parked = [agent for turn in log for agent in turn.after.agents.values() if agent.phase is Phase.PARKED]
    assert len(finished) > 20
    assert reasons >= {ReasonKind(name) for name in ("stop", "stalled", "outage", "waits_for_job", "leftovers")}
    assert {agent.reason.kind for agent in parked} == {ReasonKind.STALLED, ReasonKind.AT_LIMIT}
    alerts = [alert for turn in other for alert in turn.before.run.undelivered_alerts]
    assert all(alert.text.startswith(MARK) for alert in alerts)
    assert len(alerts) > 100
