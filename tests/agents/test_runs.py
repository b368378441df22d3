"""A whole run with a real program: each attempt is followed by its own heartbeat, in the agent's own conversation."""

import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from driven import Drive
from model_server import Asked, Step
from real_runs import READ_NUMBER

from attempts.store import Store
from coral.journal import fold
from workspace.layout import Layout, runs_under

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

AGENTS, ATTEMPTS = 2, 6
MOST_SECONDS = 240.0
HEAD = re.compile(r"^## Heartbeat: reflect \(id .+\)$", re.MULTILINE)


def test_every_heartbeat_arrives_in_its_own_conversation(program: str, drive: Drive, tmp_path: Path) -> None:
    numbers = count(1)

    def work(asked: Asked) -> Step:
        number = next(numbers)
        return Step(say=f"I try {number}.", run=f"echo {number} > x.txt && coral eval -m 'try {number}'")

    server, desk = drive(program, work)
    _write_task(tmp_path / "task", program, desk.model)
    try:
        done = _coral(tmp_path, "start", str(tmp_path / "task"), "--plain")
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        _coral(tmp_path, "stop")
    (layout,) = runs_under(tmp_path / "runs")
    found = [each for each in Store(layout.attempts).scan() if each.number > 0]
    assert [each.score is not None for each in found] == [True] * len(found)
    assert len(found) >= ATTEMPTS
    delivered = {agent: _delivered(layout, agent) for agent in fold(layout.journal).fleet.agents}
    everything = [head for heads in delivered.values() for head in heads]
    assert len(set(everything)) == len(everything) >= ATTEMPTS - AGENTS
    for agent, told in delivered.items():
        # The end of the run may have come before its last launch asked the model for anything.
        heads = told if any(each.has(f"You are {agent},", *told) for each in server.turns) else told[:-1]
        conversation = "\n".join([each for each in server.turns if each.has(f"You are {agent},", *heads)][-1].texts)
        assert [head for head in everything if head in conversation] == heads
        assert [conversation.count(head) for head in heads] == [1] * len(heads)


def _delivered(layout: Layout, agent: str) -> list[str]:
    """What the prompts of an agent's launches said of heartbeats, in order."""
    prompts = [each.read_text() for each in sorted(layout.logs(agent).glob("*.prompt.md"))]
    return [head for text in prompts for head in HEAD.findall(text)]


def _write_task(folder: Path, program: str, model: str) -> None:
    (folder / "seed").mkdir(parents=True)
    (folder / "seed" / "x.txt").write_text("0")
    (folder / "grade.py").write_text(READ_NUMBER)
    chosen = f"  model: {model}\n" if model else ""
    (folder / "task.yaml").write_text(
        "task:\n  name: number\n  description: Make the number large.\ngrader:\n  entry: grade.py:grade\n"
        f"agents:\n  runtime: {program}\n  count: {AGENTS}\n{chosen}budget:\n  attempts: {ATTEMPTS}\n"
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
