"""The wire `chat`: chat completions, as OpenAI, gateways, vLLM, llama.cpp and Ollama speak them.

The prefix of a request stays the same from step to step, so that servers which cache prefixes find it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coral.native.llm.conversation import AnswerMessage, Message, PromptMessage, ResultMessage
from coral.native.llm.json_values import (
    as_object,
    call_name,
    count_of,
    number_of,
    object_of,
    objects_of,
    parse_object,
    read_object,
    text_of,
)
from coral.native.llm.model_errors import error_in_stream
from coral.native.llm.request import Fault, Json, ModelError, ModelRequest, ModelUsage, RawCall, Reply

REFUSALS = frozenset({"content_filter", "refusal"})
REASONING = frozenset({"reasoning_details", "reasoning_content"})  # memory may also hold that of the other wire
CUTS = frozenset({"length", "model_length"})
FAILURES = frozenset({"error", "abort", "insufficient_system_resource"})
# Servers refuse one name of the limit or the other, or a prompt that follows a result, each in its own words.
UNSUPPORTED = re.compile(r"unsupported|not supported|unrecognized|unknown|unexpected|not permitted", re.I)
MISPLACED_PROMPT = re.compile(r"role\W+user\W+after role\W+tool|roles must alternate", re.I)


class ChatWire:
    """Writes requests and reads answers. After a refusal it keeps to the form that the server takes."""

    path = "/chat/completions"

    def __init__(self) -> None:
        self._limit = ""  # the name of the limit on an answer, once a server has refused the other
        self._joins = False  # whether prompts become a part of the result before them

    def headers(self, key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> Json:
        system = "\n\n".join(part for part in (request.system, request.core) if part)
        messages = _joined(request.messages) if self._joins else request.messages
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": "system", "content": system}, *_messages(messages)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.effort:
            body["reasoning_effort"] = request.effort
        if request.answer_tokens:
            body[self._limit_name(request)] = request.answer_tokens
        return body

    def _limit_name(self, request: ModelRequest) -> str:
        """Return the name of the limit on an answer: models that reason refuse the older one."""
        return self._limit or ("max_completion_tokens" if request.effort else "max_tokens")

    def adapt(self, request: ModelRequest, problem: str, /) -> bool:
        before, name = self.body(request), self._limit_name(request)
        if not self._limit and name in problem and UNSUPPORTED.search(problem):
            self._limit = "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
        self._joins = self._joins or MISPLACED_PROMPT.search(problem) is not None
        return self.body(request) != before

    def reader(self) -> "ChatReader":
        return ChatReader()


def _messages(messages: tuple[Message, ...]) -> Iterator[Json]:
    """Yield the messages of a request. Prompts in a row become one message: the templates of some models want the two
    sides to take turns."""
    prompts: list[str] = []
    for message in messages:
        if isinstance(message, PromptMessage):
            prompts.append(message.text)
            continue
        if prompts:
            yield {"role": "user", "content": "\n\n".join(prompts)}
        prompts = []
        yield _message(message)
    if prompts:
        yield {"role": "user", "content": "\n\n".join(prompts)}


def _joined(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with each prompt that directly follows a tool's result appended to the text of the result."""
    joined = list[Message]()
    for message in messages:
        if isinstance(message, PromptMessage) and joined and isinstance(joined[-1], ResultMessage):
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text}\n\n{message.text}")
        else:
            joined.append(message)
    return tuple(joined)


def _message(message: AnswerMessage | ResultMessage) -> Json:
    match message:
        case ResultMessage(call=call, text=text):
            return {"role": "tool", "tool_call_id": call, "content": text}
        case AnswerMessage(text=text, calls=calls, reasoning=reasoning):
            answer: dict[str, Any] = {"role": "assistant", "content": text}
            if calls:
                answer["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call_name(call.name), "arguments": _as_json(call.arguments)},
                    }
                    for call in calls
                ]
            kept = (item for block in reasoning for item in json.loads(block).items())
            return {**answer, **{name: value for name, value in kept if name in REASONING}}


