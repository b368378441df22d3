"""The four ways in which agent programs talk to a model: where, which tool is the shell, how an answer is streamed.

A wire knows nothing of scripts: it writes what a `Step` says in its own format.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

SHELLS = ("Bash", "exec_command", "bash", "run_shell_command", "run")  # the last is that of our own agent
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer. `run`: a shell command to call, after the text `say`. `calls`: tools to call instead, with arguments,
    or the text that stands in their place. `raw`: the bytes of the whole stream. `finish`: the format's word for the
    end. `usage`: tokens in (cached ones too), out, and how many of those in were cached.

    `error`: one of `ERRORS`, said in the format's own words; `body` is said in place of those.
    `before`: seconds before the answer begins; `between`: seconds between its pieces. `hang`: it never goes on after
    its first pieces. `cut`: the connection is lost after them. `times`: how often it is given.
    """

    say: str = ""
    run: str = ""
    calls: Sequence[tuple[str, Body | str]] = ()
    raw: bytes | None = None
    finish: str = ""
    usage: tuple[int, int, int] = (10, 5, 0)
    error: str = ""
    body: Body = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    before: float = 0.0
    between: float = 0.0
    hang: bool = False
    cut: bool = False
    times: int = 1

    @property
    def status(self) -> int:
        return ERRORS[self.error] if self.error else 200


