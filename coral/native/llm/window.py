"""Keeps a conversation within the model's window: what is oldest becomes a summary, what is too long is clipped.

Sizes are estimated: three bytes are one token, which is more than most texts need. Where a server counts more, its
count corrects the estimates that follow.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from coral.native.llm.conversation import AnswerMessage, LlmMemory, Message, PromptMessage, ResultMessage
from coral.native.llm.request import ModelRequest

BYTES_A_TOKEN = 3
OVERHEAD = 16  # tokens of the frame of a message
FULL, KEPT = 0.8, 0.4  # shares of the window: when the oldest part goes, and how much of the conversation stays
ATTEMPT = re.compile(r"#(\d+)\b")
FILE_KEYS = ("path", "file", "files")


def tokens_of(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def message_tokens(message: Message) -> int:
    match message:
        case PromptMessage(text=text) | ResultMessage(text=text):
            return OVERHEAD + tokens_of(text)
        case AnswerMessage(text=text, calls=calls, reasoning=reasoning):
            parts = (text, *reasoning, *(call.name + call.arguments for call in calls))
            return OVERHEAD * (1 + len(calls)) + sum(map(tokens_of, parts))


def request_tokens(request: ModelRequest) -> int:
    """What a request fills of the window."""
    tools = sum(tokens_of(tool.description + json.dumps(dict(tool.parameters))) + OVERHEAD for tool in request.tools)
    return tokens_of(request.system) + tokens_of(request.core) + tools + sum(map(message_tokens, request.messages))


def cut(messages: tuple[Message, ...], most: int) -> int:
    """How many of the oldest messages go, that the others have at most `most` tokens. A call stays with its results,
    and the calls that are not finished stay: an answer is always followed by what came of it."""
    sizes = [message_tokens(message) for message in messages]
    for place in range(1, len(messages)):
        if not isinstance(messages[place], ResultMessage) and sum(sizes[place:]) <= most:
            return place
    answers = [place for place, message in enumerate(messages) if isinstance(message, AnswerMessage)]
    return answers[-1] if answers else max(0, len(messages) - 1)


def clip(text: str, most: int) -> str:
    """The text, or its beginning and its end, of at most about `most` characters."""
    if len(text) <= most:
        return text
    half = max(1, (most - 60) // 2)
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out here ...]\n{text[-half:]}"


def squeezed(messages: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """The messages, of at most `most` tokens: the longest ones are clipped, again and again."""
    kept = list(messages)
    for _ in range(200):
        sizes = [message_tokens(message) for message in kept]
        if sum(sizes) <= most:
            break
        place = sizes.index(max(sizes))
        kept[place] = _clipped(kept[place], max(200, sizes[place] * BYTES_A_TOKEN // 4))
    return tuple(kept)


def _clipped(message: Message, most: int) -> Message:
    if isinstance(message, AnswerMessage):
        calls = tuple(replace(call, arguments=clip(call.arguments, most)) for call in message.calls)
        return replace(message, text=clip(message.text, most), calls=calls, reasoning=())
    return replace(message, text=clip(message.text, most))


def mentions(messages: Iterable[Message]) -> str:
    """The attempts and files that a part of a conversation speaks of: a summary always names them."""
    attempts, files = set[int](), set[str]()
    for message in messages:
        text = message.text
        attempts.update(int(number) for number in ATTEMPT.findall(text)[:200] if len(number) < 9)
        if isinstance(message, AnswerMessage):
            files.update(name for call in message.calls for name in _files(call.arguments))
    found = []
    if attempts:
        found.append(f"attempts {', '.join(f'#{number}' for number in sorted(attempts)[-40:])}")
    if files:
        found.append(f"files {', '.join(sorted(files)[:40])}")
    return "; ".join(found)


def _files(arguments: str) -> Iterator[str]:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return
    for name in FILE_KEYS if isinstance(given, dict) else ():
        if isinstance(given.get(name), str):
            yield given[name][:200]


def as_text(messages: Iterable[Message], most: int) -> str:
    """A part of a conversation to be summarised."""
    parts = []
    for message in messages:
        match message:
            case PromptMessage(text=text):
                parts.append(f"PROMPT: {clip(text, 1500)}")
            case AnswerMessage(text=text, calls=calls):
                parts.append(f"AGENT: {clip(text, 1500)}")
                parts += [f"CALL {call.name}: {clip(call.arguments, 600)}" for call in calls]
            case ResultMessage(name=name, text=text):
                parts.append(f"RESULT of {name}: {clip(text, 800)}")
    return clip("\n".join(parts), most)


def replaced(memory: LlmMemory, place: int, summary: str) -> LlmMemory:
    """The memory without its oldest messages, which the summary stands for. A conversation begins with a prompt."""
    kept = memory.messages[place:]
    if not kept or not isinstance(kept[0], PromptMessage):
        kept = (PromptMessage(text="What was before is in the summary. Go on from there."), *kept)
    return replace(memory, messages=kept, summary=summary)


def with_messages(memory: LlmMemory, messages: tuple[Message, ...]) -> LlmMemory:
    return replace(memory, messages=messages)