class ChatReader:
    def __init__(self) -> None:
        self._text, self._reasoning = "", ""
        self._details: list[dict[str, object]] = []
        self._calls: list[dict[str, str]] = []
        self._begun: dict[object, dict[str, str]] = {}  # by number or id
        self._finish, self._done = "", False
        self._usage = ModelUsage()

    @property
    def usage(self) -> ModelUsage:
        return self._usage

    @property
    def done(self) -> bool:
        return self._done

    def feed(self, data: str) -> None:
        if data.strip() == "[DONE]":
            self._done = True
            return
        event = parse_object(data)
        if error := event.get("error"):
            raise error_in_stream(error)
        if usage := object_of(event.get("usage")):  # an empty one may follow the figures
            self._usage = _usage(usage)
        for choice in objects_of(event.get("choices"))[:1]:
            self._finish = text_of(choice.get("finish_reason")) or self._finish
            # A server that does not stream sends a whole message; some send what came so far beside each piece.
            self._delta(object_of(choice.get("delta" if "delta" in choice else "message")))

    def _delta(self, delta: Json) -> None:
        content = delta.get("content")
        parts = (text_of(part.get("text")) for part in objects_of(content) if part.get("type") == "text")
        self._text += text_of(content) or "".join(parts) or text_of(delta.get("refusal"))
        self._reasoning += text_of(delta.get("reasoning_content"))
        for detail in objects_of(delta.get("reasoning_details")):
            self._detail(detail)
        for call in objects_of(delta.get("tool_calls")):
            self._call(call)

    def _detail(self, detail: Json) -> None:
        """Add one streamed piece of reasoning. Pieces of one part are joined, because its signature is that of the
        whole part."""
        last = self._details[-1] if self._details else {}
        other = last.get("id") and detail.get("id") and detail["id"] != last["id"]
        if not last or other or any(detail.get(name) != last.get(name) for name in ("type", "index")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in ("text", "summary", "data"):
                last[name] = text_of(last.get(name)) + text_of(value)
            elif value is not None:
                last[name] = value

    def _call(self, call: Json) -> None:
        """Add one streamed piece of a tool call to the call that it belongs to."""
        function = object_of(call.get("function"))
        name, arguments = text_of(function.get("name")), function.get("arguments")
        written = json.dumps(arguments) if isinstance(arguments, Mapping) else text_of(arguments)
        held = self._held(call.get("index"), text_of(call.get("id")), name, written)
        held["name"] = held["name"] or name  # some servers repeat it in each piece
        held["arguments"] += written

    def _held(self, index: object, id: str, name: str, arguments: str) -> dict[str, str]:
        """Return the call that a piece belongs to. Some servers number the calls, some give all of them the same
        number or id, others neither: there each call begins with a name, and with an id or a name of its own or after
        whole arguments. An id without a name begins no call, since some servers give each piece another id."""
        numbered = isinstance(index, int)
        key = index if numbered else id
        last = self._calls[-1] if self._calls and not numbered else None
        held = self._begun.get(key, last) if key != "" else last
        if held is not None:
            another = name != held["name"] or (id != "" and id != held["id"])
            another = another or (arguments.strip() != "" and read_object(held["arguments"]) is not None)
            if not (name and held["name"] and another):
                return held
        self._begun[key] = begun = {"id": id, "name": "", "arguments": ""}
        self._calls.append(begun)
        return begun

    def reply(self) -> Reply:
        if not self._finish and not self._done:
            raise ModelError(Fault.TRANSIENT, "the answer broke off")
        if self._finish in FAILURES:
            raise ModelError(Fault.TRANSIENT, f"the server ended the answer with {self._finish}")
        return Reply(
            text=self._text,
            calls=tuple(RawCall(name=call["name"], arguments=call["arguments"]) for call in self._calls),
            reasoning=tuple(self._kept_reasoning()),
            usage=self._usage,
            cut=self._finish in CUTS,
            refused=self._finish in REFUSALS,
        )

    def _kept_reasoning(self) -> Iterator[str]:
        """Yield the reasoning of the reply, as JSON texts. Servers that show reasoning want it back with the tool
        calls."""
        if self._details:
            yield json.dumps({"reasoning_details": self._details})
        elif self._reasoning:
            yield json.dumps({"reasoning_content": self._reasoning})


def _as_json(arguments: str) -> str:
    return json.dumps(as_object(arguments), ensure_ascii=False)


def _usage(usage: Json) -> ModelUsage:
    cached = count_of(object_of(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return ModelUsage(
        input=max(0, count_of(usage.get("prompt_tokens")) - cached),
        cached=cached,
        output=count_of(usage.get("completion_tokens")),
        cost=number_of(usage.get("cost")),
    )
