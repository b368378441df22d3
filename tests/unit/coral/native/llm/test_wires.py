"""The two wires: what a request looks like, and answers in pieces, whole, broken off or with an error inside."""

import json

import pytest

from coral.native.llm.chat_wire import ChatWire
from coral.native.llm.client import event_data, retry_after
from coral.native.llm.conversation import AnswerMessage, PromptMessage, ResultMessage, ToolCall
from coral.native.llm.json_values import as_object
from coral.native.llm.messages_wire import MessagesWire
from coral.native.llm.model_errors import error_text
from coral.native.llm.request import Fault, ModelError, ModelRequest, ModelUsage, RawCall
from coral.native.llm.textual import TextualWire

CALLS = (ToolCall(id="c1", name="read_file", arguments='{"path": "a"}'), ToolCall(id="c2", name="run", arguments="{oh"))
TALK = (
    PromptMessage(text="Improve."),
    AnswerMessage(text="I look.", calls=CALLS),
    ResultMessage(call="c1", name="read_file", text="x"),
    ResultMessage(call="c2", name="run", text="no JSON", failed=True),
    PromptMessage(text="Heartbeat."),
    PromptMessage(text="And more."),
)


def request(**more: object) -> ModelRequest:
    return ModelRequest(model="m", system="S", core="C", messages=TALK, **more)  # type: ignore[arg-type]


def test_a_conversation_on_the_chat_wire() -> None:
    body = ChatWire().body(request(effort="low", temperature=0.5, answer_tokens=7))
    assert (body["reasoning_effort"], body["temperature"], body["max_completion_tokens"]) == ("low", 0.5, 7)
    system, prompt, answer, first, second, last = body["messages"]
    assert system == {"role": "system", "content": "S\n\nC"}
    assert prompt == {"role": "user", "content": "Improve."}
    assert [call["function"]["arguments"] for call in answer["tool_calls"]] == [
        '{"path": "a"}',
        '{"unreadable": "{oh"}',
    ]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c1", "c2")
    assert last == {"role": "user", "content": "Heartbeat.\n\nAnd more."}


