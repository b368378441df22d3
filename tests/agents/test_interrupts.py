"""Whenever a program is interrupted: what its output has acknowledged is kept, and the rest is said again."""

import random
from collections.abc import Callable
from itertools import count

import pytest
from driven import Desk, Drive, Launch
from model_server import ModelServer, Step

from coral.fleet.events import Ending

pytestmark = pytest.mark.timeout(900)

# The moments that an interrupt follows, and by how many seconds at most. They are seen and not reckoned: on a slow
# machine they come later, and are the same. Those in an answer or a tool come in test_conversations.py too.
MOMENTS = {"start": 1.0, "first words": 0.2, "acknowledged": 0.0, "question": 0.2, "answer": 0.3, "tool": 0.3}
TWICE = ("start", "first words", "question")  # no other test has these
FILLER = "A line of a long prompt.\n" * 8000
LONG = 3  # the turn whose prompt is 200 kB long


def test_interrupts_at_any_moment_lose_no_prompt(program: str, drive: Drive) -> None:
    chance, numbers = random.Random(program), count()
    server, desk = drive(program, lambda asked: _work(next(numbers)))
    session: str | None = None
    acknowledged: list[str] = []
    owed: list[str] = []
    for turn, (moment, delay) in enumerate(_moments(chance)):
        owed.append(f"MARK-{turn}-BEGINS {FILLER if turn == LONG else ''} MARK-{turn}-ENDS")
        launch = desk.launch("\n".join(["Please do this.", *owed]), session)
        launch.hear_until(_comes(moment, launch, server, desk))
        launch.hear_until(lambda: False, delay)
        launch.interrupt()
        ended = launch.end()
        if ended.ending is Ending.UNKNOWN_SESSION:
            assert acknowledged == [], f"turn {turn}: {launch.words}"
            session = None
            continue
        session = ended.session or session
        if ended.heard:
            acknowledged, owed = acknowledged + owed, []
    assert acknowledged
    server.then(Step(say="That is all."))
    launch = desk.launch("\n".join(["At last.", *owed]), session)
    last = launch.end()
    if last.ending is Ending.UNKNOWN_SESSION:
        assert acknowledged == []
        launch = desk.launch("\n".join(["At last.", *owed]))
        last = launch.end()
    assert last.ending is Ending.CLEAN, launch.words
    assert server.turns[-1].has(*acknowledged, "At last.", *owed)


@pytest.mark.parametrize(("program", "lock"), [("qwen", "extension-store/lock.lock")], indirect=["program"])
def test_the_lock_of_a_killed_launch_stops_no_other(program: str, lock: str, drive: Drive) -> None:
    server, desk = drive(program, [Step(say="I begin."), Step(say="I go on.")])
    begun = desk.launch("The prompt: MARK-ONE.").end()
    (desk.layout.state("agent-1") / lock).mkdir()
    launch = desk.launch("Go on: MARK-TWO.", begun.session)
    assert launch.end().ending is Ending.CLEAN, launch.words
    assert server.turns[-1].has("MARK-ONE", "MARK-TWO")


def _work(number: int) -> Step:
    # Never twice the same, or gemini takes it for a loop; qwen reads the comment.
    words = f"I do part {number} now, as I was asked, and then the next one."
    return Step(say=words, run=f"touch tool-{number}; sleep 300 # intentional-sleep: part {number}", between=0.02)


def _moments(chance: random.Random) -> list[tuple[str, float]]:
    """The first comes as soon as a signal can; of the others each kind comes."""
    rest = [*MOMENTS, *TWICE]
    chance.shuffle(rest)
    return [("start", 0.2 * chance.random()), *((kind, MOMENTS[kind] * chance.random()) for kind in rest)]


def _comes(moment: str, launch: Launch, server: ModelServer, desk: Desk) -> Callable[[], bool]:
    """Whether it has come, in this launch."""
    asked, begun, tools = len(server.turns), server.begun, len(list(desk.clone.glob("tool-*")))
    return {
        "start": lambda: True,
        "first words": lambda: bool(launch.output),
        "acknowledged": lambda: launch.heard,
        "question": lambda: len(server.turns) > asked,
        "answer": lambda: server.begun > begun,
        "tool": lambda: len(list(desk.clone.glob("tool-*"))) > tools,
    }[moment]
