"""A whole run with a real program: each attempt is followed by its own heartbeat, in the agent's own conversation."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest
from agent_programs import NODE, PROGRAMS
from driven import Drive, Mixed
from model_server import Asked, ModelServer, Step
from real_runs import READ_NUMBER
from records import readable

from attempts.store import Store
from coral import runtimes
from coral.journal import fold
from coral.transcript import Kind, entries, launches
from workspace.layout import Layout, runs_under

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

AGENTS = 2
EACH = 6  # attempts; of the last nobody needs to hear any more
FLEET = ("claude", "codex", "opencode", "qwen")
MOST_SECONDS = 240.0
# Who tells what it used when it is interrupted, or before. The others do so at the end of a turn or of a step, and here
# every turn is interrupted: then codex and qwen make up for it at the next end of a turn, opencode and gemini never do.
AT_INTERRUPTS = ("claude", "pi")
HEAD = re.compile(r"^## Heartbeat: reflect \(id .+\)$", re.MULTILINE)


def test_every_heartbeat_arrives_in_its_own_conversation(program: str, drive: Drive, tmp_path: Path) -> None:
    server, desk = drive(program, _worker())
    chosen = {"model": desk.model} if desk.model else {}
    _write_task(tmp_path / "task", {"runtime": program, "count": AGENTS, **chosen})
    _run(tmp_path, server, AGENTS)
    (layout,) = runs_under(tmp_path / "runs")
    _assert_what_was_used_is_counted(layout, program)


def test_a_mixed_fleet_works_on_one_task(mixed: Mixed, tmp_path: Path) -> None:
    for name in FLEET:
        if reason := PROGRAMS[name].missing or NODE.missing:
            pytest.skip(f"NOT RUN: {name}: {reason}")
    server, parts = mixed(FLEET, _worker())
    _write_task(tmp_path / "task", {"assignments": parts})
    _run(tmp_path, server, len(FLEET))


def _worker() -> Callable[[Asked], Step]:
    """A model whose every answer is another try."""
    numbers = count(1)

    def work(asked: Asked) -> Step:
        number = next(numbers)
        return Step(say=f"I try {number}.", run=f"echo {number} > x.txt && coral eval -m 'try {number}'")

    return work


def _run(tmp_path: Path, server: ModelServer, agents: int) -> None:
    """A whole run. Each agent hears of each of its attempts once, in its own conversation, but for the last one."""
    try:
        done = _coral(tmp_path, "start", str(tmp_path / "task"), "--plain")
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        _coral(tmp_path, "stop")
    (layout,) = runs_under(tmp_path / "runs")
    found = [each for each in readable(Store(layout.attempts)) if each.number > 0]
    assert [each.score is not None for each in found] == [True] * len(found)
    assert len(found) == agents * EACH
    told = {agent: _delivered(layout, agent) for agent in fold(layout.journal).fleet.agents}
    everything = [head for heads in told.values() for head in heads]
    assert len(set(everything)) == len(everything)
    for agent, heads in told.items():
        assert len(heads) >= EACH - 1  # its budget ends with the last
        seen = [each for each in server.turns if each.has(f"You are {agent},", *heads[: EACH - 1])]
        conversation = "\n".join(seen[-1].texts)
        assert [head for head in everything if head in conversation][: EACH - 1] == heads[: EACH - 1]
        assert [conversation.count(head) for head in heads[: EACH - 1]] == [1] * (EACH - 1)


def _assert_what_was_used_is_counted(layout: Layout, program: str) -> None:
    """As the program tells it; and its transcript has the conversation, whichever program it is."""
    fleet, runtime = fold(layout.journal).fleet, runtimes.find(program, {})
    tells = getattr(runtime, "tells", "")
    if program in AT_INTERRUPTS:
        assert fleet.run.spent.tokens > 0
        assert fleet.run.spent.money is not None
    if not tells:
        assert fleet.run.spent.tokens == 0
    assert sum(each.spent.tokens for each in fleet.agents.values()) == fleet.run.spent.tokens
    told = [each for number in launches(layout, "agent-1") for each in entries(layout, "agent-1", number, runtime)]
    assert {Kind.PROMPT, Kind.REPLY, Kind.TOOL, Kind.END} <= {each.kind for each in told}
    assert any("I try" in each.text for each in told if each.kind is Kind.REPLY)
    assert any("coral eval -m" in each.text for each in told if each.kind is Kind.TOOL)


def _delivered(layout: Layout, agent: str) -> list[str]:
    """What the prompts of an agent's launches said of heartbeats, in order."""
    prompts = [each.read_text() for each in sorted(layout.logs(agent).glob("*.prompt.md"))]
    return [head for text in prompts for head in HEAD.findall(text)]


def _write_task(folder: Path, agents: Mapping[str, object]) -> None:
    (folder / "seed").mkdir(parents=True)
    (folder / "seed" / "x.txt").write_text("0")
    (folder / "grade.py").write_text(READ_NUMBER)
    (folder / "task.yaml").write_text(
        "task:\n  name: number\n  description: Make the number large.\ngrader:\n  entry: grade.py:grade\n"
        f"agents: {json.dumps(agents)}\nbudget: {{per_agent: {{attempts: {EACH}}}}}\n"
    )


def _coral(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        [sys.executable, "-P", "-m", "coral", *words],
        cwd=cwd,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
