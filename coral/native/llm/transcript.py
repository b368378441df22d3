"""Keeps every message of an agent's conversation in a file beside its memory, one JSON object a line, for recall."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from coral.codec import encode
from coral.native.llm.conversation import Message

EXCERPT = 400  # characters


class Transcript:
    """The file, which only grows. Messages are numbered by `message_count` of the memory. A line that was cut when the
    process died is skipped; a number that comes again replaces the earlier one, for the memory was rolled back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last = max((number for number, _ in self._texts()), default=0)  # the number that was written last

    def follow(self, count: int, messages: Sequence[Message]) -> None:
        """Append the messages that the transcript lacks. `messages`: the latest of the conversation, in order;
        `count`: the number of the last one."""
        first = count - len(messages) + 1
        for number in range(max(first, self.last + 1), count + 1):
            self._append(number, messages[number - first])
        self.last = count

    def _append(self, number: int, message: Message) -> None:
        line = json.dumps({"number": number, **encode(message)}, ensure_ascii=False)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # With a line feed before it as well: the last line may have been cut.
            os.write(handle, b"\n" + line.encode("utf-8", "replace") + b"\n")
        finally:
            os.close(handle)

    def search(self, words: list[str], most: int, before: int) -> list[tuple[int, str]]:
        """Return the messages with a number below `before` that hold every word, without regard to case: the newest
        first, with their numbers."""
        wanted = [word.lower() for word in words]
        texts = dict(self._texts())
        found = [
            (number, text)
            for number, text in texts.items()
            if number < before and all(word in text.lower() for word in wanted)
        ]
        return sorted(found, reverse=True)[:most]

    def _texts(self) -> Iterator[tuple[int, str]]:
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    if line.strip():
                        yield from _message_text(line)
        except FileNotFoundError:
            return


def _message_text(line: bytes) -> Iterator[tuple[int, str]]:
    try:
        held = json.loads(line)
        calls = " ".join(f"{call['name']} {call['arguments']}" for call in held.get("calls", ()))
        yield int(held["number"]), f"{held.get('text', '')} {calls}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return


def excerpt(text: str, words: list[str]) -> str:
    """Return the part of a text around the first of the words."""
    places = [place for word in words if (place := text.lower().find(word.lower())) >= 0]
    start = max(0, min(places, default=0) - EXCERPT // 3)
    part = text[start : start + EXCERPT]
    return f"{'...' if start else ''}{part}{'...' if start + EXCERPT < len(text) else ''}"
