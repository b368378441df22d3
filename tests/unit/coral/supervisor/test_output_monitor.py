"""What an agent's program prints: only what is new, in whole lines, at a bounded cost."""

import json
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from coral.fleet.agent_state import OutputCounts, Spent
from coral.fleet.events import Ending, OutputSeen, Used
from coral.runtimes.line_tail import LONGEST_LINE, LineTail
from coral.runtimes.model import OutputEvent, Tool
from coral.runtimes.registry import find
from coral.supervisor.output_monitor import (
    MAX_ANSWERS,
    QUIET_PAUSE,
    QUIET_SECONDS,
    REMIND_SECONDS,
    OutputMonitor,
    counted,
)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "0001.jsonl"


def monitor(output: Path, runtime: str = "scripted", session: str | None = None) -> OutputMonitor:
    options = {"script": ["hang"]} if runtime == "scripted" else {"start": ["true"]}
    return OutputMonitor("agent-1", 1, find(runtime, options), LineTail(output), output.with_suffix(".err"), session)


def monitor_of(program: str, output: Path, session: str | None = None) -> OutputMonitor:
    return OutputMonitor("agent-1", 1, find(program, {}), LineTail(output), output.with_suffix(".err"), session)


def append(output: Path, text: bytes) -> None:
    with output.open("ab") as file:
        file.write(text)


def test_the_silent_are_listened_to_less_often_until_they_speak(output):
    listening = monitor(output)
    for now in (0.5, 1.0, QUIET_SECONDS - 0.5):
        assert listening.is_due(now)
        listening.read(now)
    looks = [QUIET_SECONDS + step / 2 for step in range(40)]
    heard = [now for now in looks if listening.is_due(now) and listening.read(now) is not None]
    assert [later - now for now, later in pairwise(heard)] == [QUIET_PAUSE] * (len(heard) - 1)
    assert len(heard) == 20 / QUIET_PAUSE
    output.write_bytes(b"a word\n")
    listening.read(60.0)
    assert listening.is_due(60.5)


def test_nothing_is_heard_before_a_first_output_and_a_session_where_the_program_has_any(output):
    listening = monitor(output)
    assert listening.read(1.0) == []
    output.write_bytes(b'{"phase": "thinking"}\n')
    assert listening.read(2.0) == []
    append(output, b'{"session": "abc"}\n')
    assert listening.read(3.0) == [
        OutputSeen(agent="agent-1", launch=1, has_prompt=True, session="abc", activity="thinking")
    ]
    output.write_bytes(b"hello\n")
    assert monitor(output, "command").read(1.0) == [
        OutputSeen(agent="agent-1", launch=1, has_prompt=True, reply="hello", place=6)
    ]


def test_a_turn_of_codex_that_has_begun_is_output_and_the_prompt_is_there_with_its_first_item(output):
    listening = monitor(output, "codex")
    append(output, b'{"type":"thread.started","thread_id":"t"}\n')
    assert listening.read(1.0) == []
    begun = OutputSeen(agent="agent-1", launch=1, session="t", has_prompt=False, activity="thinking")
    append(output, b'{"type":"turn.started"}\n')
    assert listening.read(2.0) == [begun]
    append(output, b'{"type":"error","message":"Reconnecting... 1/5 (timeout)"}\n')
    assert [seen.has_prompt for seen in listening.read(3.0)] == [False]
    append(output, b'{"type":"item.started","item":{"id":"1","type":"command_execution"}}\n')
    assert [seen.has_prompt for seen in listening.read(4.0)] == [True]


def test_hooks_of_claude_run_before_its_turn_begins(output):
    listening = monitor(output, "claude")
    append(output, b'{"type":"system","subtype":"hook_started","session_id":"s"}\n')
    assert listening.read(1.0) == []
    append(output, b'{"type":"system","subtype":"init","session_id":"s","model":"m"}\n')
    assert [seen.has_prompt for seen in listening.read(2.0)] == [False]
    append(output, b'{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"Hello"}]}}\n')
    assert [seen.has_prompt for seen in listening.read(3.0)] == [True]


def test_usage_is_told_as_what_the_launch_came_to_and_of_a_conversation_names_it(output):
    listening = monitor(output, session="abc")
    output.write_bytes(b'{"phase": "thinking"}\n')
    listening.read(1.0)
    assert listening.used() == []
    append(output, b'{"usage": {"input": 10, "output": 1, "cost": 0.25}}\n{"usage": {"input": 5, "cached": 3}}\n')
    listening.read(2.0)
    figure = Spent(input=15, cached=3, output=1, money=0.25)
    assert listening.used() == [Used(agent="agent-1", launch=1, figure=figure)]
    assert listening.used() == []
    output.write_bytes(b'{"type": "result", "session_id": "abc", "total_cost_usd": 0.5}\n')
    listening = monitor_of("claude", output)
    listening.read(1.0)
    assert listening.used() == [Used(agent="agent-1", launch=1, figure=Spent(money=0.5), session="abc")]


