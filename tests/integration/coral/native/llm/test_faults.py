"""What goes wrong between an agent and its model: the right end, no spin, nothing lost, and no call performed twice."""

import json
import time
from itertools import count
from pathlib import Path
from random import Random

import pytest
from cases import trying
from hypothesis import given, strategies as st
from llm_agent import LlmDesk, call
from model_server import Asked, ModelServer, Script, Step
from model_wires import WIRES

from coral.native.llm import output, perceive
from coral.native.llm.agent import ChainEnd
from coral.native.llm.conversation import LlmMemory
from coral.native.llm.patience import TRIES, Patience
from coral.native.llm.request import Fault, ModelError
from coral.native.snapshots import Snapshots

FAULTS = ["cut", "half", "empty", "malformed", "not JSON", "broken", "overloaded", "too many", "too long", "refused"]


def faulty(kind: str, step: Step, asked: Asked, random: Random) -> Step:
    """The step, as a server or a network spoils it."""
    wire = next(wire for end, wire in WIRES.items() if asked.path.endswith(end))
    whole = b"".join(wire.pieces(step, 1, asked.body))
    match kind:
        case "cut":
            return Step(calls=step.calls, say="a b c d", cut=True)
        case "half":
            return Step(raw=whole[: random.randrange(len(whole) * 2 // 3)])
        case "malformed":
            return Step(calls=[("run", '{"command": "echo')])
        case "not JSON":
            return Step(raw=b"data: {oh\n\n" + whole)
        case "empty":
            return Step()
        case "refused":
            return Step(finish="refusal")
        case _:
            return Step(error=kind)


@trying("models", "faults")
@given(st.lists(st.sampled_from([*FAULTS, "", ""]), max_size=25), st.sampled_from(["chat", "messages"]), st.integers())
def test_no_call_is_performed_twice(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str], wire: str, seed: int
) -> None:
    random, rest, numbers = Random(seed), list(faults), count()
    folder = tmp_path_factory.mktemp("desk")

    def script(asked: Asked) -> Step:
        done = folder / "clone" / "log"
        if done.exists() and len(done.read_text().split()) >= 4:
            return Step(calls=[call("send_message", False, message="that is all")])
        made = [next(numbers) for _ in range(random.choice([1, 2]))]
        commands = [f"echo {number} >> log; echo did {number}" for number in made]
        step = Step(calls=[call("run", command=command) for command in commands])
        kind = rest.pop(0) if rest else ""
        return faulty(kind, step, asked, random) if kind else step

    with ModelServer(script) as server:
        desk = LlmDesk(folder, server, wire)
        for launch in range(30):  # what ends a launch is followed by another one, as a supervisor does
            agent = desk.begin(resume=True)
            agent.receive(f"launch {launch}")
            agent.recover()
            try:
                if agent.chain() is ChainEnd.YIELDED and not rest:
                    break
            except ModelError:
                continue
        desk.close()
    done = (desk.clone / "log").read_text().split()
    assert len(done) == len(set(done)) >= 4
    assert done == [
        result["text"].removeprefix("did ") for result in desk_results(desk) if result["text"][:4] == "did "
    ]


def desk_results(desk: LlmDesk) -> list[dict[str, str]]:
    lines = map(json.loads, (desk.root / "out.jsonl").read_text().splitlines())
    return [line["tool"] for line in lines if line["type"] == "tool" and line["tool"]["over"]]


def ask(root: Path, script: Script, **options: object) -> tuple[ModelServer, list[float], ModelError | None, LlmDesk]:
    """One chain; the server, the pauses that were made, and the error that ended it."""
    pauses: list[float] = []
    with ModelServer(script) as server:
        desk = LlmDesk(root, server, **options)  # type: ignore[arg-type]
        desk.agent.perception.patience = Patience(lambda *_: None, sleep=pauses.append)
        desk.agent.prompt("go")
        problem = None
        try:
            desk.agent.chain()
        except ModelError as error:
            problem = error
        desk.close()
    return server, pauses, problem, desk


@pytest.mark.parametrize(
    ("step", "fault", "asked"),
    [
        (Step(error="denied", times=9), Fault.FATAL, 1),
        (Step(error="unpaid", times=9), Fault.FATAL, 1),
        (Step(error="too many", headers={"retry-after": "3600"}, times=9), Fault.LIMIT, 1),
        (Step(error="overloaded", headers={"retry-after": "3600"}, times=9), Fault.TRANSIENT, 1),
        (Step(error="too many", times=9), Fault.LIMIT, TRIES),
        (Step(error="overloaded", times=9), Fault.TRANSIENT, TRIES),
        (Step(error="broken", times=9), Fault.TRANSIENT, TRIES),
        (Step(cut=True, say="a b c d", times=9), Fault.TRANSIENT, TRIES),
        (Step(times=9), Fault.TRANSIENT, TRIES),
        (Step(error="too long", times=9), Fault.REJECTED, 1),
    ],
)
@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_each_error_has_its_end(tmp_path: Path, step: Step, fault: Fault, asked: int, wire: str) -> None:
    server, pauses, problem, desk = ask(tmp_path, [step], wire=wire)
    assert problem is not None
    assert problem.fault is fault
    assert len(server.asked) == asked
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0][: asked - 1]
    assert problem.retry_after == (3600.0 if step.headers else None)
    assert len(desk.memory.messages) == 1  # what was asked is still there, for the next launch


@pytest.mark.parametrize(("wire", "word"), [("chat", "length"), ("messages", "max_tokens")])
def test_an_answer_of_reasoning_alone_is_not_asked_for_again(tmp_path: Path, wire: str, word: str) -> None:
    server, _, problem, desk = ask(tmp_path, [Step(finish=word, usage=(10, 700, 0), times=9)], wire=wire)
    assert problem is not None
    assert problem.fault is Fault.FATAL
    assert "set answer_tokens higher" in str(problem)
    assert len(server.asked) == 1
    assert desk.memory.tokens == 710


@pytest.mark.parametrize(
    ("wire", "step"),
    [
        ("chat", Step(usage=(10, 7, 4))),
        ("messages", Step(usage=(10, 7, 4))),
        ("messages", Step(cut=True, say="a b c d", usage=(10, 7, 4))),
    ],
    ids=["empty", "empty to messages", "cut"],
)
def test_a_try_that_fails_counts_with_what_it_has_used(tmp_path: Path, wire: str, step: Step) -> None:
    _, _, problem, desk = ask(tmp_path, [step, Step(calls=[call("list_files", False)])], wire=wire)
    assert problem is None
    lines = map(json.loads, (desk.root / "out.jsonl").read_text().splitlines())
    used = [line["usage"] for line in lines if line["type"] == "usage"]
    assert used == [{"input": 6, "cached": 4, "output": 7}, {"input": 10, "cached": 0, "output": 5}]
    assert desk.memory.tokens == 17 + 15


def test_a_short_wait_that_the_server_names_is_kept(tmp_path: Path) -> None:
    limit = Step(error="too many", headers={"retry-after": "7"}, times=2)
    server, pauses, problem, _ = ask(tmp_path, [limit, Step(calls=[call("list_files", False)])])
    assert problem is None
    assert pauses == [7.0, 7.0]
    assert len(server.asked) == 3


@pytest.mark.parametrize("wait", ["0", "Thu, 01 Jan 1970 00:01:40 GMT"])
def test_a_wait_that_is_none_is_no_reason_to_spin(tmp_path: Path, wait: str) -> None:
    _, pauses, _, _ = ask(tmp_path, [Step(error="too many", headers={"retry-after": wait}, times=9)])
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_server_that_sends_a_byte_a_minute_is_given_up(tmp_path: Path) -> None:
    began = time.monotonic()
    slow = Step(say="a b c d e f g h i j k l m n o p q r s t", between=0.5, times=9)
    server, _, problem, _ = ask(tmp_path, [slow], answer_seconds=2)
    assert problem is not None
    assert "no whole answer came within 2 seconds" in str(problem)
    assert len(server.asked) == TRIES
    assert time.monotonic() - began < 60


def test_an_answer_that_takes_long_is_no_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "ANSWER_SECONDS", 0.2)
    with ModelServer([Step(say="a b c d e f", between=0.3)]) as server:
        desk = LlmDesk(tmp_path, server)
        desk.agent.prompt("go")
        desk.agent.chain()
        assert len([beat for beat in desk.printed("beat") if beat["message"] == "the model answers"]) > 1
        desk.close()


