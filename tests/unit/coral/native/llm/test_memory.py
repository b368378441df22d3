"""The memory of the brain `llm`, on disk and back; and the transcript, which only grows."""

from pathlib import Path

from sample import attempt

from attempts.store import Store
from coral.native.llm.conversation import AnswerMessage, HeldCall, LlmMemory, PromptMessage, ResultMessage, ToolCall
from coral.native.llm.transcript import Transcript, excerpt
from coral.native.snapshots import Snapshots

CALLS = (ToolCall(id="c1", name="run", arguments="{}"), ToolCall(id="c2", name="log", arguments='{"count": 1}'))


def test_a_memory_comes_back_as_it_was(tmp_path: Path) -> None:
    snapshots = Snapshots.create(tmp_path, "s-1", LlmMemory)
    memory = (
        snapshots.memory.prompt("go").answer(AnswerMessage(text="I", calls=CALLS, reasoning=("{}",))).spend(30, 0.5)
    )
    failed = ResultMessage(call="c1", name="run", text="é\ud800", failed=True, chains=True)
    memory = memory.finish(CALLS[0], failed, failed=True)
    memory = memory.edit("plan", "x").new_attempt(7, "abc")
    snapshots.memory = LlmMemory(
        **{name: getattr(memory, name) for name in memory.__slots__ if name not in ("held", "summary", "waiting")},
        held=(HeldCall(call=CALLS[1], steps=2),),
        summary="so far",
        waiting=("later",),
    )
    snapshots.save()
    resumed = Snapshots.resume(tmp_path, "s-1", LlmMemory)
    assert resumed is not None
    assert resumed.memory == snapshots.memory
    assert resumed.memory.unfinished == CALLS[1:]
    assert (memory.steps, memory.tokens, memory.cost, memory.failures) == (0, 0, 0.0, ())


def test_a_failure_counts_until_a_file_is_changed() -> None:
    memory = LlmMemory(session="s")
    failed = ResultMessage(call="c1", name="run", text="no", failed=True)
    done = ResultMessage(call="c2", name="log", text="yes")
    memory = memory.finish(CALLS[0], failed, failed=True)
    assert memory.finish(CALLS[0], failed, failed=False).failures == memory.failures == ("run {}",)
    assert memory.finish(CALLS[1], done, failed=False).failures == ("run {}",)
    assert memory.finish(CALLS[1], done, failed=False, changed=True).failures == ()


def test_a_memory_that_contradicts_the_run_gives_way_to_exactly_the_one_before(tmp_path: Path) -> None:
    """The run was restored from an older copy, which knows nothing of the last attempt."""
    records = tmp_path / "attempts"
    records.mkdir()
    Store(records).publish(attempt(1, 1.0))
    snapshots, saved = Snapshots.create(tmp_path, "s-1", LlmMemory), []
    for number in (1, 2):
        memory = snapshots.memory.prompt(f"step {number}")
        snapshots.memory = memory.new_attempt(number, attempt(number, 1.0).commit)
        snapshots.save()
        saved.append(snapshots.memory)
    resumed = Snapshots.resume(tmp_path, "s-1", LlmMemory, records)
    assert resumed is not None
    assert (resumed.memory, resumed.problem) == (saved[0], "#2 is not there")
    assert saved[0].without_attempts().attempts == {}


def test_every_message_is_written_once_and_found(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    messages = (PromptMessage(text="The answer is Forty-Two."), AnswerMessage(text="I note", calls=CALLS))
    transcript = Transcript(path)
    transcript.follow(1, messages[:1])
    transcript.follow(2, messages)
    transcript.follow(2, messages)
    with path.open("ab") as lines:
        lines.write(b'{"number": 3, "text": "cut')
    later = Transcript(path)
    later.follow(3, (*messages, PromptMessage(text="And forty-two again")))
    assert [number for number, _ in later.search(["forty-two"], 5, 99)] == [3, 1]
    assert [number for number, _ in later.search(["forty-two", "ANSWER"], 5, 99)] == [1]
    assert [number for number, _ in later.search(["count"], 5, 99)] == [2]
    assert later.search(["nowhere"], 5, 99) == []
    assert [number for number, _ in later.search(["forty-two"], 5, 3)] == [1]
    assert len([line for line in path.read_text().splitlines() if line]) == 4


def test_a_memory_that_was_rolled_back_writes_over_what_it_had_said(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t.jsonl")
    transcript.follow(2, (PromptMessage(text="one"), PromptMessage(text="two")))
    transcript.follow(1, (PromptMessage(text="one"),))
    transcript.follow(2, (PromptMessage(text="one"), PromptMessage(text="three")))
    assert transcript.search(["three"], 5, 99) == [(2, "three")]
    assert transcript.search(["two"], 5, 99) == []


def test_an_excerpt_shows_the_place() -> None:
    text = f"{'a ' * 500}needle{' b' * 500}"
    assert "needle" in excerpt(text, ["needle"])
    assert excerpt(text, ["needle"]).startswith("...")
    assert excerpt("short", ["short"]) == "short"