def test_what_a_program_wrote_down_itself_is_counted_once_it_has_ended(output, tmp_path):
    thread = "01a1ffa1-d2d8-7a33-8265-40f45bb321ce"
    book = tmp_path / f"state/sessions/2026/11/21/rollout-2026-11-21T19-42-37-{thread}.jsonl"
    book.parent.mkdir(parents=True)
    usage = {"input_tokens": 1000, "cached_input_tokens": 900, "output_tokens": 17}
    info = {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}
    book.write_text(json.dumps(info) + "\n")
    output.write_text(json.dumps({"type": "thread.started", "thread_id": thread}) + "\n")
    listening = monitor_of("codex", output)
    listening.read_usage_log(tmp_path / "state")
    assert listening.used() == []  # it has not said which thread is its own
    listening.read(1.0)
    listening.read_usage_log(tmp_path / "state")
    spent = Spent(input=100, cached=900, output=17)
    assert listening.used() == [Used(agent="agent-1", launch=1, figure=spent, session=thread)]
    listening.read_usage_log(tmp_path / "state")
    assert listening.used() == []
    # Most programs keep no books that we could read.
    other = monitor(output, session="abc")
    other.read_usage_log(tmp_path / "state")
    assert other.used() == []


def test_what_says_nothing_new_is_only_a_reminder_now_and_then(output):
    listening = monitor(output, session="abc")
    output.write_bytes(b'{"phase": "busy"}\n')
    assert listening.read(100.0) != []
    for seconds, expected in ((1.0, False), (REMIND_SECONDS, True), (REMIND_SECONDS + 1, False)):
        append(output, b'{"phase": "busy"}\n')
        assert (listening.read(100.0 + seconds) != []) is expected
    assert listening.read(1000.0) == []  # silence is no sign of life


def replies(listening: OutputMonitor) -> list[tuple[str, int]]:
    return [(sign.reply, sign.place) for sign in listening.read(1.0)]


def test_each_answer_is_told_and_of_other_words_the_last(output):
    said = ["I look", "ALERT: no disk", "I go on", "HEARTBEAT_OK", "HEARTBEAT_OK", "and on", "and on, and on"]
    lines = [json.dumps({"reply": reply}).encode() + b"\n" for reply in said]
    ends = dict(zip(range(len(said)), accumulate(map(len, lines)), strict=True))
    output.write_bytes(b"".join(lines))
    told = [(said[at], ends[at]) for at in (1, 3, 4, 6)]
    assert replies(monitor(output, session="abc")) == told
    # Read in pieces, each stands where it stood.
    output.write_bytes(b"")
    listening, heard = monitor(output, session="abc"), []
    for line in lines:
        for part in (line[:5], line[5:]):
            append(output, part)
            heard += replies(listening)
    assert [(reply, place) for reply, place in heard if reply] == list(zip(said, ends.values(), strict=True))


def test_answers_are_told_once_a_session_is_known_and_only_so_many(output):
    listening = monitor(output)
    output.write_bytes(b"".join(b'{"reply": "ALERT: %d"}\n' % number for number in range(20)))
    assert replies(listening) == []
    append(output, b'{"session": "abc"}\n')
    assert [reply for reply, _ in replies(listening)] == [f"ALERT: {n}" for n in range(20 - MAX_ANSWERS, 20)]
    assert replies(listening) == []


def test_the_same_words_again_say_nothing_new_but_the_same_answer_does(output):
    listening = monitor(output, session="abc")
    for said, told in (("hm", 1), ("hm", 0), ("HEARTBEAT_OK", 1), ("HEARTBEAT_OK", 1), ("hm", 1)):
        append(output, json.dumps({"reply": said}).encode() + b"\n")
        assert len(listening.read(1.0)) == told


def test_after_a_line_that_is_too_long_places_are_as_they_are_in_the_file(output):
    output.write_bytes(b"x" * (3 * LONGEST_LINE) + b'\n{"reply": "HEARTBEAT_OK"}\n{"reply": "ALERT: a')
    listening, heard = monitor(output, session="abc"), []
    while listening.tail.has_more:
        heard += replies(listening)
    length = 3 * LONGEST_LINE + 1 + 26
    assert heard[-1] == ("HEARTBEAT_OK", length)
    append(output, b'"}')
    assert replies(listening) == []
    (last,) = listening.read(2.0, ended=True)
    assert (last.reply, last.place) == ("ALERT: a", output.stat().st_size)


def test_garbage_is_a_sign_of_life_and_nothing_more(output):
    listening = monitor(output, session="abc")
    output.write_bytes(b"\xff\xfe\x00\n[[[[\n{}\n")
    assert listening.read(1.0) == [OutputSeen(agent="agent-1", launch=1, has_prompt=True, session="abc")]


