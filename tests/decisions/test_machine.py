"""How the machine is, as transcripts: what it lacks is a reason of health, and no clock moves a deadline."""

import pytest
from stage import Stage

from coral.fleet import events as on
from coral.fleet.health import HealthLevel, health_of
from coral.fleet.policy import WORTH_AN_ALERT


def troubles(stage: Stage) -> dict[str, float]:
    return dict(stage.fleet.run.troubles)


def test_what_the_machine_lacks_is_a_reason_until_it_is_over_and_little_memory_is_an_alert() -> None:
    stage = Stage(2)
    both = on.MachineChecked(short=(on.Shortage.MEMORY, on.Shortage.LOAD), free=0.03, load=9.04)
    assert stage.at(5, both) == [
        "machine: 3 % of the memory is free, 9.0 programs want each core",
        "alert run-alert-1: the machine has little memory left: programs may be ended for it",
    ]
    watch = "warning: files cannot be watched (no more watches); polling continues"
    assert stage.at(6, on.WatchFailed(reason="no more watches")) == [watch]
    assert troubles(stage) == {"memory": 5, "load": 5, "not_watched": 6}
    assert health_of(stage.fleet)[0] is HealthLevel.DEGRADED
    (said,) = stage.at(7, on.MachineChecked(short=(on.Shortage.LOAD,), free=0.9, load=9.0))
    assert said == "machine: 90 % of the memory is free, 9.0 programs want each core"
    assert troubles(stage) == {"load": 5, "not_watched": 6}
    assert stage.at(8, on.WatchFailed(reason="")) == ["machine: files are watched again"]
    assert troubles(stage) == {"load": 5}
    # The next supervisor looks for itself.
    stage.at(9, on.Resumed())
    assert troubles(stage) == {}


@pytest.mark.parametrize(
    ("event", "trouble", "text"),
    [
        (on.Slept(seconds=WORTH_AN_ALERT - 1), "slept", "the machine, or the supervisor, stood still for 599 seconds"),
        (on.ClockSet(seconds=45.0), "clock_set", "the time of day was set forward by 45 seconds"),
        (on.ClockSet(seconds=-45.0), "clock_set", "the time of day was set back by 45 seconds"),
    ],
)
def test_a_machine_that_stood_still_or_whose_clock_was_set_is_shown_for_a_while(event, trouble, text) -> None:
    stage = Stage(2)
    assert stage.at(5, event) == [f"machine: {text}"]
    assert troubles(stage) == {trouble: 5}
    assert health_of(stage.fleet)[0] is HealthLevel.DEGRADED
    assert stage.until(904.9) == []
    assert troubles(stage) == {trouble: 5}
    stage.until(905)
    assert troubles(stage) == {}


@pytest.mark.parametrize("event", [on.Slept(seconds=WORTH_AN_ALERT), on.ClockSet(seconds=-WORTH_AN_ALERT)])
def test_for_long_it_is_an_alert_and_moves_no_deadline(event: on.Event) -> None:
    stage, other = Stage(2), Stage(2)
    before = {name: agent.deadline for name, agent in stage.fleet.agents.items()}
    (said,) = stage.at(5, event)
    assert said.startswith("alert run-alert-1: the ")
    assert said.endswith("; no deadline has moved")
    other.at(5)
    assert {name: agent.deadline for name, agent in stage.fleet.agents.items()} == before
    assert stage.fleet.agents == other.fleet.agents
