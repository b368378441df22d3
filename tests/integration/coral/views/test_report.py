"""How often `status.json` is written: soon after something happened, and rarely while nothing does."""

import json
from dataclasses import replace

import pytest
from sample import submission

from coral.fleet import events as on
from coral.fleet.agent_state import Agent, Phase
from coral.fleet.run_state import Fleet, PendingAttempt
from coral.supervisor.loop import Supervisor
from coral.views.report import MAX_STATUS_SECONDS, QUIET_STATUS_SECONDS

SILENT = 2 * QUIET_STATUS_SECONDS


class Shown:
    def __init__(self, manager: Supervisor) -> None:
        self.manager = manager
        self.report, self.monitors = manager._report, manager._monitors.by_agent
        self.fleet = Fleet(agents={"agent-1": Agent(name="agent-1", phase=Phase.RUNNING, launch=1, has_output=True)})
        manager._monitors.open("agent-1", 1, None, 0.0)

    def at(self, clock: float) -> float:
        """When the view was written that is there then, on the run's clock."""
        self.report.show(self.fleet, self.monitors, on.Moment(run_time=clock, wall_time=""))
        shown: float = json.loads(self.manager._layout.status.read_text())["clock"]
        return shown


@pytest.fixture
def shown(supervisor: Supervisor) -> Shown:
    return Shown(supervisor)


def test_while_nothing_happens_it_is_written_now_and_then(shown: Shown) -> None:
    assert shown.at(SILENT) == SILENT
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT
    assert shown.at(SILENT + QUIET_STATUS_SECONDS) == SILENT + QUIET_STATUS_SECONDS


def test_what_is_decided_is_shown_soon(shown: Shown) -> None:
    shown.at(SILENT)
    shown.fleet = replace(shown.fleet)
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS


def test_what_an_agent_says_is_shown_soon(shown: Shown) -> None:
    shown.at(SILENT)
    shown.monitors["agent-1"].printed_at = SILENT + 1
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS


def test_how_far_a_grade_is_is_shown_soon(shown: Shown) -> None:
    shown.fleet = replace(shown.fleet, pending={1: PendingAttempt(number=1, submission=submission())})
    shown.at(SILENT)
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS
