"""kill -9 of the supervisor at a hundred random moments, and between the journal and everything that is done: nothing
is lost.

To look longer: `TIMES=10 pytest tests/end_to_end/test_survival.py`.
"""

import os
import random
import threading

import levels
import pytest
from killed_supervisors import PLACES
from survival import (
    KilledRun,
    assert_answered_once,
    assert_nothing_is_lost_or_doubled,
    in_short,
    replay,
    waiting,
    write_fragile_task,
)

from coral.journal import fold, read_lines
from workspace.seal import Level

TIMES = int(os.environ.get("TIMES", "1"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200 * TIMES)]

DEATHS = 120 * TIMES  # at least; most of them at random moments
MARK = {"sum", "at", "wall"}  # what a line has that says no more than how late it is
AT_THE_END = {f"{side} {what}" for what in ("Refuse", "Finish") for side in ("before", "after")}
OF_MEMBERS = {f"{side} {what}" for what in ("PrepareAgent", "SetMember") for side in ("before", "after")}


@pytest.fixture
def killed_run(tmp_path):
    made = []

    def make(level="best", **task):
        """`level`: at which agents and graders are sealed."""
        (tmp_path / "runs").mkdir()
        run = KilledRun(write_fragile_task(tmp_path / "task", **task), tmp_path / "runs", (f"workspace.seal={level}",))
        made.append(run)
        return run

    yield make
    for run in made:
        run.end()


@pytest.mark.parametrize("level", levels.params(Level.BUBBLEWRAP, Level.USER))
def test_killed_at_every_place_between_writing_down_and_doing_a_run_loses_and_doubles_nothing(killed_run, level):
    run, chance = killed_run(level, deaf="3"), random.Random(1)
    over, wanted, asked, budget, has_joined = False, set(PLACES) - AT_THE_END, [], (), False
    while wanted or not budget:
        died = run.places.total()
        assert died < 10 * DEATHS, f"no supervisor came to {wanted}"
        # One look takes so many and no more: on a busy machine they would pile up, and some be left over at the end.
        if died % 5 == 0 and not waiting(run):
            asked += [f"tell {died}", f"alert {died}"]
            run.request({"type": "tell", "to": "*", "text": asked[-2]})
            run.request({"type": "alert", "text": asked[-1]})
            if wanted & OF_MEMBERS and not run.fleet().run.preparing:
                asked.append(f"role {died}")
                moved = {"type": "move_agent", "agent": "agent-1"} if has_joined else {"type": "add_agent"}
                run.request({**moved, "role": asked[-1]})
                has_joined = True
        if over or (not wanted and died >= DEATHS):
            wanted = AT_THE_END - set(run.places)
            budget = (f"budget.attempts={run.fleet().run.next_number}",)
        if wanted and died % 2:
            # What was taken up, but is still in the inbox, is there to be discarded.
            over = run.live(3, at=wanted | ({"before Accept"} if died % 4 == 1 else set()), overrides=budget)
        else:
            nth = chance.randint(1, 80) if died % 4 else 0
            over = run.live(chance.expovariate(16), nth=nth, early=died % 8 == 0, overrides=budget)
        wanted -= set(run.places)
    while not run.live(30):
        pass
    with in_short(run):
        assert_nothing_is_lost_or_doubled(run)
        assert_answered_once(run, asked)
        assert run.left() == []


@pytest.mark.parametrize("level", levels.params(Level.LANDLOCK, Level.USER))
def test_agents_and_graders_killed_in_mixture_with_the_supervisor_lose_and_double_nothing(killed_run, level):
    run, chance = killed_run(level, deaf="3", slow="0.3"), random.Random(2)
    number = 0
    while number < 24 or {who[0] for who in run.killed} != {"a", "#"}:
        number += 1
        # One while nobody supervises, or one under the eyes of a supervisor - that may itself die in the middle of it.
        if number % 4:
            run.kill_one(chance)
            run.live(chance.expovariate(3), nth=chance.randint(1, 120) if number % 3 else 0)
        else:
            timer = threading.Timer(chance.expovariate(4), run.kill_one, (chance,), {"agents_only": True})
            timer.start()
            run.live(0.5)
            timer.join()
    while not run.live(30, overrides=(f"budget.attempts={run.fleet().run.next_number}",)):
        pass
    with in_short(run):
        assert_nothing_is_lost_or_doubled(run)
        assert run.left() == []


def test_of_a_quiet_hour_before_the_supervisor_was_killed_at_most_a_minute_is_lost(killed_run):
    run = killed_run(deaf="none", slow="3.", extra="budget: {hours: 1}\n")  # quick grades leave the journal no quiet
    while not (marks := [line["at"] for line in read_lines(run.layout.journal) if set(line) == MARK]):
        run.live(1, quiet=0.05)
    stood = fold(run.layout.journal).clock
    assert stood >= marks[-1] > 0
    count = len(run.decisions())
    run.live(1)
    assert run.decisions()[count].now.run_time >= stood
    replay(run)