ERRORS = {
    "denied": 401,
    "unpaid": 402,
    "broken": 500,
    "too many": 429,
    "overloaded": 529,
    "too long": 400,
    "no credit": 400,
}
# Each format's words for them: the machine's, and a person's.
_MESSAGES = {
    "denied": ("authentication_error", "invalid x-api-key"),
    "unpaid": ("billing_error", "Your credit balance is too low."),
    "broken": ("api_error", "Internal server error"),
    "too many": ("rate_limit_error", "This request would exceed your organization's rate limit."),
    "overloaded": ("overloaded_error", "Overloaded"),
    "too long": ("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "no credit": ("invalid_request_error", "Your credit balance is too low to access the API."),
}
_CODED = {
    "denied": ("invalid_api_key", "Incorrect API key provided."),
    "unpaid": ("insufficient_quota", "You have run out of credits."),
    "broken": ("server_error", "The server had an error."),
    "too many": ("rate_limit_exceeded", "Rate limit reached for requests."),
    "overloaded": ("server_error", "The server is overloaded."),
    "too long": ("context_length_exceeded", "Your input exceeds the context window of this model."),
    "no credit": ("invalid_request_error", "You have run out of credits."),
}
_GEMINI = {
    "denied": ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    "unpaid": ("FAILED_PRECONDITION", "Billing is not enabled."),
    "broken": ("INTERNAL", "An internal error has occurred."),
    "too many": ("RESOURCE_EXHAUSTED", "Resource has been exhausted."),
    "overloaded": ("UNAVAILABLE", "The model is overloaded."),
    "too long": ("INVALID_ARGUMENT", "The input token count (250000) exceeds the maximum number of tokens allowed."),
    "no credit": ("FAILED_PRECONDITION", "You have run out of credits."),
}


class Wire:
    """A format. `number` tells apart answers and calls that must not have the same id."""

    conversation: ClassVar[str]  # where in a request's body the conversation is

    def shell(self, body: Body) -> str:
        """Return the name of the shell tool that the request offers; empty if it offers none."""
        return next((shell for shell in SHELLS if shell in self._offered(body)), "")

    def _offered(self, body: Body) -> Mapping[str, Body]:
        """Return the tools a request offers, with the properties that their arguments have."""
        raise NotImplementedError

    def pieces(self, step: Step, number: int, body: Body) -> Iterator[bytes]:
        raise NotImplementedError

    def whole(self, step: Step, number: int, body: Body) -> Body | None:
        """Return the answer to a request that wants no stream; None where the format has no such request."""
        return None

    def error(self, step: Step) -> Body:
        kind, message = _CODED[step.error]
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    def _arguments(self, step: Step, body: Body) -> dict[str, object]:
        wanted = self._offered(body).get(self.shell(body), {})
        found: dict[str, object] = {"cmd" if "cmd" in wanted else "command": step.run}
        found |= {"description": "a step"} if "description" in wanted else {}
        return found | ({"request_heartbeat": True} if "request_heartbeat" in wanted else {})

    def _calls(self, step: Step, body: Body) -> list[tuple[str, Body | str]]:
        """Return the name and the arguments of each call."""
        return list(step.calls) or ([(self.shell(body), self._arguments(step, body))] if step.run else [])


class Messages(Wire):
    conversation = "messages"

    def _offered(self, body: Body) -> Mapping[str, Body]:
        tools = [tool for tool in body.get("tools") or () if "input_schema" in tool]
        return {tool["name"]: tool["input_schema"].get("properties", {}) for tool in tools}

    def pieces(self, step: Step, number: int, body: Body) -> Iterator[bytes]:
        first = {**self._message(step, number, body), "content": [], "stop_reason": None}
        yield _event({"type": "message_start", "message": first})
        for index, block in enumerate(self._blocks(step, number, body)):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            yield _event({"type": "content_block_start", "index": index, "content_block": empty})
            for delta in self._deltas(block):
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})
        reason = step.finish or ("tool_use" if step.run or step.calls else "end_turn")
        usage = {"output_tokens": step.usage[1]}
        yield _event({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})
        yield _event({"type": "message_stop"})

    def whole(self, step: Step, number: int, body: Body) -> Body:
        return self._message(step, number, body)

    def error(self, step: Step) -> Body:
        kind, message = _MESSAGES[step.error]
        return {"type": "error", "error": {"type": kind, "message": message}}

    def _message(self, step: Step, number: int, body: Body) -> dict[str, Any]:
        got, out, cached = step.usage
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": list(self._blocks(step, number, body)),
            "stop_reason": "tool_use" if step.run else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": got - cached, "cache_read_input_tokens": cached, "output_tokens": out},
        }

    def _blocks(self, step: Step, number: int, body: Body) -> Iterator[dict[str, Any]]:
        if step.say:
            yield {"type": "text", "text": step.say}
        for place, (name, arguments) in enumerate(self._calls(step, body)):
            yield {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}

    def _deltas(self, block: Body) -> Iterator[Body]:
        if block["type"] == "tool_use":
            given = block["input"]
            yield {"type": "input_json_delta", "partial_json": given if isinstance(given, str) else json.dumps(given)}
            return
        for word in _words(block["text"]):
            yield {"type": "text_delta", "text": word}


class Responses(Wire):
    conversation = "input"

    def _offered(self, body: Body) -> Mapping[str, Body]:
        tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
        return {tool["name"]: tool.get("parameters", {}).get("properties", {}) for tool in tools}

    def pieces(self, step: Step, number: int, body: Body) -> Iterator[bytes]:
        id = f"resp_{number}"
        yield _event({"type": "response.created", "response": {"id": id}})
        if step.say:
            item = {"type": "message", "role": "assistant", "id": f"msg_{number}"}
            yield _event({"type": "response.output_item.added", "item": {**item, "content": []}})
            for word in _words(step.say):
                yield _event({"type": "response.output_text.delta", "delta": word})
            content = [{"type": "output_text", "text": step.say}]
            yield _event({"type": "response.output_item.done", "item": {**item, "content": content}})
        if step.run:
            arguments = json.dumps(self._arguments(step, body))
            call = {"type": "function_call", "call_id": f"call_{number}", "name": self.shell(body)}
            yield _event({"type": "response.output_item.done", "item": {**call, "arguments": arguments}})
        got, out, cached = step.usage
        usage = {
            "input_tokens": got,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": got + out,
        }
        yield _event({"type": "response.completed", "response": {"id": id, "usage": usage}})


