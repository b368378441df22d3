"""Trouble at one provider stays with its account: the agents of the others wait for nobody and get every heartbeat, and
the one that had it goes on when it is over.

All seven programs work in one run, each with an account of its own. Each of them has each trouble in one of the runs,
and none in two of them.
"""

import time
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
import whole_runs
from agent_programs import PROGRAMS
from driven import Apart
from model_server import Asked, Step
from real_runs import wait_until
from records import readable
from whole_runs import delivered, trying

from attempts.store import Store
from coral.fleet.events import Ending, Exited
from coral.fleet.run_state import Fleet
from coral.journal.fold import decisions, fold
from coral.runtimes.registry import RUNTIMES
from workspace.layout import Layout

pytestmark = pytest.mark.timeout(900)

REFUSED = "refused connections"
TROUBLES = {
    "errors of the server": Step(error="broken"),
    "a limit in words that nobody knows": Step(error="too many", body={"error": {"message": "Hold your horses."}}),
    "broken answers": Step(say="I begin to", cut=True),
    "empty answers": Step(say=""),
    REFUSED: Step(),
}
NAMES = [name for name in PROGRAMS if name in RUNTIMES]
SECONDS = 20.0  # that a trouble lasts at least, once each of these agents has met it
BEFORE = 3  # attempts of each agent that has none, before the others are over
AFTER = 2  # attempts of each agent that had one, after it
PACE = 1.0  # seconds before an answer, so that seven programs do not keep the machine from working
# A failure every few seconds is enough for a pause, and a pause is short: both come within the trouble.
SETTINGS = ("run.breaker_crashes=3", "run.breaker_pause=5", "run.backoff_max=5")


@pytest.mark.parametrize("turn", range(len(NAMES)))
def test_the_trouble_of_an_account_holds_no_other(turn: int, apart: Apart, tmp_path: Path) -> None:
    turned = NAMES[turn:] + NAMES[:turn]
    troubles = dict(zip(turned, TROUBLES, strict=False))
    over, work, resting = Event(), trying(), set[str]()
    agents = {name: f"agent-{number}" for number, name in enumerate(NAMES, start=1)}
    scripts = {name: _answers(over, work, troubles.get(name), agents[name], resting) for name in NAMES}
    servers, parts = apart(scripts, [name for name, trouble in troubles.items() if trouble == REFUSED])
    task = whole_runs.write_task(tmp_path / "task", {"assignments": parts}, {"hours": 2})
    well = [agents[name] for name in NAMES if name not in troubles]
    # Beside six others a program may take long to end, which is no trouble of its account.
    with whole_runs.running(task, tmp_path, *SETTINGS, "run.interrupt_grace=60") as layout:
        wait_until(lambda: all(agent.launch for agent in _fleet(layout).agents.values()), whole_runs.MAX_SECONDS)
        asked = [servers[name] for name, trouble in troubles.items() if trouble != REFUSED]
        wait_until(lambda: all(server.turns for server in asked), whole_runs.MAX_SECONDS, "the trouble of each")
        began = time.monotonic()
        _wait_for(layout, well, BEFORE, resting)
        wait_until(lambda: time.monotonic() > began + SECONDS, 2 * SECONDS)
        assert not {agents[name] for name in troubles} & {*_agents_of(layout)}
        run = _fleet(layout).run
        assert {*run.breakers, *run.limits} <= {*troubles}
        over.set()
        for name, trouble in troubles.items():
            if trouble == REFUSED:
                servers[name].listen()
        _wait_for(layout, [agents[name] for name in troubles], AFTER, resting)
        # Before the stop: of a program that it ends as it starts it is not seen that this was an interrupt.
        failed = {name: _failed(layout, agents[name]) for name in NAMES if name not in troubles}
    assert not any(failed.values()), failed
    counts = Counter(_agents_of(layout))
    for agent in agents.values():
        assert len(delivered(layout, agent)) >= counts[agent] - 1  # of the last it may not have heard yet
    for agent in well:
        heads = delivered(layout, agent)
        assert len(set(heads)) == len(heads)


def _answers(
    over: Event, work: Callable[[Asked], Step], trouble: str | None, agent: str, resting: Container[str]
) -> Callable[[Asked], Step]:
    """The trouble until it is over, then work. The model of an agent that has done enough answers no more: its starts
    would only slow those that have not."""

    def answer(asked: Asked) -> Step:
        if trouble is not None and not over.is_set():
            return TROUBLES[trouble]
        return replace(work(asked), before=whole_runs.MAX_SECONDS if agent in resting else PACE)

    return answer


def _wait_for(layout: Layout, agents: list[str], attempts: int, resting: set[str]) -> None:
    def all_have() -> bool:
        time.sleep(0.2)
        counts = Counter(_agents_of(layout))
        resting.update(agent for agent in agents if counts[agent] >= attempts)
        return resting.issuperset(agents)

    wait_until(all_have, whole_runs.MAX_SECONDS, f"{attempts} attempts of each of {agents}")


def _fleet(layout: Layout) -> Fleet:
    return fold(layout.journal).fleet


def _agents_of(layout: Layout) -> list[str]:
    """Who made each attempt."""
    return [attempt.agent for attempt in readable(Store(layout.attempts)) if attempt.number > 0]


def _failed(layout: Layout, agent: str) -> list[tuple[Exited, str]]:
    """The agent's launches that failed, each with the end of its errors."""
    events = (event for _, decision in decisions(layout.journal) for event in decision.events)
    exits = [event for event in events if isinstance(event, Exited) and event.agent == agent]
    return [
        (exited, layout.errors(agent, exited.launch).read_text(errors="replace")[-2000:])
        for exited in exits
        if exited.ending not in (Ending.INTERRUPTED, Ending.CLEAN)
    ]
