"""A program's conversation outlives its launches: however one ends, the next goes on with what was said before."""

import pytest
from driven import Desk, Drive, Launch
from model_server import ModelServer, Step

from coral.fleet.events import Ending

pytestmark = pytest.mark.timeout(900)

FIRST, SECOND = "The first prompt: MARK-ONE.", "The second prompt: MARK-TWO."
# qwen refuses a bare sleep, and reads this comment.
LONG = "touch started; sleep 300 # intentional-sleep: the test interrupts it"
ANSWER = Step(say="Everything that was asked is done.", usage=(1200, 17, 900))
# Which programs leave the shells of an interrupted tool running: whoever supervises them has to end those.
LEAVES_SHELLS = {"opencode", "gemini", "pi"}
# copilot writes its conversation down up to a second after the fact: what is killed before that is to be begun again.
SAVES_LATE = {"copilot"}


def test_a_long_prompt_a_tool_and_an_answer_are_gone_on_with(program: str, drive: Drive) -> None:
    edit = Step(say="An edit first.", run="echo changed > x.txt; pwd; echo in $PWD", usage=(1000, 42, 300))
    server, desk = drive(program, [edit, ANSWER, Step(say="Noted, go on.")])
    prompt = "-- It begins like an option.\n" + "A line of the long story.\n" * 8000 + "Its last word is MARK-END."
    assert len(prompt) > 200_000
    launch = desk.launch(prompt)
    assert launch.leaves_nothing()
    first = launch.end()
    assert (desk.clone / "x.txt").read_text() == "changed\n"
    assert server.turns[0].has(prompt)
    assert server.turns[1].has(prompt, edit.say, str(desk.clone), f"in {desk.clone}")
    assert first.ending is Ending.CLEAN
    assert ANSWER.say in first.replies
    second = desk.launch(SECOND, first.session).end()
    assert second.ending is Ending.CLEAN
    assert second.session == first.session != ""
    assert "Noted, go on." in second.replies
    assert server.turns[2].has(prompt, edit.say, ANSWER.say, SECOND)
    assert server.strange == []


def _in_mid_tool(program: str, drive: Drive) -> tuple[ModelServer, Desk, Launch]:
    server, desk = drive(program, [Step(say="This will take long.", run=LONG), ANSWER])
    launch = desk.launch(FIRST)
    launch.wait_for((desk.clone / "started").exists, "the tool's start")
    return server, desk, launch


def test_an_interrupt_in_mid_tool_keeps_the_conversation(program: str, drive: Drive) -> None:
    server, desk, launch = _in_mid_tool(program, drive)
    launch.interrupt()
    assert launch.is_left() if program in LEAVES_SHELLS else launch.leaves_nothing()
    ended = launch.end()
    assert ended.ending is Ending.INTERRUPTED
    again = desk.launch(SECOND, ended.session).end()
    assert (again.ending, again.session) == (Ending.CLEAN, ended.session)
    assert server.turns[-1].has(FIRST, SECOND)


def test_an_interrupt_in_mid_stream_keeps_the_conversation(program: str, drive: Drive) -> None:
    talk = Step(say="A first word, and then nothing more for a long time.", hang=True)
    server, desk = drive(program, [Step(say="I look around.", run="echo looked"), talk, ANSWER])
    launch = desk.launch(FIRST)
    launch.wait_for(lambda: len(server.turns) == 2 and server.streamed, "the answer's first words")
    launch.interrupt()
    ended = launch.end()
    assert ended.ending is Ending.INTERRUPTED
    again = desk.launch(SECOND, ended.session).end()
    assert again.ending is Ending.CLEAN
    assert server.turns[-1].has(FIRST, "I look around.", SECOND)


def test_a_killed_program_goes_on_with_its_conversation(program: str, drive: Drive) -> None:
    server, desk, launch = _in_mid_tool(program, drive)
    launch.hear()
    launch.kill()
    ended = launch.end()
    assert ended.ending is Ending.CRASHED
    again = desk.launch(SECOND, ended.session).end()
    if program in SAVES_LATE and again.ending is Ending.UNKNOWN_SESSION:
        again = desk.launch(f"{FIRST} {SECOND}").end()
    assert again.ending is Ending.CLEAN
    assert server.turns[-1].has(FIRST, SECOND)


def test_a_conversation_that_is_gone_is_told_apart(program: str, drive: Drive) -> None:
    server, desk = drive(program)
    known = {"opencode": "ses_0000000000000000000000000"}
    ended = desk.launch(FIRST, known.get(program, "5bd0d3b4-3c3c-4d3c-8d3c-3c3c3c3c3c3c")).end()
    assert ended.ending is Ending.UNKNOWN_SESSION
    assert server.turns == []
