"""All programs in one sealed run whose supervisor is killed: the next one takes them over, and nothing is lost."""

import os
import signal
from collections import Counter
from pathlib import Path

import levels
import pytest
import whole_runs
from agent_programs import PROGRAMS
from driven import Mixed
from real_runs import coral_interpreter, wait_until
from records import readable
from whole_runs import delivered, trying

from attempts.store import Store
from coral.journal import fold
from coral.processes.process_tree import is_alive
from coral.runtimes.registry import RUNTIMES
from coral.supervisor.lock import holder
from workspace.layout import Layout
from workspace.seal import Level

pytestmark = pytest.mark.timeout(900)

EACH = 4  # attempts of an agent
PATIENCE = 600.0
UNREPORTED = {"opencode"}  # steps that are interrupted, as all here are


def tried(layout: Layout) -> Counter[str]:
    found = [attempt for attempt in readable(Store(layout.attempts)) if attempt.agent]
    assert all(attempt.score is not None for attempt in found)
    return Counter(attempt.agent for attempt in found)


@pytest.mark.parametrize("level", levels.params(Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER, Level.NONE))
def test_a_killed_supervisor_finds_its_programs_again(mixed: Mixed, tmp_path: Path, level: Level) -> None:
    names = [name for name in PROGRAMS if name in RUNTIMES]
    server, parts = mixed(names, trying())
    task = whole_runs.write_task(tmp_path / "task", {"assignments": parts}, {"per_agent": {"attempts": EACH}})
    with whole_runs.running(task, tmp_path, f"workspace.seal={level}") as layout:
        agents = tuple(fold(layout.journal).fleet.agents)
        wait_until(lambda: tried(layout).keys() == set(agents), PATIENCE, "an attempt of each")
        supervisor = holder(layout.lock)
        assert supervisor
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: holder(layout.lock) is None, what="its end")
        before = fold(layout.journal).identities
        assert [who for who in agents if is_alive(before[who][1])], "the programs outlive their supervisor"
        done = coral_interpreter("resume", "--detach", cwd=tmp_path, seconds=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        after = fold(layout.journal).identities
        adopted = [who for who in agents if is_alive(before[who][1])]
        assert adopted
        assert [after[who] for who in adopted] == [before[who] for who in adopted], "none is started beside them"
        wait_until(lambda: holder(layout.lock) is None, PATIENCE, "the end of the run")
    assert whole_runs.denied(layout) == []
    assert tried(layout) == dict.fromkeys(agents, EACH)
    assert {attempt.seal for attempt in readable(Store(layout.attempts)) if attempt.agent} == {level}
    fleet = fold(layout.journal).fleet
    spent = {name: fleet.agents[f"agent-{number}"].spent.tokens for number, name in enumerate(names, start=1)}
    assert {name for name, tokens in spent.items() if not tokens} <= UNREPORTED
    heads = {agent: delivered(layout, agent) for agent in agents}
    everything = [head for found in heads.values() for head in found]
    assert len(set(everything)) == len(everything), "no heartbeat is handed over twice"
    # How many are handed over hangs on how much an agent submits while nobody supervises: that is told at once, later.
    assert everything
    for agent, own in heads.items():
        conversation = "\n".join([turn for turn in server.turns if turn.has(f"You are {agent},")][-1].texts)
        told = [head for head in everything if head in conversation]
        assert set(told) <= set(own), "nobody hears of another's"
        assert set(own[:-1]) <= set(told), "its budget may have ended with the last"
        assert [conversation.count(head) for head in told] == [1] * len(told)
