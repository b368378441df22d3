"""After a reboot nothing that runs is ours, whatever its pid: it is neither taken over nor signalled."""

import contextlib
import os
import signal
import subprocess
from contextlib import closing
from dataclasses import replace

import pytest
from real_runs import TRY, wait_until

from coral.fleet.agent_state import Phase
from coral.fleet.events import Moment
from coral.fleet.policy import MAX_KILLS
from coral.journal import Journal
from coral.processes.process_tree import Identity, identify

WAITS = (
    "import time\n\ndef grade(workspace, private, kind):\n"
    "    if kind != 'baseline':\n        (private / 'graded').open('a').write('once ')\n"
    "        while not (private / 'go').exists():\n            time.sleep(0.01)\n"
    "    return float((workspace / 'x.txt').read_text())\n"
)


@pytest.fixture
def stranger():
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as process:
        yield process
        process.kill()


def at_another_boot(identity: Identity) -> Identity:
    return replace(identity, boot="another boot")


def that_ended_before(identity: Identity) -> Identity:
    """Its pid was given away again."""
    return replace(identity, started=identity.started - 1)


def end_all(run) -> None:
    """As a reboot does."""
    run.kill()
    for pid in run.left():
        with contextlib.suppress(ProcessLookupError):  # it may end as another one does
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not run.left(), what="the end of all")


@pytest.mark.parametrize("other", [at_another_boot, that_ended_before])
def test_a_stranger_with_the_pid_of_a_launch_is_left_alone_and_what_ran_is_begun_again(start, stranger, other):
    run = start([*TRY, "hang"], grade=WAITS)
    graded = run.layout.grader / "graded"
    wait_until(lambda: graded.exists() and graded.read_text() == "once ", what="the grading")
    wait_until(lambda: run.fleet().agents["agent-1"].has_output, what="its first words")
    end_all(run)
    identity = identify(stranger.pid)
    with closing(Journal(run.layout.journal)) as journal:
        launches = {who: launch for who, (launch, _) in journal.recovered.identities.items()}
        assert set(launches) == {"agent-1", "#1"}
        journal.record_started({who: (launch, other(identity)) for who, launch in launches.items()})
    (run.layout.grader / "go").touch()
    run.supervise()
    (attempt, *_) = run.wait_for_attempts(1)
    assert (attempt.number, attempt.score) == (1, 1)
    wait_until(lambda: run.fleet().agents["agent-1"].launch > launches["agent-1"], what="its next launch")
    run.stop()
    assert graded.read_text().startswith("once once ")
    assert stranger.poll() is None


def test_an_agent_that_could_not_be_killed_comes_back_when_it_is_gone(start):
    run = start(["hang"])
    wait_until(lambda: run.fleet().agents and run.fleet().agents["agent-1"].has_output, what="its first words")
    end_all(run)
    with closing(Journal(run.layout.journal)) as journal:
        before = journal.recovered.fleet
        agent = replace(before.agents["agent-1"], phase=Phase.RETIRED, kills=MAX_KILLS, deadline=None)
        now = Moment(run_time=journal.recovered.clock, wall_time=journal.recovered.wall)
        journal.record(now, (), (), before, replace(before, agents={"agent-1": agent}))
    run.supervise()
    wait_until(lambda: run.fleet().agents["agent-1"].launch > agent.launch, what="its next launch")
