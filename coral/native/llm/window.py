"""Keeps a conversation within the model's window: the oldest messages become a summary, and long ones are clipped.

Sizes are estimated: three bytes are one token, which is more than most texts need. Where a server counts more, its
count corrects the estimates that follow.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from coral.native.llm.conversation import AnswerMessage, LlmMemory, Message, PromptMessage, ResultMessage
from coral.native.llm.request import ModelRequest

BYTES_A_TOKEN = 3
OVERHEAD = 16  # tokens of the frame of a message
FULL, KEPT = 0.8, 0.4  # shares of the window: above FULL, the oldest messages are summarised until KEPT is left
SHORTEST = 200  # characters to which a text is clipped at the most
ATTEMPT = re.compile(r"#(\d+)\b")
SUMMARISED = PromptMessage(text="What was before is in the summary. Go on from there.")
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
    """Return the tokens that a request fills of the window."""
    tools = sum(tokens_of(tool.description + json.dumps(dict(tool.parameters))) + OVERHEAD for tool in request.tools)
    return tokens_of(request.system) + tokens_of(request.core) + tools + sum(map(message_tokens, request.messages))


def cut(messages: tuple[Message, ...], most: int) -> int:
    """Return how many of the oldest messages to drop, so that the others have at most `most` tokens. An answer is never
    separated from the results of its calls. The last answer stays whatever its size, because the model has not seen the
    results of its calls."""
    sizes = [message_tokens(message) for message in messages]
    answers = [place for place, message in enumerate(messages) if isinstance(message, AnswerMessage)]
    last = answers[-1] if answers else max(0, len(messages) - 1)
    for place in range(1, last):
        if not isinstance(messages[place], ResultMessage) and sum(sizes[place:]) <= most:
            return place
    return last


def clip(text: str, most: int) -> str:
    """Return the text; of one with more than `most` characters, about that many from its beginning and its end."""
    if len(text) <= most:
        return text
    half = max(1, (most - 60) // 2)
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out here ...]\n{text[-half:]}"


def squeezed(messages: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """Return the messages with at most `most` tokens, if possible: prompts in a row become one, then the longest
    message is clipped again and again. The last answer comes after all others, for clipping takes its reasoning, which
    some servers demand with its calls."""
    if sum(map(message_tokens, messages)) <= most:
        return messages
    kept = list(_joined(messages))
    sizes = [message_tokens(message) for message in kept]
    clippable = set(range(len(kept)))
    last = max((place for place, message in enumerate(kept) if isinstance(message, AnswerMessage)), default=-1)
    while clippable and sum(sizes) > most:
        place = max(clippable, key=lambda place: (place != last, sizes[place]))
        clipped = _clipped(kept[place])
        size = message_tokens(clipped)
        if size < sizes[place]:
            kept[place], sizes[place] = clipped, size
        else:
            clippable.remove(place)
    return tuple(kept)


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, with one prompt for all in a row. Each launch that fails leaves a prompt."""
    for prompts, group in groupby(messages, lambda message: isinstance(message, PromptMessage)):
        if prompts:
            yield PromptMessage(text="\n\n".join(message.text for message in group))
        else:
            yield from group


def _clipped(message: Message) -> Message:
    """Return the message without reasoning, and with its longest text clipped to half, but not below SHORTEST."""
    if not isinstance(message, AnswerMessage):
        return replace(message, text=clip(message.text, max(SHORTEST, len(message.text) // 2)))
    longest = max(len(message.text), *(len(call.arguments) for call in message.calls), 0)
    most = max(SHORTEST, longest // 2)
    calls = tuple(replace(call, arguments=clip(call.arguments, most)) for call in message.calls)
    return replace(message, text=clip(message.text, most), calls=calls, reasoning=())


def mentions(messages: Iterable[Message]) -> str:
    """Return the attempts and files that a part of a conversation names: a summary always names them too."""
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
    """Write a part of a conversation as text of at most `most` tokens, to be summarised."""
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
    text = "\n".join(parts)
    if tokens_of(text) <= most:
        return text
    raw, half = text.encode("utf-8", "replace"), most * BYTES_A_TOKEN // 2
    return f"{raw[:half].decode('utf-8', 'ignore')}\n[...]\n{raw[-half:].decode('utf-8', 'ignore')}"


def replaced(memory: LlmMemory, place: int, summary: str) -> LlmMemory:
    """Return the memory with the summary in place of its oldest messages. A conversation must begin with a prompt."""
    kept = memory.messages[place:]
    if not kept or not isinstance(kept[0], PromptMessage):
        kept = (SUMMARISED, *kept)
    return replace(memory, messages=kept, summary=summary)


def with_messages(memory: LlmMemory, messages: tuple[Message, ...]) -> LlmMemory:
    return replace(memory, messages=messages)
