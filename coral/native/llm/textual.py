"""Writes tool calls as text, for models without tools. Any wire can carry the conversation, which has no calls then.

A call is `<call name="...">` with a JSON object, then `</call>`. Text that only looks like a call becomes a call that
fails, so that the model reads how to write one. Calls within reasoning are drafts, and those after a result that the
model has made up rest on it: neither are performed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from coral.native.llm.conversation import AnswerMessage, Message, PromptMessage, ResultMessage
from coral.native.llm.request import Json, ModelRequest, ModelUsage, ModelWire, RawCall, Reply, StreamReader, ToolSchema

CALL = re.compile(r'<call name="(?P<name>[^"\n]{1,100})">(?P<arguments>.*?)</call>', re.DOTALL)
PART = re.compile(
    rf"<think>.*?(?:</think>|\Z)|(?P<thought></think>)|(?P<result><result name=)|{CALL.pattern}", re.DOTALL
)
HOW = """You have no other way to act than calls that you write as text, each in exactly this form:

<call name="NAME">
{"argument": "value", "request_heartbeat": true}
</call>

Between the marks stands one JSON object. Several calls in one answer are performed in their order. Wait for their
results, which come as <result name="NAME">; never write a result yourself. These are the calls:
"""


@dataclass(frozen=True, slots=True)
class TextualWire:
    """Sends calls and results as texts over another wire."""

    wire: ModelWire

    @property
    def path(self) -> str:
        return self.wire.path

    def headers(self, key: str) -> Mapping[str, str]:
        return self.wire.headers(key)

    def body(self, request: ModelRequest) -> Json:
        tools = "\n\n".join(map(_description, request.tools))
        system = f"{request.system}\n\n{HOW}\n{tools}" if request.tools else request.system
        return self.wire.body(replace(request, system=system, messages=tuple(_plain(request.messages)), tools=()))

    def reader(self) -> "TextualReader":
        return TextualReader(self.wire.reader())

    def adapt(self, request: ModelRequest, problem: str, /) -> bool:
        return self.wire.adapt(replace(request, messages=tuple(_plain(request.messages))), problem)


def _description(tool: ToolSchema) -> str:
    return f"{tool.name}: {tool.description}\narguments: {json.dumps(tool.parameters)}"


def _plain(messages: tuple[Message, ...]) -> Iterator[Message]:
    """Yield the conversation without calls: results in a row become one prompt, with the prompt that follows them."""
    texts: list[str] = []
    for message in messages:
        match message:
            case AnswerMessage(text=text, calls=calls):
                if texts:
                    yield PromptMessage(text="\n\n".join(texts))
                texts = []
                written = [f'<call name="{call.name}">\n{call.arguments}\n</call>' for call in calls]
                yield AnswerMessage(text="\n".join(filter(None, (text, *written))))
            case ResultMessage(name=name, text=text, failed=failed):
                texts.append(f'<result name="{name}"{" failed" if failed else ""}>\n{text}\n</result>')
            case PromptMessage(text=text):
                texts.append(text)
    if texts:
        yield PromptMessage(text="\n\n".join(texts))


@dataclass(frozen=True, slots=True)
class TextualReader:
    inner: StreamReader

    @property
    def usage(self) -> ModelUsage:
        return self.inner.usage

    @property
    def done(self) -> bool:
        return self.inner.done

    def feed(self, data: str) -> None:
        self.inner.feed(data)

    def reply(self) -> Reply:
        reply = self.inner.reply()
        written = reply.text
        rest, calls = _parts(written)
        if "<call" in rest or "</call>" in rest:
            calls.append(RawCall(name="", arguments=rest[rest.find("<call") if "<call" in rest else 0 :][:200]))
            rest = rest[: rest.find("<call")] if "<call" in rest else ""
        begin = written.find("<call")
        if begin >= 0 and not calls and not rest.strip():  # all of it was taken for reasoning
            calls.append(RawCall(name="", arguments=written[begin:][:200]))
        return replace(reply, text=rest.strip(), calls=tuple(calls))


def _parts(written: str) -> tuple[str, list[RawCall]]:
    """Return the text of an answer without its calls and its reasoning, and the calls."""
    text, calls, place = "", list[RawCall](), 0
    for match in PART.finditer(written):
        text += written[place : match.start()]
        place = match.end()
        if match["result"]:
            return text, calls
        if match["thought"]:  # it began in the prompt, as some templates have it
            text, calls = "", []
        elif match["name"]:
            calls.append(RawCall(name=match["name"], arguments=match["arguments"].strip()))
    return text + written[place:], calls
