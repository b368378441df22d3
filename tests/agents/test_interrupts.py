"""Whenever a program is interrupted: what its output has acknowledged is kept, and the rest is said again."""

import random

import pytest
from driven import Drive
from model_server import Asked, Step

from coral.fleet.events import Ending

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

INTERRUPTS = 4
# Seconds in which each program starts, asks its model and begins with a tool, on a busy machine.
WINDOW = {"claude": 2.0, "codex": 1.5, "opencode": 8.0, "gemini": 4.0, "qwen": 5.0, "copilot": 4.0, "pi": 4.0}
FILLER = "A line of a long prompt.\n" * 8000


def test_interrupts_at_any_moment_lose_no_prompt(program: str, drive: Drive) -> None:
    chance = random.Random(program)
    number = iter(range(1000))

    def work(asked: Asked) -> Step:
        # Never twice the same, or gemini takes it for a loop; qwen reads the comment.
        step = next(number)
        return Step(say=f"I do part {step} now.", run=f"echo {step}; sleep 300 # intentional-sleep: part {step}")

    server, desk = drive(program, work)
    session: str | None = None
    acknowledged: list[str] = []
    owed: list[str] = []
    for turn in range(INTERRUPTS):
        owed.append(f"MARK-{turn}-END")
        launch = desk.launch("\n".join(["Please do this.", *owed, FILLER if turn == 1 else ""]), session)
        launch.hear_for(0.2 * chance.random() if turn == 0 else WINDOW[program] * chance.random())
        launch.interrupt()
        ended = launch.end()
        if ended.ending is Ending.UNKNOWN_SESSION:
            assert acknowledged == []
            session = None
            continue
        session = ended.session or session
        if ended.heard:
            acknowledged, owed = acknowledged + owed, []
    server.then(Step(say="That is all."))
    last = desk.launch("\n".join(["At last.", *owed]), session).end()
    if last.ending is Ending.UNKNOWN_SESSION:
        assert acknowledged == []
        last = desk.launch("\n".join(["At last.", *owed])).end()
    assert last.ending is Ending.CLEAN
    assert server.turns[-1].has(*acknowledged, "At last.", *owed)
