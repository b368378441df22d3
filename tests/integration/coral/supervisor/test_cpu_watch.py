"""Programs that compute are told from those that sleep, by what the kernel says of real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from real_runs import wait_until
from stage import QUIET_RULES, Stage

from coral.config.cluster import PlaceSection
from coral.config.model import AgentsSection, Assignment
from coral.fleet import events as on
from coral.processes.launches import Launches
from coral.processes.process_tree import identify
from coral.processes.usage import cpu_seconds
from coral.supervisor.cpu_watch import CpuWatch
from heartbeats import Pulse
from workspace.layout import Layout

RULES = replace(QUIET_RULES, stall=80.0)
SPIN = "while True: pass"
SPIN_IN_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"
SLEEP = "import time; time.sleep(600)"


class Watched:
    """A fleet of one agent, whose launch is a real process."""

    def __init__(self, code: str, folder: Path) -> None:
        self.layout = Layout(folder)
        self.stage = Stage(rules=RULES)
        self.process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        launch = SimpleNamespace(identity=identify(self.process.pid), tag="test-cpu-watch")
        launches = cast(Launches, SimpleNamespace(find=lambda who, number: launch))
        self.pool = ThreadPoolExecutor(1)
        self.assignment = Assignment()
        context = SimpleNamespace(
            rules=RULES, layout=self.layout,
            config=SimpleNamespace(agents=AgentsSection()),
            roster=SimpleNamespace(assignment=lambda agent: self.assignment),
        )  # fmt: skip
        self.watch = CpuWatch(cast(Any, context), launches, self.pool, lambda: None)

    def look(self, clock: float) -> list[on.Event]:
        """Measure at a time of the run's clock; what was found."""
        events = [*self.watch.read(self.stage.fleet, clock)]
        self.pool.submit(lambda: None).result()  # what was begun is over
        return [*events, *self.watch.read(self.stage.fleet, clock)]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pool.shutdown()


@pytest.fixture
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(request.param, tmp_path)
    try:
        yield made
    finally:
        made.close()


def used(watched: Watched) -> float:
    return cpu_seconds([watched.process.pid, *_children(watched.process.pid)])


@pytest.mark.parametrize("watched", [SPIN, SPIN_IN_A_CHILD], indirect=True)
def test_one_that_computes_is_found_and_one_that_was_suspended_is_not(watched: Watched) -> None:
    assert watched.watch.next_reading(watched.stage.fleet) == 41  # half of the time since its last word
    assert watched.look(40) == []
    assert watched.look(41) == []  # there is nothing to compare with yet
    assert watched.watch.next_reading(watched.stage.fleet) == 51
    before = used(watched)
    wait_until(lambda: used(watched) > before + 0.6, what="half a second of computing")
    assert watched.look(51) == [on.LifeSeen(agent="ann", launch=1)]
    pids = [watched.process.pid, *_children(watched.process.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(_state(pid) == "T" for pid in pids), what="the end of computing")
    assert watched.look(61) == [] or watched.look(71) == []
    assert watched.look(81) == []
    for pid in reversed(pids):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("watched", [SLEEP], indirect=True)
def test_one_that_waits_is_not(watched: Watched) -> None:
    assert [event for clock in (41, 51, 61, 71, 81) for event in watched.look(clock)] == []
    # Unless what it waits for has a pulse: a training on another machine uses nothing here.
    watched.layout.state("ann").mkdir(parents=True)
    with Pulse("train", to=watched.layout.pulses("ann"), checkpoint=watched.layout.root / "kept"):
        pass
    assert watched.look(91) == [on.LifeSeen(agent="ann", launch=1)]
    assert watched.look(101) == []


@pytest.mark.parametrize("watched", [SPIN], indirect=True)
def test_of_an_agent_on_a_node_its_beats_tell_and_not_the_process_that_waits_for_it(watched: Watched) -> None:
    watched.assignment = Assignment(place=PlaceSection())
    watched.look(41)
    before = used(watched)
    wait_until(lambda: used(watched) > before + 0.6, what="half a second of computing")
    assert watched.look(51) == []
    watched.layout.state("ann").mkdir(parents=True)
    watched.layout.pulses("ann").touch()
    assert watched.look(61) == [on.LifeSeen(agent="ann", launch=1)]
    assert watched.look(71) == []


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