def test_nobody_listens(tmp_path: Path) -> None:
    with ModelServer((), refuses=True) as server:
        desk = LlmDesk(tmp_path, server)
        desk.agent.prompt("go")
        with pytest.raises(ModelError, match="cannot reach the model"):
            desk.agent.chain()
        desk.close()


def test_a_context_that_is_too_long_is_made_shorter(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        if sum(map(len, asked.texts)) > 12_000:
            return Step(error="too long")
        return Step(calls=[call("read_file", path="a.py")])

    with ModelServer(script) as server:
        desk = LlmDesk(tmp_path, server)
        (desk.clone / "a.py").write_text("word " * 300)
        desk.agent.prompt("go")
        assert desk.agent.chain() is ChainEnd.CAPPED
        assert desk.memory.summary
        assert desk.printed("compacted")
        desk.close()


def test_results_that_are_too_long_for_the_server_are_clipped(tmp_path: Path) -> None:
    """They are not summarised, for the model has not seen them."""

    def script(asked: Asked) -> Step:
        if sum(map(len, asked.texts)) > 12_000:
            return Step(error="too long")
        return Step(calls=[call("read_file", path="a.py")] * 4)

    with ModelServer(script) as server:
        desk = LlmDesk(tmp_path, server, max_steps=4)
        (desk.clone / "a.py").write_text("word " * 800)
        desk.agent.prompt("go")
        assert desk.agent.chain() is ChainEnd.CAPPED
        desk.close()
    taken = [asked for asked in server.turns if not asked.step.error]
    assert len(taken) == 4
    assert all([message["role"] for message in asked.body["messages"]][-5:-1] == ["tool"] * 4 for asked in taken[1:])


def test_the_results_of_the_last_answer_are_always_in_view(tmp_path: Path) -> None:
    """Each answer reads a third of the window."""
    with ModelServer([Step(calls=[call("read_file", path="a.py")] * 8, times=12)]) as server:
        desk = LlmDesk(tmp_path, server, window=32_000, max_steps=12)
        (desk.clone / "a.py").write_text("word " * 1500)
        desk.agent.prompt("go")
        assert desk.agent.chain() is ChainEnd.CAPPED
        assert desk.printed("compacted")
        desk.close()
    for asked in server.turns[1:]:
        assert [message["role"] for message in asked.body["messages"]][-9:-1] == ["tool"] * 8
        assert "word" in asked.body["messages"][-2]["content"]


def test_a_summary_waits_for_a_server_that_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The scripted server takes other requests without tools for asides, which never fail.
    monkeypatch.setattr(perceive, "SUMMARISE", '<call name="run">')
    with ModelServer([Step(error="overloaded"), Step(say="All is well.")]) as server:
        desk = LlmDesk(tmp_path, server)
        summary = desk.agent.perception._summary("none", "text")
        desk.close()
    assert summary == "All is well."
    assert len(server.asked) == 2


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_refusal_for_another_reason_leaves_the_conversation_as_it_was(tmp_path: Path, wire: str) -> None:
    looks = [Step(calls=[call("read_file", path="a.py")])] * 6
    _, _, problem, desk = ask(tmp_path, [*looks, Step(error="no credit", times=9)], wire=wire)
    assert problem is not None
    assert problem.fault is Fault.REJECTED
    saved = Snapshots.resume(desk.root / "state", "s-1", LlmMemory)
    assert saved is not None
    assert (len(saved.memory.messages), saved.memory.summary) == (1 + 3 * len(looks), "")


def test_a_conversation_of_ten_windows_stays_within_and_can_be_recalled(tmp_path: Path) -> None:
    """The scripted server counts a token for every three characters, as few as any text needs."""
    window, asked_for = 16_000, 60
    sizes: list[int] = []

    def script(asked: Asked) -> Step:
        sizes.append(len(str(asked.body)) // 3)
        number = len(sizes)
        usage = (sizes[-1], 5, 0)
        if number == 2:
            return Step(calls=[call("core_memory_append", block="learned", content="seven is odd")], usage=usage)
        if number == 3:
            return Step(say="The code word is heliotrope.", calls=[call("list_files")], usage=usage)
        if number == asked_for - 1:
            return Step(calls=[call("recall", words="code word")], usage=usage)
        return Step(calls=[call("read_file", path="big.txt")] * 5, usage=usage)

    with ModelServer(script) as server:
        desk = LlmDesk(tmp_path, server, window=window, max_steps=asked_for)
        (desk.clone / "big.txt").write_text("about attempt #12 " * 700)
        desk.agent.prompt("go")
        assert desk.agent.chain() is ChainEnd.CAPPED
        seen = sum(len(result["text"]) for result in desk.results()) // 3
        last = server.turns[-1]
        desk.close()
    assert len(sizes) == asked_for
    assert max(sizes) <= window
    assert seen > 10 * window
    assert "seven is odd" in last.texts[1]
    assert "#12" in last.texts[1]
    assert "big.txt" in last.texts[1]
    found = [result["text"] for result in desk_results(desk) if result["name"] == "recall"]
    assert "heliotrope" in found[0]
