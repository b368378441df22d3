"""Whole runs with real programs: each attempt is followed by its own heartbeat, in the agent's own conversation."""

from pathlib import Path

import levels
import pytest
import whole_runs
from agent_programs import PROGRAMS
from driven import Drive, Mixed
from model_server import Asked, ModelServer
from records import readable
from whole_runs import NOTED, delivered, noting, trying

from attempts.store import Store
from coral.journal import fold
from coral.runtimes import registry
from coral.runtimes.model import Runtime
from coral.runtimes.registry import RUNTIMES
from coral.views.transcript import EntryKind, entries, launches
from workspace.layout import Layout
from workspace.seal import Level

pytestmark = pytest.mark.timeout(900)

AGENTS, EACH = 2, 3  # attempts; of the last nobody needs to hear any more
FLEET = ("claude", "codex", "opencode", "qwen")
LEVELS = {name: (Level.BUBBLEWRAP, Level.NONE) for name in PROGRAMS if name in RUNTIMES}
# All in one run are at every level in test_adoption.py. Alone at each are those whose starts cost least.
LEVELS |= dict.fromkeys(("claude", "codex"), (Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER, Level.NONE))
USAGE = (1000, 17, 900)
UNREPORTED = {"opencode"}  # a step that is interrupted


@pytest.mark.parametrize(
    ("program", "level"),
    [
        pytest.param(name, *level.values, marks=level.marks, id=f"{name}-{level.id}")
        for name, chosen in LEVELS.items()
        for level in levels.params(*chosen)
    ],
    indirect=["program"],
)
def test_every_heartbeat_arrives_in_its_own_conversation(
    program: str, drive: Drive, tmp_path: Path, level: Level
) -> None:
    server, desk = drive(program, noting(USAGE))
    chosen = {"model": desk.model} if desk.model else {}
    layout = _run(tmp_path, {"runtime": program, "count": AGENTS, **chosen}, EACH, f"workspace.seal={level}")
    assert {attempt.seal for attempt in readable(Store(layout.attempts)) if attempt.agent} == {level}
    assert whole_runs.denied(layout) == []
    _assert_all_is_told(layout, server, AGENTS, EACH)
    _assert_what_was_used_is_counted(layout, server, program)
    _assert_the_transcript_is_whole(layout, registry.find(program, {}))


def test_a_mixed_fleet_works_on_one_task(mixed: Mixed, tmp_path: Path) -> None:
    server, parts = mixed(FLEET, trying())
    layout = _run(tmp_path, {"assignments": parts}, EACH)
    _assert_all_is_told(layout, server, len(FLEET), EACH)


def _run(tmp_path: Path, agents: dict[str, object], each: int, *overrides: str) -> Layout:
    budget = {"per_agent": {"attempts": each}}
    return whole_runs.start(whole_runs.write_task(tmp_path / "task", agents, budget), tmp_path, *overrides)


def _assert_all_is_told(layout: Layout, server: ModelServer, agents: int, each: int) -> None:
    """Every agent hears of each of its attempts but the last once, in its own conversation."""
    found = [attempt for attempt in readable(Store(layout.attempts)) if attempt.number > 0]
    assert [attempt.score is not None for attempt in found] == [True] * agents * each
    told = {agent: delivered(layout, agent) for agent in fold(layout.journal).fleet.agents}
    everything = [head for heads in told.values() for head in heads]
    assert len(set(everything)) == len(everything)
    for agent, heads in told.items():
        due = heads[: each - 1]
        assert len(due) == each - 1  # its budget ends with the last
        conversation = "\n".join(_turns(server, agent)[-1].texts)
        assert [head for head in everything if head in conversation][: each - 1] == due
        assert [conversation.count(head) for head in due] == [1] * len(due)


def _turns(server: ModelServer, agent: str) -> list[Asked]:
    return [turn for turn in server.turns if turn.has(f"You are {agent},")]


def _assert_what_was_used_is_counted(layout: Layout, server: ModelServer, program: str) -> None:
    """As much as the program tells, to the token."""
    fleet = fold(layout.journal).fleet
    counted = [(agent.spent.input, agent.spent.cached, agent.spent.output) for agent in fleet.agents.values()]
    expected = [_told(_turns(server, agent), program) for agent in fleet.agents]
    assert counted == [((USAGE[0] - USAGE[2]) * steps, USAGE[2] * steps, USAGE[1] * steps) for steps in expected]
    assert (fleet.run.spent.money is not None) == (program in ("claude", "opencode", "pi"))
    assert fleet.run.spent.tokens == sum(agent.spent.tokens for agent in fleet.agents.values())


def _told(turns: list[Asked], program: str) -> int:
    """Of how many steps of a conversation the program has told what they used."""
    assert all(turn.step is not None for turn in turns)
    ended = [number for number, turn in enumerate(turns, start=1) if turn.step and turn.step.say.startswith(NOTED)]
    assert len(ended) >= EACH - 1
    return len(ended) if program in UNREPORTED else len(turns)


def _assert_the_transcript_is_whole(layout: Layout, runtime: Runtime) -> None:
    """Every tool of these agents is interrupted. A program that prints a tool at its end prints none, and one that
    prints it at its beginning may be interrupted before; the transcript has what was printed."""
    numbers = launches(layout, "agent-1")
    told = [entry for number in numbers for entry in entries(layout, "agent-1", number, runtime)]
    printed = "".join(layout.output("agent-1", number).read_text() for number in numbers)
    assert {EntryKind.PROMPT, EntryKind.REPLY, EntryKind.END} <= {entry.kind for entry in told}
    assert any("I try" in entry.text for entry in told if entry.kind is EntryKind.REPLY)
    tools = [entry.text for entry in told if entry.kind is EntryKind.TOOL]
    assert any("coral eval -m" in text for text in tools) == ("coral eval -m" in printed), printed
