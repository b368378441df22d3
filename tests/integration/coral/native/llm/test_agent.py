"""The inner loop against a scripted model: chains, yields, errors that the model reads, caps, blocks, gates."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from llm_agent import KEY, LlmDesk, call
from model_server import Asked, ModelServer, Script, Step
from pydantic import field_validator
from sample import attempt

from coral.native.llm.agent import CONTINUE, CORRECT, CUT, ChainEnd
from coral.native.llm.conversation import AnswerMessage, HeldCall, LlmMemory, ToolCall
from coral.native.llm.gates import Decision, DeferredCall, GateSignal, RefusedCall
from coral.native.llm.request import ModelError
from coral.native.llm.tools.base import AgentTool
from coral.native.llm.toolset import Toolset
from coral.native.llm.workbench import Workbench
from coral.native.snapshots import Snapshots

Begin = Callable[..., LlmDesk]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with ExitStack() as closing:

        def begin(script: Script, wire: str = "chat", **options: object) -> LlmDesk:
            desk = LlmDesk(tmp_path, closing.enter_context(ModelServer(script)), wire, **options)
            closing.callback(desk.close)
            return desk

        yield begin


def chain(desk: LlmDesk) -> ChainEnd:
    desk.agent.prompt("Improve x.")
    return desk.agent.chain()


EDIT = call("edit_file", path="a.py", edits=[{"old": "x = 1", "new": "x = 2"}])
SCRIPT = [
    Step(say="I look.", calls=[call("read_file", path="a.py"), call("list_files")]),
    Step(calls=[EDIT]),
    Step(calls=[call("run", command="cat a.py; echo key=$OPENAI_API_KEY$ANTHROPIC_API_KEY")]),
    Step(calls=[call("core_memory_append", block="plan", content="x is 2 now")]),
    Step(calls=[call("recall", words="look")]),
    Step(calls=[call("send_message", False, message="done")]),
]


@pytest.mark.parametrize("wire", ["chat", "messages"])
@pytest.mark.parametrize("calls", ["native", "text"])
def test_a_conversation_gives_the_same_calls_on_every_wire(begin, wire: str, calls: str) -> None:
    script = SCRIPT
    if calls == "text":  # the same calls, written as a model without tools has to write them
        script = [Step(say=step.say + "".join(_written(*made) for made in step.calls)) for step in SCRIPT]
    desk = begin(script, wire, calls=calls)
    assert chain(desk) is ChainEnd.YIELDED
    done = [(result["name"], result["failed"]) for result in desk.results()]
    names = ["read_file", "list_files", "edit_file", "run", "core_memory_append", "recall", "send_message"]
    assert done == [(name, False) for name in names]
    texts = [result["text"] for result in desk.results()]
    assert texts[:4] == ["x = 1", "a.py (6 bytes)", "a.py: 1 edit made", "x = 2\nkey="]
    assert "I look." in texts[5]
    assert (desk.clone / "a.py").read_text() == "x = 2\n"
    assert desk.memory.blocks["plan"] == "x is 2 now"
    assert [line["reply"] for line in desk.printed("text")] == ["done"]
    assert [line["usage"] for line in desk.printed("usage")] == [{"input": 10, "cached": 0, "output": 5}] * 6
    headers = {name.lower(): value for name, value in desk.server.asked[0].headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}" if wire == "chat" else headers["x-api-key"] == KEY
    assert all(CONTINUE in json.dumps(asked.body) for asked in desk.server.turns[1:])


def _written(name: str, arguments: object) -> str:
    return f'\n<call name="{name}">\n{json.dumps(arguments)}\n</call>'


def test_false_always_yields_and_the_outer_loop_goes_on(begin) -> None:
    desk = begin([Step(calls=[call("list_files", False)]), Step(calls=[call("list_files", False)])])
    assert chain(desk) is ChainEnd.YIELDED
    assert len(desk.server.turns) == 1
    # Nobody watches: the outer loop says that it goes on, and gives up where nothing is ever done.
    assert desk.run() == "nothing was done in 5 chains of steps"
    assert "Nobody watches this run" in "".join(desk.server.turns[-1].texts)


@pytest.mark.parametrize(("heartbeat", "steps"), [("true", 2), ("True", 2), (1, 2), ("false", 1), (0, 1)])
def test_a_heartbeat_may_be_written_in_other_ways(begin, heartbeat: object, steps: int) -> None:
    """Models whose calls are XML write every argument as a text."""
    desk = begin([Step(calls=[("list_files", {"request_heartbeat": heartbeat})]), Step(say="I wait.")])
    assert chain(desk) is ChainEnd.YIELDED
    assert len(desk.server.turns) == steps


def test_a_model_hears_of_calls_that_are_too_many(begin) -> None:
    calls = [call("run", False, command=f"echo {number} >> log") for number in range(18)]
    desk = begin([Step(calls=calls), Step(say="I wait.")])
    assert chain(desk) is ChainEnd.YIELDED
    assert len((desk.clone / "log").read_text().split()) == 16
    assert "your last 2 were not" in desk.server.turns[1].texts[-1]


def test_the_calls_of_an_answer_have_ids_that_every_server_takes(begin) -> None:
    desk = begin([Step(calls=[call("list_files"), call("list_files")]), Step(calls=[call("list_files", False)])])
    chain(desk)
    ids = [result["id"] for result in desk.results()]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids)


def test_a_gate_sees_all_calls_of_an_answer(begin) -> None:
    def one_run(signal: GateSignal, calls: tuple[ToolCall, ...]) -> Sequence[Decision]:
        runs = [call for call in calls if call.name == "run"]
        return [RefusedCall(call, "one run at a time") if call in runs[1:] else call for call in calls]

    looks = [call("run", command="true"), call("list_files"), call("run", command="true")]
    desk = begin([Step(calls=looks), Step(calls=looks[:1]), Step(say="I wait.")])
    desk.agent.gates = [one_run]
    chain(desk)
    assert [result["failed"] for result in desk.results()] == [False, False, True, False]


@pytest.mark.parametrize(
    ("name", "action", "changes"),
    [
        *[("notes", action, action == "write") for action in ("search", "read", "write")],
        *[("skills", action, action == "write") for action in ("list", "read", "write")],
        *[("job", action, action != "look") for action in ("start", "look", "wait")],
    ],
)
def test_to_look_is_no_work(name: str, action: str, changes: bool) -> None:
    """A model that does nothing else has to idle out; one that waits for its training has not."""
    tool = Toolset().read(ToolCall(id="c", name=name, arguments=json.dumps(call(name, action=action)[1])))
    assert tool.changes is changes


def test_a_chain_ends_at_the_cap(begin) -> None:
    desk = begin([Step(calls=[call("list_files")], times=50)])
    assert chain(desk) is ChainEnd.CAPPED
    assert len(desk.server.turns) == 10
    desk.agent.prompt("Go on.")
    desk.agent.steps = 3
    assert desk.agent.chain() is ChainEnd.BUDGET
    assert len(desk.server.turns) == 13


@pytest.mark.parametrize(("wire", "finish"), [("chat", "length"), ("messages", "max_tokens")])
def test_an_answer_that_its_limit_cut_off_goes_on_in_shorter_ones(begin, wire: str, finish: str) -> None:
    """The words would pass for a yield, and the call for one that is only misspelt."""
    cut = [
        Step(say="I think that", finish=finish),
        Step(calls=[("write_file", '{"path": "b.py", "content": "x = ')], finish=finish),
    ]
    if wire == "messages":  # there the calls of a cut answer end where they are
        cut = cut[:1]
    desk = begin([*cut, Step(calls=[call("send_message", False, message="done")])], wire)
    assert chain(desk) is ChainEnd.YIELDED
    assert len(desk.server.turns) == len(cut) + 1
    assert all(json.dumps(asked.body).count(CUT) == number for number, asked in enumerate(desk.server.turns))


WRONG = [
    (call("core_memory_append", False, block="lerned", content="y"), "no block 'lerned'; there are persona, task"),
    (
        call("read_file", False, path=3),
        "path: Input should be a valid string. read_file takes {request_heartbeat",
    ),
    (call("red_file", False, path="a.py"), "did you mean read_file? there are send_message"),
    (("", "<call name='check'>"), 'as text: <call name="check">{'),
    (("read_file", {"path": "a.py"}), "request_heartbeat: Field required"),
    (("read_file", '{"path": "a.py", '), "the arguments are not JSON"),
    (("read_file", "[1]"), "arguments: Input should be a valid dictionary"),
    (call("read_file", False, path="../state"), "is outside of the workspace"),
    (call("read_file", False, path="b.py"), "did you mean a.py?"),
    (call("run", False, command="exit 3"), "exit code 3"),
    (call("hand_over", False, attempt=7, why="x"), "#7 is no attempt of yours; those are: none yet"),
    (call("edit_file", False, path="a.py", edits=[{"old": "x = 9", "new": ""}]), "the nearest line is 'x = 1'"),
    (call("edit_file", False, path="a.py", edits=[{"old": "", "new": ""}]), "edits.0.old: String should have at least"),
    (call("edit_file", False, path="a.py", edits=["x"]), "edits: list of {old: string, new: string}}; a question"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG)
def test_a_mistake_comes_back_at_once_and_is_mended(begin, wrong, told: str) -> None:
    def script(asked: Asked) -> Step:
        mended = any(told in text for text in asked.texts)
        return Step(calls=[call("send_message", False, message="mended") if mended else wrong])

    desk = begin(script)
    assert chain(desk) is ChainEnd.YIELDED
    assert len(desk.server.turns) == 2
    assert CORRECT in desk.server.turns[1].texts[-1]
    assert [line["reply"] for line in desk.printed("text")] == ["mended"]


@pytest.mark.parametrize("wrong", [wrong for wrong, _ in WRONG][:5])
def test_who_never_learns_is_stopped_by_the_limit(begin, wrong) -> None:
    desk = begin([Step(calls=[wrong], times=1000)])
    assert desk.run() == "nothing was done in 5 chains of steps"
    assert len(desk.server.turns) == 50


def test_the_same_failing_call_is_refused_after_three_times(begin) -> None:
    desk = begin([Step(calls=[call("run", command="false")], times=5), Step(calls=[call("list_files", False)])])
    chain(desk)
    texts = [result["text"] for result in desk.results()]
    assert [text.strip() for text in texts[:3]] == ["exit code 1"] * 3
    assert texts[3].startswith("refused: this very call has failed 3 times")


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (call("write_file", path="a.py", content="x = 2"), False),
        (call("run", command="echo x = 2 > a.py"), False),
        (call("read_file", path="a.py"), True),
        (call("core_memory_append", block="plan", content="x"), True),
    ],
    ids=["writes", "runs", "reads", "elsewhere"],
)
def test_a_call_that_failed_may_be_repeated_once_a_file_was_changed(begin, change, refused: bool) -> None:
    desk = begin([*[Step(calls=[call("run", command="false"), change])] * 4, Step(say="I wait.")])
    chain(desk)
    last = [result["text"] for result in desk.results() if result["name"] == "run" and result["failed"]][-1]
    assert last.startswith("refused: ") is refused


def test_a_call_that_was_never_performed_has_not_failed(begin) -> None:
    submit, check = call("submit", title="x"), call("check")
    script = [Step(calls=[submit]), Step(calls=[submit]), Step(calls=[check, submit]), Step(say="I wait.")]
    desk = begin(script, check_first=True)
    chain(desk)
    assert [name.split()[0] for name in desk.memory.failures] == ["check"]  # there is no run
    cut = ToolCall(id="x-1", name="check", arguments="{}")
    desk.agent.bench.memory = desk.memory.add(AnswerMessage(calls=(cut,)))
    desk.agent.recover()
    assert len(desk.memory.failures) == 1


@pytest.mark.parametrize("held", [False, True])
def test_a_result_its_attempt_and_its_heartbeats_are_saved_at_once(begin, held: bool) -> None:
    """`coral eval` may stay for minutes after the grade, and a death meanwhile must lose none of them."""
    saved: list[str] = []

    class Graded(AgentTool):
        """Submit, as the tool of that name does."""

        name: ClassVar[str] = "submit"

        def perform(self, bench: Workbench) -> str:
            bench.settle("#7 is graded", attempt(7, 1.5), ("## Heartbeat: reflect",))
            saved.extend(path.read_text() for path in sorted(bench.snapshots.folder.glob("memory-*.json")))
            return "#7 is graded"

    def hold_once(signal: GateSignal, calls: tuple[ToolCall, ...]) -> Sequence[Decision]:
        return [DeferredCall(calls[0], "later")] if held and not desk.memory.held else calls

    desk = begin([Step(calls=[call("submit", not held)]), Step(say="I wait.")])
    desk.agent.tools, desk.agent.gates = Toolset([Graded]), [hold_once]
    desk.agent.bench.memory = replace(desk.memory, steps=9, checked=True)
    chain(desk)
    chain(desk)
    commit = attempt(7, 1.5).commit
    assert desk.memory.attempts == {"7": commit}
    assert (desk.memory.steps < 9, desk.memory.checked) == (True, False)
    assert commit in saved[-1]
    assert [text for text in saved if ("Heartbeat: reflect" in text) != (commit in text)] == []
    assert [text for text in saved if "#7 is graded" in text and commit not in text] == []
    desk.agent.prompt("Go on.")
    assert [message.text.startswith("## Heartbeat: reflect\n\n") for message in desk.memory.messages].count(True) == 1
    assert desk.memory.waiting == ()


def test_a_held_call_counts_as_work_when_it_is_performed(begin) -> None:
    decisions: list[Decision] = []

    def hold_once(signal: GateSignal, calls: tuple[ToolCall, ...]) -> Sequence[Decision]:
        decisions.extend(calls if decisions else [DeferredCall(calls[0], "later")])
        return decisions[-1:]

    desk = begin([Step(calls=[call("write_file", False, path="b.py", content="")]), Step(say="I wait.")])
    desk.agent.gates = [hold_once]
    desk.agent.bench.memory = replace(desk.memory, checked=True, failures=("check {}",))
    chain(desk)
    assert (desk.agent.worked, desk.memory.checked, (desk.clone / "b.py").exists()) == (False, True, False)
    chain(desk)
    assert (desk.agent.worked, desk.memory.checked, (desk.clone / "b.py").exists()) == (True, False, True)
    assert desk.memory.failures == ()


def test_a_held_call_that_was_cut_off_is_told(begin) -> None:
    """A death while it is performed. It is not performed again."""
    desk = begin([Step(say="I go on.")])
    held = HeldCall(call=ToolCall(id="c00000101", name="run", arguments='{"command": "true"}'), steps=3)
    desk.agent.bench.memory = replace(desk.memory.prompt("go"), held=(held,), started=held.call.id)
    desk.agent.recover()
    assert (desk.memory.held, desk.memory.started) == ((), "")
    text = desk.memory.messages[-1].text
    assert text.startswith("The call run that was held back failed: an interrupt cut this call off")
    desk.agent.recover()
    assert desk.memory.messages[-1].text == text


class Touchy(AgentTool):
    """Do something."""

    name: ClassVar[str] = "touchy"
    way: str

    @field_validator("way")
    @classmethod
    def _known(cls, way: str) -> str:
        return {"exit": way, "raise": way}[way]

    def perform(self, _bench: Workbench) -> str:
        if self.way == "exit":
            sys.exit(2)
        raise OSError("no such place")


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("exit", "touchy broke: SystemExit: 2"),
        ("raise", "touchy broke: OSError: no such place"),
        ("other", "touchy broke: KeyError: 'other'"),
    ],
)
def test_whatever_a_tool_of_ones_own_raises_is_read_by_the_model(begin, way: str, told: str) -> None:
    desk = begin([Step(calls=[call("touchy", False, way=way)]), Step(calls=[call("list_files", False)])])
    desk.agent.tools = Toolset([Touchy])
    assert chain(desk) is ChainEnd.YIELDED
    assert desk.results()[0]["text"].startswith(told)
    assert CORRECT in desk.server.turns[1].texts[-1]


def test_a_held_call_is_known_while_it_is_performed(begin) -> None:
    saved: list[LlmMemory | None] = []

    class Look(AgentTool):
        """Look at what is saved."""

        name: ClassVar[str] = "look"

        def perform(self, bench: Workbench) -> str:
            resumed = Snapshots.resume(desk.root / "state", "s-1", LlmMemory)
            saved.append(resumed.memory if resumed else None)
            return "seen"

    def hold_once(signal: GateSignal, calls: tuple[ToolCall, ...]) -> Sequence[Decision]:
        return calls if desk.memory.held else [DeferredCall(calls[0], "later")]

    desk = begin([Step(calls=[call("look", False)]), Step(say="I wait.")])
    desk.agent.tools, desk.agent.gates = Toolset([Look]), [hold_once]
    chain(desk)
    chain(desk)
    assert saved[0] is not None
    assert [held.call.id for held in saved[0].held] == [saved[0].started]
    assert (desk.memory.held, desk.memory.started) == ((), "")


@pytest.mark.parametrize(
    ("made", "checked"),
    [
        (call("run", False, command="echo 2 > a.py; false"), False),
        (call("run", False, command="echo 2 > a.py"), False),
        (call("read_file", False, path="a.py"), True),
        (call("skills", False, action="read", skill="none"), True),
    ],
    ids=["fails", "changes", "reads", "elsewhere"],
)
def test_a_workspace_is_unchecked_once_a_call_may_have_changed_it(begin, made, checked: bool) -> None:
    desk = begin([Step(calls=[made]), Step(calls=[call("list_files", False)])])
    desk.agent.bench.memory = replace(desk.memory, checked=True)
    chain(desk)
    assert desk.memory.checked is checked


def test_a_command_may_not_outlive_its_call(begin) -> None:
    desk = begin([Step(calls=[call("run", False, command="sleep 600 & echo $! > pid; sleep 600", seconds=5)])])
    desk.agent.steps = 1
    assert chain(desk) is ChainEnd.BUDGET
    assert desk.results()[0]["text"].startswith("ended after 5 seconds")
    assert not Path(f"/proc/{(desk.clone / 'pid').read_text().strip()}").exists()


def test_a_command_may_not_fill_the_disk(begin) -> None:
    desk = begin([Step(calls=[call("run", False, command="echo begin; exec yes", seconds=50)])])
    desk.agent.steps = 1
    chain(desk)
    result = desk.results()[0]
    assert result["failed"]
    assert result["text"].startswith("ended, for it printed more than 100 MB; let it print less\nbegin\ny")


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [("a\nb\n", "c\nd\n", b"c\r\nd\r\n"), ("a\r\nb", "c", b"c\r\n"), ("a", "c", b"c\r\nb\r\n")],
)
def test_an_edit_finds_lines_that_end_in_two_characters(begin, old: str, new: str, after: bytes) -> None:
    desk = begin([Step(calls=[call("edit_file", False, path="a.py", edits=[{"old": old, "new": new}])])])
    desk.agent.steps = 1
    (desk.clone / "a.py").write_bytes(b"a\r\nb\r\n")
    chain(desk)
    assert (desk.clone / "a.py").read_bytes() == after


def test_recall_does_not_find_its_own_answer(begin) -> None:
    looks = [call("send_message", message="heliotrope"), call("recall", words="heliotrope")]
    desk = begin([Step(calls=looks), Step(calls=[call("recall", words="heliotrope")]), Step(say="I wait.")])
    chain(desk)
    first, second = [result["text"] for result in desk.results() if result["name"] == "recall"]
    assert first == "nothing holds all of these words; try fewer"
    assert re.findall(r"^\[(\d+)\]", second, re.MULTILINE) == ["2"]


def test_the_parts_that_stay_the_same_are_marked_for_the_cache(begin) -> None:
    desk = begin([Step(calls=[call("list_files")]), Step(calls=[call("list_files", False)])], "messages")
    chain(desk)
    first, second = (asked.body for asked in desk.server.turns)
    assert first["system"] == second["system"]
    assert first["tools"] == second["tools"]
    assert all(part["cache_control"] == {"type": "ephemeral"} for part in first["system"])
    assert second["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    marked = json.dumps(second).count("cache_control")
    assert marked == 3  # of the four that the wire allows
    before, after = (blocks(asked.body) for asked in desk.server.turns)
    assert after[: len(before)] == before


def test_a_resumed_session_begins_with_what_the_cache_holds(begin) -> None:
    """Byte by byte: the prompt of the new launch comes after everything that was sent before the interrupt."""
    desk = begin(
        [Step(calls=[call("core_memory_append", block="plan", content="x")]), Step(error="denied")], "messages"
    )
    desk.agent.prompt("Improve x.")
    with pytest.raises(ModelError):
        desk.agent.chain()
    desk.server.then(Step(calls=[call("list_files", False)]))
    agent = desk.begin(resume=True)
    agent.receive("A heartbeat.")
    agent.recover()
    agent.chain()
    before, after = (asked.body for asked in desk.server.turns[1:])
    assert (after["tools"], after["system"]) == (before["tools"], before["system"])
    kept = blocks(before)
    assert blocks(after)[: len(kept)] == kept
    assert "A heartbeat." in json.dumps(blocks(after)[len(kept) :])


def blocks(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The blocks of a conversation in order, without their marks."""
    every = (block for message in body["messages"] for block in message["content"])
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in every]
