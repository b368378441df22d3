"""What the supervisor looks at, and how often."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from real_runs import Run

from coral.fleet import events as on
from coral.fleet.state import Agent, Fleet, Phase
from coral.inputs.listen import QUIET_PAUSE, QUIET_SECONDS
from coral.manager import Manager
from coral.senses import LISTEN_SECONDS


@pytest.mark.slow
def test_an_agent_that_has_long_been_silent_is_listened_to_less_often_until_it_speaks(
    start: Callable[..., Run],
) -> None:
    run = start(["hang"], supervise=False)
    manager = Manager(run.layout, (run.layout.private / "seed").read_text().strip())
    fleet = Fleet(agents={"agent-1": Agent(name="agent-1", phase=Phase.RUNNING, launch=1, heard=True)})
    manager._performer.listen_to("agent-1", 1, None, 0.0)
    ear = manager._performer.ears["agent-1"]
    output = run.layout.output("agent-1", 1)
    output.parent.mkdir(parents=True, exist_ok=True)

    def pauses(since: float, seconds: float) -> set[float]:
        """Between two looks at what it printed, while the loop comes by twice a second."""
        looks = []
        for turn in range(int(seconds / LISTEN_SECONDS)):
            now = on.Moment(clock=since + turn * LISTEN_SECONDS, wall="")
            list(manager._senses._listen(fleet, now))
            if ear.listened_at == now.clock:
                looks.append(now.clock)
        return {later - before for before, later in pairwise(looks)}

    assert pauses(0.0, QUIET_SECONDS) == {LISTEN_SECONDS}
    assert pauses(QUIET_SECONDS, 20.0) == {QUIET_PAUSE}
    output.write_text("a word\n")
    list(manager._senses._listen(fleet, on.Moment(clock=QUIET_SECONDS + 30.0, wall="")))
    assert pauses(QUIET_SECONDS + 30.5, 20.0) == {LISTEN_SECONDS}
    manager.close()