class Chat(Wire):
    conversation = "messages"

    def _offered(self, body: Body) -> Mapping[str, Body]:
        tools = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
        return {tool["name"]: (tool.get("parameters") or {}).get("properties", {}) for tool in tools}

    def pieces(self, step: Step, number: int, body: Body) -> Iterator[bytes]:
        model = body.get("model", "")
        head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 0, "model": model}
        for delta in self._deltas(step, number, body):
            yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, named=False)
        finish = step.finish or ("tool_calls" if step.run or step.calls else "stop")
        end = {"index": 0, "delta": {}, "finish_reason": finish}
        yield _event({**head, "choices": [end], "usage": self._usage(step)}, named=False)
        yield b"data: [DONE]\n\n"

    def whole(self, step: Step, number: int, body: Body) -> Body:
        message: dict[str, Any] = {"role": "assistant", "content": step.say}
        if calls := self._calls(step, body):
            message["tool_calls"] = [
                self._call(name, arguments, f"call_{number}_{place}") for place, (name, arguments) in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if step.run else "stop"}
        head = {"id": f"c{number}", "object": "chat.completion", "created": 0, "model": body.get("model", "")}
        return {**head, "choices": [choice], "usage": self._usage(step)}

    def _deltas(self, step: Step, number: int, body: Body) -> Iterator[Body]:
        for word in _words(step.say):
            yield {"role": "assistant", "content": word}
        for place, (name, arguments) in enumerate(self._calls(step, body)):
            call = {"index": place, **self._call(name, arguments, f"call_{number}_{place}")}
            yield {"role": "assistant", "tool_calls": [call]}

    def _call(self, name: str, arguments: Body | str, id: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
        return {"id": id, "type": "function", "function": function}

    def _usage(self, step: Step) -> Body:
        got, out, cached = step.usage
        details = {"cached_tokens": cached}
        return {
            "prompt_tokens": got,
            "completion_tokens": out,
            "total_tokens": got + out,
            "prompt_tokens_details": details,
        }


class Gemini(Wire):
    conversation = "contents"

    def _offered(self, body: Body) -> Mapping[str, Body]:
        found: dict[str, Body] = {}
        for group in body.get("tools") or ():
            for tool in group.get("functionDeclarations") or ():
                schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
                found[tool["name"]] = {"command": schema.get("properties", {}).get("command", {})}
        return found

    def pieces(self, step: Step, number: int, body: Body) -> Iterator[bytes]:
        for word in _words(step.say):
            yield _event({"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}}]}, named=False)
        yield _event(self._last(step, body, ()), named=False)

    def whole(self, step: Step, number: int, body: Body) -> Body:
        return self._last(step, body, ({"text": step.say},))

    def error(self, step: Step) -> Body:
        kind, message = _GEMINI[step.error]
        return {"error": {"code": step.status, "message": message, "status": kind}}

    def _last(self, step: Step, body: Body, before: tuple[Body, ...]) -> Body:
        got, out, cached = step.usage
        call = {"functionCall": {"name": self.shell(body), "args": self._arguments(step, body)}}
        parts = [*before, *([call] if step.run else [])] or [{"text": ""}]
        usage = {"promptTokenCount": got, "candidatesTokenCount": out, "totalTokenCount": got + out}
        end = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"candidates": [end], "usageMetadata": {**usage, "cachedContentTokenCount": cached}}


WIRES: Mapping[str, Wire] = {
    "/messages": Messages(),
    "/responses": Responses(),
    "/chat/completions": Chat(),
    "GenerateContent": Gemini(),
    ":generateContent": Gemini(),
}


def _event(data: Body, *, named: bool = True) -> bytes:
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def _words(text: str) -> list[str]:
    """Return a text in pieces, as a model streams it."""
    return [f"{word} " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]] if text else []