def test_a_turn_that_failed_at_once_does_not_show_that_its_prompt_was_taken_in(output):
    listening = monitor_of("gemini", output)
    error = {"message": "You have exhausted your daily quota on this model."}
    lines = [
        {"type": "init", "session_id": "abc", "model": "m"},
        {"type": "message", "role": "user", "content": "Do it."},
        {"type": "error", "severity": "error", **error},
        {"type": "result", "status": "error", "error": error, "stats": {}},
    ]
    output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert listening.read(1.0) == []
    assert listening.summary().ending is Ending.LIMIT
    answer = {"type": "message", "role": "assistant", "content": "I look around.", "delta": True}
    output.write_text("".join(json.dumps(line) + "\n" for line in [*lines[:2], answer, *lines[2:]]))
    listening = monitor_of("gemini", output)
    assert [sign.session for sign in listening.read(1.0)] == ["abc"]


def test_a_conversation_that_is_given_up_has_not_taken_its_prompt_in(output):
    lost = ["No conversation found with session ID: abc"]
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "abc"}
    output.write_text(json.dumps({**result, "errors": lost}) + "\n")
    listening = monitor_of("claude", output, "abc")
    assert listening.read(1.0) == []
    assert listening.ending is Ending.UNKNOWN_SESSION


def test_an_interrupt_at_once_does_not_show_that_the_prompt_was_taken_in(output):
    words = [
        '{"type": "session.skills_loaded", "data": {"skills": []}}',
        '{"type": "abort", "data": {"reason": "user_initiated"}}',
        '{"type": "session.background_tasks_changed", "data": {}}',
        '{"type": "assistant.idle", "data": {}}',
        '{"type": "result", "sessionId": "abc", "exitCode": 0}',
    ]
    output.write_text("\n".join(words) + "\n")
    listening = monitor_of("copilot", output, "abc")
    assert listening.read(1.0) == listening.read(2.0, ended=True) == []
    assert listening.ending is Ending.INTERRUPTED
    # What came before the interrupt shows it.
    said = '{"type": "assistant.message", "data": {"content": "I look.", "toolRequests": [{"name": "bash"}]}}'
    output.write_text("\n".join([words[0], said, *words[1:]]) + "\n")
    listening = monitor_of("copilot", output, "abc")
    assert [event.session for event in listening.read(1.0)] == ["abc"]


def printing(output: Path, listening: OutputMonitor, *lines: dict[str, object]) -> OutputCounts:
    """What it has counted after these lines."""
    with output.open("ab") as file:
        file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
    listening.read(1.0)
    return listening.count


def test_edits_compactions_and_retries_are_counted(output):
    listening = monitor(output, session="abc")
    assert printing(output, listening, {"phase": "thinking"}) == OutputCounts()
    assert printing(output, listening, {"edited": "a.py"}, {"edited": "a.py"}, {"edited": ""}) == OutputCounts(edits=2)
    assert printing(output, listening, {"compacted": True}, {"compacted": False}) == OutputCounts(
        edits=2, compactions=1
    )
    retry = {"phase": "retrying", "retry": {"attempt": 1}}
    assert printing(output, listening, retry, retry) == OutputCounts(edits=2, compactions=1, retries=2)
    assert printing(output, listening, {"phase": "thinking"}, retry) == OutputCounts(
        edits=2, compactions=1, retries=3, answered=2
    )


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ({"phase": "tool"}, True),
        ({"reply": "I see"}, True),
        ({"message": "waiting"}, False),
        ({"session": "abc"}, False),
        ({"phase": "ended", "ended": True}, False),
        ({"phase": "ended", "error": "overloaded"}, False),
        ({"edited": "a.py"}, False),
        ({"compacted": True}, False),
    ],
)
def test_what_the_model_says_or_does_is_an_answer_and_nothing_else(output, line, answers):
    listening = monitor(output, session="abc")
    count = printing(output, listening, {"retry": {}}, line)
    assert (count.retries, count.answered) == (1, int(answers))


def test_signs_that_prove_little_and_pieces_of_a_reply():
    retried = OutputCounts(retries=1)
    assert counted(retried, OutputEvent(phase="thinking", early=True)) == retried
    assert counted(retried, OutputEvent(part="I ")).answered == 1
    assert counted(retried, OutputEvent(tool=Tool(id="1"))).answered == 1
    assert counted(retried, OutputEvent(tool=Tool(id="1"), edited="a.py")) == OutputCounts(
        edits=1, retries=1, answered=1
    )


def test_each_new_count_is_told_at_once(output):
    listening = monitor(output, session="abc")
    told = []
    for line in ({"phase": "tool"}, {"phase": "tool"}, {"edited": "a"}, {"phase": "tool"}, {"edited": "a"}):
        append(output, json.dumps(line).encode() + b"\n")
        told += [sign.count.edits for sign in listening.read(1.0)]
    assert told == [0, 1, 2]