def test_a_conversation_on_the_messages_wire() -> None:
    body = MessagesWire().body(request(effort="high"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    kinds = [[block["type"] for block in message["content"]] for message in body["messages"]]
    assert kinds == [["text"], ["text", "tool_use", "tool_use"], ["tool_result", "tool_result", "text", "text"]]
    assert body["messages"][1]["content"][2]["input"] == {"unreadable": "{oh"}
    assert body["messages"][2]["content"][1]["is_error"] is True
    assert body["output_config"] == {"effort": "high"}
    assert body["max_tokens"] == 16_000


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_the_name_of_a_call_is_one_that_servers_take(wire: ChatWire | MessagesWire) -> None:
    names = ("", "functions.run", "ü" * 99, "read_file")
    calls = tuple(ToolCall(id=f"c{place}", name=name, arguments="{}") for place, name in enumerate(names))
    body = wire.body(ModelRequest(model="m", system="S", messages=(AnswerMessage(text="", calls=calls),)))
    answer = body["messages"][-1]
    made = [call["function"] for call in answer["tool_calls"]] if isinstance(wire, ChatWire) else answer["content"]
    assert [call["name"] for call in made] == ["_", "functions_run", "_" * 64, "read_file"]


def test_a_conversation_as_text_has_no_calls_and_takes_turns() -> None:
    body = TextualWire(ChatWire()).body(request())
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert '<call name="run">\n{oh\n</call>' in body["messages"][2]["content"]
    assert '<result name="run" failed>\nno JSON\n</result>\n\nHeartbeat.' in body["messages"][3]["content"]
    assert "tools" not in body


def chunk(**delta: object) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def function(index: int | None, id: str = "", **given: object) -> dict[str, object]:
    return {"function": given, **({} if index is None else {"index": index}), **({"id": id} if id else {})}


def test_calls_come_in_pieces_with_numbers_or_without() -> None:
    numbered, named = ChatWire().reader(), ChatWire().reader()
    for reader, key in ((numbered, lambda place: place), (named, lambda _: None)):
        reader.feed(chunk(tool_calls=[function(key(0), "a", name="run", arguments='{"com')]))
        reader.feed(chunk(tool_calls=[function(key(0), "a" if key(0) is None else "", arguments='mand": 1}')]))
        reader.feed(chunk(tool_calls=[function(key(1), "b", name="log", arguments={"count": 2})]))
        reader.feed('{"choices": [{"finish_reason": "tool_calls"}], "usage": null}')
        reader.feed('{"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}')
        reader.feed("[DONE]")
        expected = (RawCall(name="run", arguments='{"command": 1}'), RawCall(name="log", arguments='{"count": 2}'))
        assert reader.reply().calls == expected
        assert reader.usage == ModelUsage(input=5, cached=4)


READ, LIST = RawCall(name="read_file", arguments='{"path": 1}'), RawCall(name="list_files", arguments="{}")


@pytest.mark.parametrize(
    "pieces",
    [
        [
            function(0, "a", name="read_file", arguments='{"path": 1}'),
            function(0, "b", name="list_files", arguments="{}"),
        ],
        [
            function(0, "a", name="read_file", arguments='{"path'),
            function(0, arguments='": 1}'),
            function(0, "b", name="list_files", arguments="{"),
            function(0, arguments="}"),
        ],
        [
            function(0, "a", name="read_file", arguments='{"path'),
            function(0, "x", arguments='": '),
            function(0, "y", arguments="1}"),
            function(1, "b", name="list_files", arguments="{}"),
        ],
        [
            function(None, "a", name="read_file", arguments='{"path'),
            function(None, arguments='": 1}'),
            function(None, "b", name="list_files"),
            function(None, arguments="{"),
            function(None, "b", arguments="}"),
        ],
        [
            function(None, name="read_file", arguments='{"path": 1}'),
            function(None, "b", name="list_files", arguments="{"),
            function(None, arguments="}"),
        ],
        [
            function(None, name="read_file", arguments='{"path": 1}'),
            function(None, name="list_files", arguments="{"),
            function(None, arguments="}"),
        ],
        [
            function(0, "a", name="read_file"),
            function(1, "b", name="list_files"),
            function(0, "a", arguments='{"path": 1}'),
            function(1, arguments="{}"),
        ],
        [
            function(0, name="read_file", arguments='{"path": 1}'),
            function(0, name="list_files", arguments="{}"),
        ],
        [
            function(None, "a", name="read_file", arguments='{"path": 1}'),
            function(None, "a", name="list_files", arguments="{"),
            function(None, "a", arguments="}"),
        ],
        [
            function(0, "a", name="read_file", arguments='{"path'),
            function(0, "a", name="read_file", arguments='": 1}'),
            function(0, "a", name="read_file", arguments=""),
            function(1, "b", name="list_files", arguments="{"),
            function(1, "b", name="list_files", arguments="}"),
        ],
    ],
    ids=[
        "one number",
        "one number in pieces",
        "an id for each piece",
        "ids",
        "one id",
        "neither",
        "in turns",
        "one number and no id",
        "one id for all",
        "a name in each piece",
    ],
)
def test_each_call_is_one_however_its_server_numbers_it(pieces: list[dict[str, object]]) -> None:
    reader = ChatWire().reader()
    for piece in pieces:
        reader.feed(chunk(tool_calls=[piece]))
    reader.feed("[DONE]")
    assert reader.reply().calls == (READ, LIST)


@pytest.mark.parametrize("index", [0, None])
def test_two_calls_of_one_tool_are_two(index: int | None) -> None:
    reader = ChatWire().reader()
    for path in "12":
        reader.feed(chunk(tool_calls=[function(index, "same", name="read_file", arguments=f'{{"path": {path}}}')]))
    reader.feed("[DONE]")
    assert [call.arguments for call in reader.reply().calls] == ['{"path": 1}', '{"path": 2}']


def test_reasoning_is_kept_and_sent_back() -> None:
    reader = ChatWire().reader()
    reader.feed(chunk(reasoning_content="so "))
    reader.feed(chunk(reasoning_content="be it", content="yes"))
    reader.feed("[DONE]")
    answer = AnswerMessage(text="yes", reasoning=reader.reply().reasoning)
    sent = ChatWire().body(ModelRequest(model="m", system="S", messages=(PromptMessage(text="?"), answer)))
    assert sent["messages"][2] == {"role": "assistant", "content": "yes", "reasoning_content": "so be it"}

    block = {"type": "thinking", "thinking": "", "signature": ""}
    messages = MessagesWire().reader()
    messages.feed(json.dumps({"type": "content_block_start", "index": 0, "content_block": block}))
    for delta in ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "sig"}):
        messages.feed(json.dumps({"type": "content_block_delta", "index": 0, "delta": delta}))
    messages.feed('{"type": "message_stop"}')
    answer = AnswerMessage(text="yes", reasoning=messages.reply().reasoning)
    sent = MessagesWire().body(ModelRequest(model="m", system="S", messages=(PromptMessage(text="?"), answer)))
    assert sent["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_reasoning_of_the_other_wire_is_not_sent(wire: ChatWire | MessagesWire) -> None:
    """A task may change the wire between two launches of a session."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    held = {"reasoning_content": "hm"} if isinstance(wire, MessagesWire) else thought
    answers = [AnswerMessage(text="yes", reasoning=given) for given in ((), (json.dumps(held),))]
    without, with_it = (wire.body(ModelRequest(model="m", system="S", messages=(answer,))) for answer in answers)
    assert with_it == without


def test_an_empty_usage_is_none() -> None:
    reader = ChatWire().reader()
    for usage in ({"prompt_tokens": 9, "completion_tokens": 2}, {}, None):
        reader.feed(json.dumps({"choices": [], "usage": usage}))
    assert reader.usage == ModelUsage(input=9, output=2)


def test_pieces_of_reasoning_become_whole_parts() -> None:
    """A signature holds for a whole part, and each piece would count with its frame."""
    reader = ChatWire().reader()
    text, summary = {"type": "reasoning.text", "index": 0}, {"type": "reasoning.summary", "index": 0}
    for piece in (
        {**text, "text": "so "},
        {**text, "text": "be it", "signature": None},
        {**text, "signature": "sig"},
        {**text, "text": "and", "index": 1},
        {**summary, "summary": "a"},
        {**summary, "summary": "b"},
        {"type": "reasoning.encrypted", "index": 0, "id": "r1", "data": "x"},
        {"type": "reasoning.encrypted", "index": 0, "data": "y"},
        {"type": "reasoning.encrypted", "index": 0, "id": "r2", "data": "z"},
    ):
        reader.feed(chunk(reasoning_details=[piece]))
    reader.feed("[DONE]")
    (kept,) = reader.reply().reasoning
    assert json.loads(kept)["reasoning_details"] == [
        {**text, "text": "so be it", "signature": "sig"},
        {**text, "text": "and", "index": 1},
        {**summary, "summary": "ab"},
        {"type": "reasoning.encrypted", "index": 0, "id": "r1", "data": "xy"},
        {"type": "reasoning.encrypted", "index": 0, "id": "r2", "data": "z"},
    ]


def test_an_answer_in_parts_and_without_an_error() -> None:
    reader = ChatWire().reader()
    reader.feed('{"error": null, "choices": [{"delta": {"content": "a"}}]}')
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    reader.feed(chunk(content=[thought, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]))
    reader.feed("[DONE]")
    assert reader.reply().text == "abc"


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_its_server_gave_up_is_none(reason: str) -> None:
    reader = ChatWire().reader()
    reader.feed(json.dumps({"choices": [{"delta": {"content": "half"}, "finish_reason": reason}]}))
    reader.feed("[DONE]")
    with pytest.raises(ModelError, match=reason) as error:
        reader.reply()
    assert error.value.fault is Fault.TRANSIENT


@pytest.mark.parametrize("reason", ["length", "model_length"])
def test_an_answer_that_a_limit_has_cut(reason: str) -> None:
    reader = ChatWire().reader()
    reader.feed(json.dumps({"choices": [{"delta": {"content": "half"}, "finish_reason": reason}]}))
    assert reader.reply().cut


@pytest.mark.parametrize(
    ("wire", "data", "fault"),
    [
        (ChatWire(), "{", Fault.TRANSIENT),
        (ChatWire(), "[]", Fault.TRANSIENT),
        (ChatWire(), '{"error": {"code": 429, "message": "slow"}}', Fault.LIMIT),
        (ChatWire(), '{"error": {"code": "429", "message": "slow"}}', Fault.LIMIT),
        (ChatWire(), '{"error": {"code": "context_length_exceeded", "message": "long"}}', Fault.REJECTED),
        (ChatWire(), '{"error": {"type": "invalid_request_error", "code": "invalid_api_key"}}', Fault.FATAL),
        (ChatWire(), '{"error": {"type": "tokens", "code": "rate_limit_exceeded"}}', Fault.LIMIT),
        (ChatWire(), '{"error": {"code": 1302, "type": "server_error"}}', Fault.TRANSIENT),
        (ChatWire(), '{"error": "oh"}', Fault.TRANSIENT),
        (MessagesWire(), '{"error": {"code": 429, "message": "slow"}}', Fault.LIMIT),
        (MessagesWire(), '{"type": "error"}', Fault.TRANSIENT),
        (MessagesWire(), '{"type": "error", "error": {"type": "overloaded_error"}}', Fault.TRANSIENT),
        (MessagesWire(), '{"type": "error", "error": {"type": "authentication_error"}}', Fault.FATAL),
        (MessagesWire(), '{"type": "content_block_delta", "index": 3, "delta": {}}', Fault.TRANSIENT),
    ],
)
def test_what_goes_wrong_within_a_stream(wire: ChatWire | MessagesWire, data: str, fault: Fault) -> None:
    with pytest.raises(ModelError) as error:
        wire.reader().feed(data)
    assert error.value.fault is fault


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_half_an_answer_is_none(wire: ChatWire | MessagesWire) -> None:
    reader = wire.reader()
    reader.feed(chunk(content="half") if isinstance(wire, ChatWire) else '{"type": "message_start", "message": {}}')
    with pytest.raises(ModelError, match="broke off"):
        reader.reply()


@pytest.mark.parametrize("index", [{"index": 0}, {}])
def test_blocks_with_one_number_or_none_stay_apart(index: dict[str, int]) -> None:
    reader = MessagesWire().reader()
    for place in (1, 2):
        block = {"type": "tool_use", "id": f"c{place}", "name": "run", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": f'{{"command": {place}}}'}
        reader.feed(json.dumps({"type": "content_block_start", **index, "content_block": block}))
        reader.feed(json.dumps({"type": "content_block_delta", **index, "delta": delta}))
    reader.feed('{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}')
    assert not reader.done
    assert [call.arguments for call in reader.reply().calls] == ['{"command": 1}', '{"command": 2}']


def test_what_looks_like_a_call_is_one_that_fails() -> None:
    for text, calls in (
        ('<call name="run">\n{"a": 1}\n</call> then <call name="log">{}</call>', ["run", "log"]),
        ('I would <call name="run">{"a": 1}', [""]),
        ("</call>", [""]),
        ("just words", []),
        ("<call name='run'>{}</call>", [""]),
        ('<think>a draft: <call name="run">{}</call></think><call name="log">{}</call>', ["log"]),
        ('<call name="log">{}</call><think>next <call name="run">{}</call>', ["log"]),
        ('<think>then <call name="run">{}</call>', [""]),
        ('a draft: <call name="run">{}</call></think><call name="log">{}</call>', ["log"]),
        ('<call name="log">{"text": "<think> <result name="}</call><call name="run">{}</call>', ["log", "run"]),
        ('<call name="log">{}</call>\n<result name="log">3</result>\n<call name="run">{}</call>', ["log"]),
    ):
        reader = TextualWire(ChatWire()).reader()
        reader.feed(chunk(content=text))
        reader.feed("[DONE]")
        reply = reader.reply()
        assert [call.name for call in reply.calls] == calls
        assert not any(word in reply.text for word in ("draft", "<call", "<think", "<result"))


def test_a_message_beside_a_piece_is_not_read_twice() -> None:
    reader = ChatWire().reader()
    for delta, message in (({"content": "hel"}, "hel"), ({"content": "lo"}, "hello"), ({}, "hello")):
        reader.feed(json.dumps({"choices": [{"delta": delta, "message": {"content": message}}]}))
    reader.feed("[DONE]")
    assert reader.reply().text == "hello"


def test_events_are_whole_or_not_there() -> None:
    assert list(event_data(iter([b"data: a\n", b"\nevent: x\r\nda", b"ta: b\r\ndata: c\r\n\r\n", b"data: d\n"]))) == [
        "a",
        "b\nc",
    ]
    assert list(event_data(iter([b'error: {"code": 500}\n', b"\n"]))) == ['{"error": {"code": 500}}']


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b'{"error":\r\n {"code": 1}}\r\n', ['{"error":\n {"code": 1}}']),
        (b"<html>\n<p>bad gateway</p>", ["<html>\n<p>bad gateway</p>"]),
        (b": wait\n\nevent: x\ndata: {", []),
        (b"event: x\n", []),
        (b"data: a\n\nda", ["a"]),
        (b"", []),
    ],
)
def test_a_body_that_is_no_stream_is_one_event(body: bytes, data: list[str]) -> None:
    assert list(event_data(iter([body[:3], body[3:]]))) == data


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_a_whole_answer_that_is_not_streamed(wire: ChatWire | MessagesWire) -> None:
    call = {"id": "c", "function": {"name": "run", "arguments": '{"command": 1}'}}
    message = {"role": "assistant", "content": "I run.", "tool_calls": [call]}
    use = {"type": "tool_use", "id": "c", "name": "run", "input": {"command": 1}}
    reader = wire.reader()
    if isinstance(wire, ChatWire):
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        reader.feed(json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}))
    else:
        usage = {"input_tokens": 3, "output_tokens": 2}
        content = [{"type": "text", "text": "I run."}, use]
        reader.feed(json.dumps({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}))
    reply = reader.reply()
    assert (reply.text, reply.calls) == ("I run.", (RawCall(name="run", arguments='{"command": 1}'),))
    assert reply.usage == ModelUsage(input=3, output=2)


def test_what_a_refusal_says() -> None:
    assert error_text('{"error": {"type": "t", "message": "m", "code": "t"}}') == "t m"
    assert error_text("<html>\n bad  gateway") == "<html> bad gateway"
    assert error_text('"words"') == "words"
    assert error_text('{"error": null, "detail": [{"loc": ["max_tokens"]}]}') == '[{"loc": ["max_tokens"]}]'
    assert error_text('{"error": {"message": "m", "code": 400, "metadata": {"raw": "why"}}}') == "400 m why"
    assert retry_after("7", 0.0) == 7.0
    assert retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 60.0) == 40.0
    assert retry_after("soon", 0.0) is None
    assert retry_after("Thu, 99999999999999999999 Jan 2020 00:00:00 GMT", 0.0) is None
    assert as_object("[1]") == {"unreadable": "[1]"}


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_a_number_that_json_does_not_have_is_not_sent(wire: ChatWire | MessagesWire, number: str) -> None:
    call = ToolCall(id="c", name="run", arguments=f'{{"command": "x", "seconds": {number}}}')
    body = wire.body(ModelRequest(model="m", system="S", messages=(AnswerMessage(calls=(call,)),)))
    answer = body["messages"][-1]
    made = answer["content"][0]["input"] if isinstance(wire, MessagesWire) else answer["tool_calls"][0]["function"]
    json.dumps(body, allow_nan=False)
    if isinstance(wire, ChatWire):
        made = json.loads(made["arguments"])
    assert made == {"unreadable": call.arguments}
