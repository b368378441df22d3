"""The wire `messages`, as Anthropic and gateways to it speak it. Parts that stay the same are marked for the cache."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from coral.native.llm.conversation import AnswerMessage, Message, PromptMessage, ResultMessage
from coral.native.llm.json_values import as_object, call_name, count_of, object_of, objects_of, parse_object, text_of
from coral.native.llm.model_errors import error_in_stream
from coral.native.llm.request import Fault, Json, ModelError, ModelRequest, ModelUsage, RawCall, Reply

VERSION = "2023-06-01"
ANSWER_TOKENS = 16_000  # this wire demands a limit
THOUGHTS = ("thinking", "redacted_thinking")  # memory may also hold reasoning of the other wire
CACHED = {"cache_control": {"type": "ephemeral"}}


class MessagesWire:
    path = "/v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, request: ModelRequest) -> Json:
        system = [{"type": "text", "text": text, **CACHED} for text in (request.system, request.core) if text]
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.answer_tokens or ANSWER_TOKENS,
            "system": system,
            "messages": _marked(list(_turns(request.messages))),
            "stream": True,
        }
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.effort:
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": request.effort}
        return body

    def reader(self) -> "MessagesReader":
        return MessagesReader()

    def adapt(self, _request: ModelRequest, _problem: str, /) -> bool:
        return False


def _turns(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    """Yield the turns of a conversation. Results and the prompts after them are one turn of the user."""
    role, blocks = "", list[dict[str, Any]]()
    for message in messages:
        speaker = "assistant" if isinstance(message, AnswerMessage) else "user"
        if speaker != role and blocks:
            yield {"role": role, "content": blocks}
            blocks = []
        role = speaker
        blocks += _blocks(message)
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    match message:
        case PromptMessage(text=text):
            yield {"type": "text", "text": text}
        case ResultMessage(call=call, text=text, failed=failed):
            yield {
                "type": "tool_result",
                "tool_use_id": call,
                "content": text,
                **({"is_error": True} if failed else {}),
            }
        case AnswerMessage(text=text, calls=calls, reasoning=reasoning):
            yield from (block for line in reasoning if (block := json.loads(line)).get("type") in THOUGHTS)
            if text.strip():
                yield {"type": "text", "text": text}
            for tool_call in calls:
                yield {
                    "type": "tool_use",
                    "id": tool_call.id,
                    "name": call_name(tool_call.name),
                    "input": as_object(tool_call.arguments),
                }


def _marked(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the end of the conversation: the next request reads all before it from the cache."""
    if turns:
        *others, last = turns
        *blocks, end = last["content"]
        turns = [*others, {**last, "content": [*blocks, {**end, **CACHED}]}]
    return turns


class MessagesReader:
    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._begun: dict[object, dict[str, Any]] = {}  # the latest by number: gateways repeat numbers, or have none
        self._reason, self._done = "", False
        self._usage = ModelUsage()

    @property
    def usage(self) -> ModelUsage:
        return self._usage

    @property
    def done(self) -> bool:
        return self._done

    def feed(self, data: str) -> None:
        event = parse_object(data)
        if event.get("error") or event.get("type") == "error":
            raise error_in_stream(event.get("error"))
        match event.get("type"):
            case "message_start":
                self._count(_inner(event, "message"))
            case "content_block_start":
                block = {**_inner(event, "content_block"), "json": ""}
                self._blocks.append(block)
                self._begun[event.get("index")] = block
            case "content_block_delta":
                self._delta(self._begun.get(event.get("index")), _inner(event, "delta"))
            case "message_delta":
                self._reason = text_of(_inner(event, "delta").get("stop_reason")) or self._reason
                self._count(event)
            case "message_stop":
                self._done = True
            case "message":  # of a server that does not stream
                self._blocks = [{**block, "json": ""} for block in objects_of(event.get("content"))]
                self._reason = text_of(event.get("stop_reason"))
                self._count(event)

    def _delta(self, block: dict[str, Any] | None, delta: Json) -> None:
        if block is None:
            raise ModelError(Fault.TRANSIENT, "the answer goes on with a block that never began")
        for kind, source, target in (
            ("text_delta", "text", "text"),
            ("input_json_delta", "partial_json", "json"),
            ("thinking_delta", "thinking", "thinking"),
            ("signature_delta", "signature", "signature"),
        ):
            if delta.get("type") == kind:
                block[target] = text_of(block.get(target)) + text_of(delta.get(source))

    def _count(self, event: Json) -> None:
        """Take the figures of an event, which include those of the events before it."""
        usage, held = _inner(event, "usage"), self._usage
        read = count_of(usage.get("input_tokens")) + count_of(usage.get("cache_creation_input_tokens"))
        self._usage = ModelUsage(
            input=read or held.input,
            cached=count_of(usage.get("cache_read_input_tokens")) or held.cached,
            output=count_of(usage.get("output_tokens")) or held.output,
        )

    def reply(self) -> Reply:
        if not self._reason and not self._done:
            raise ModelError(Fault.TRANSIENT, "the answer broke off")
        blocks = self._blocks
        return Reply(
            text="".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text"),
            calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
            reasoning=tuple(_kept(block) for block in blocks if block.get("type") in THOUGHTS),
            usage=self._usage,
            cut=self._reason in ("max_tokens", "model_context_window_exceeded"),
            refused=self._reason == "refusal",
        )


def _call(block: Json) -> RawCall:
    arguments = block["json"] or json.dumps(object_of(block.get("input")))
    return RawCall(name=text_of(block.get("name")), arguments=arguments)


def _kept(block: Json) -> str:
    return json.dumps({name: value for name, value in block.items() if name != "json"})


def _inner(event: Json, name: str) -> Json:
    return object_of(event.get(name))
