"""Real programs that also speak the Agent Client Protocol, driven by it: the same conversations, another way."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import whole_runs
from agent_programs import NODE, PROGRAMS
from driven import Desk, Mixed
from model_server import ModelServer, Script, Step
from whole_runs import delivered, trying

from coral.fleet.events import Ending
from coral.runtimes.registry import find

pytestmark = pytest.mark.timeout(900)

COMMANDS = {
    "opencode": ["opencode", "acp"],
    "qwen": ["qwen", "--acp", "--yolo", "--auth-type", "openai"],
    "copilot": ["copilot", "--acp", "--yolo"],
}
ENV = {"QWEN_CODE_NO_RELAUNCH": "true", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
FIRST, SECOND = "The first prompt: MARK-ONE.", "The second prompt: MARK-TWO."
LONG = "touch started; sleep 300 # intentional-sleep: the test interrupts it"
ANSWER = Step(say="Everything that was asked is done.", usage=(1200, 17, 900))
Speak = Callable[..., tuple[ModelServer, Desk]]


@pytest.fixture(params=COMMANDS)
def speaker(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if reason := PROGRAMS[name].missing or NODE.missing:
        pytest.skip(f"NOT RUN: {name}: {reason}")
    return name


@pytest.fixture
def speak(speaker: str, mixed: Mixed, tmp_path: Path) -> Iterator[Speak]:
    """A scripted model, and a desk of the program, which talks to it."""
    with ExitStack() as closing:

        def begin(script: Script = ()) -> tuple[ModelServer, Desk]:
            server, _ = mixed([speaker], script)
            runtime = find("acp", {"command": COMMANDS[speaker], "env": ENV})
            assert runtime.check() == []
            desk = Desk(tmp_path, runtime, "")
            closing.callback(desk.clean)
            return server, desk

        yield begin


def test_a_conversation_is_gone_on_with_after_an_interrupt_and_an_end(speak: Speak) -> None:
    edit = Step(say="An edit first.", run="echo changed > x.txt; pwd", usage=(1000, 42, 300))
    server, desk = speak([edit, Step(say="This will take long.", run=LONG), ANSWER])
    launch = desk.launch(FIRST)
    launch.wait_for((desk.clone / "started").exists, "the tool's start")
    launch.interrupt()
    ended = launch.end()
    assert (ended.ending, ended.heard) == (Ending.INTERRUPTED, True), launch.words
    assert (desk.clone / "x.txt").read_text() == "changed\n"
    assert "An edit first." in ended.replies
    tools = [sign.tool for sign in ended.signs if sign.tool is not None]
    assert any("echo changed" in tool.text for tool in tools if not tool.over)
    assert any(str(desk.clone) in tool.text for tool in tools if tool.over)
    again = desk.launch(SECOND, ended.session).end()
    assert (again.ending, again.session) == (Ending.CLEAN, ended.session)
    assert ANSWER.say in again.replies
    assert "An edit first." not in again.replies, "what was said before is told when it is loaded, and is not new"
    assert server.turns[-1].has(FIRST, edit.say, SECOND)
    figures = [sign.usage for sign in again.signs if sign.usage is not None]
    assert (figures[-1].input, figures[-1].cached, figures[-1].output) == (300, 900, 17)


def test_a_conversation_that_is_gone_is_told_apart(speaker: str, speak: Speak) -> None:
    known = {"opencode": "ses_0000000000000000000000000"}
    server, desk = speak()
    ended = desk.launch(FIRST, known.get(speaker, "5bd0d3b4-3c3c-4d3c-8d3c-3c3c3c3c3c3c")).end()
    assert (ended.ending, ended.heard) == (Ending.UNKNOWN_SESSION, False)
    assert server.turns == []


def test_a_refused_key_is_told_apart(speaker: str, speak: Speak) -> None:
    _, desk = speak([Step(error="denied", times=1000)])
    # Copilot says it as an answer, and nobody is retired for an answer's words.
    expected = Ending.CRASHED if speaker == "copilot" else Ending.TERMINAL
    assert desk.launch(FIRST).end().ending is expected


def test_in_a_whole_run_every_heartbeat_arrives_in_the_one_conversation(mixed: Mixed, tmp_path: Path) -> None:
    name, attempts = "opencode", 3
    if reason := PROGRAMS[name].missing or NODE.missing:
        pytest.skip(f"NOT RUN: {name}: {reason}")
    server, _ = mixed([name], trying())
    for folder in ("share", "state"):  # as where it was used before, for the login
        (Path.home() / ".local" / folder / name).mkdir(parents=True)
    agents: dict[str, object] = {"runtime": "acp", "options": {"command": COMMANDS[name], "env": ENV}}
    task = whole_runs.write_task(tmp_path / "task", agents, {"attempts": attempts})
    layout = whole_runs.start(task, tmp_path)
    heads = delivered(layout, "agent-1")[: attempts - 1]
    assert len(heads) == len(set(heads)) == attempts - 1
    conversation = "\n".join(server.turns[-1].texts)
    assert [conversation.count(head) for head in heads] == [1] * len(heads)
    assert server.turns[-1].has("You are agent-1,", *heads)
