"""Reads the log of a launch as a conversation: yields one entry for its prompt, and one for each thing that the agent's
program printed.

The output is read as a stream by the runtime's own reader. Of its past only the names of running tools are kept, so the
longest log takes no more memory than a short one. A line that is too long is skipped, and an entry says so.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from attempts.fields import one_line, printable
from attempts.files import open_plain
from coral.runtimes.line_tail import LONGEST_LINE, PIECE, LineTail, end_of
from coral.runtimes.messages import ReplyParts
from coral.runtimes.model import Ending, OutputEvent, Runtime, Tool, Usage, total
from workspace.layout import Layout

LONGEST_PROMPT = 400_000  # bytes
MAX_TOOLS = 1000  # that run at the same time
PIECES = 4  # of output read by one call, so that a program that prints without end does not hold up the reader
_LOG = re.compile(r"(\d{4,})\.(?:jsonl|prompt\.md)")


class EntryKind(StrEnum):
    PROMPT = "prompt"
    REPLY = "reply"
    STEP = "step"  # what the program says it is doing
    TOOL = "tool"
    RESULT = "result"  # what a tool answered
    EDIT = "edit"
    RETRY = "retry"
    COMPACTION = "compaction"
    LIMIT = "limit"
    ERROR = "error"
    OMITTED = "omitted"
    USAGE = "usage"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One entry of a conversation. `tool`: the tool's name; `id`: the same for a tool and its result. `until`: when a
    usage limit ends, in seconds since the epoch. `unknown`: how many events of the launch its runtime does not know."""

    launch: int
    kind: EntryKind
    text: str = ""
    tool: str = ""
    id: str = ""
    failed: bool = False
    edited: str = ""
    until: float | None = None
    usage: Usage | None = None
    ending: Ending | None = None
    unknown: int = 0


def launches(layout: Layout, agent: str) -> list[int]:
    """Return the numbers of the agent's launches that left a prompt or output, in order."""
    try:
        with os.scandir(layout.logs(agent)) as found:
            names = [_LOG.fullmatch(path.name) for path in found]
    except OSError:
        return []
    return sorted({int(name[1]) for name in names if name})


def entries(layout: Layout, agent: str, launch: int, runtime: Runtime) -> Iterator[TranscriptEntry]:
    """Yield the entries of one launch, from its prompt to the end of what its program has printed by now."""
    if prompt := _beginning(layout.prompt(agent, launch)):
        yield TranscriptEntry(launch=launch, kind=EntryKind.PROMPT, text=prompt)
    yield from _Reader(launch, runtime).read(layout.output(agent, launch), layout.errors(agent, launch))


class LaunchTail:
    """Follows a launch while its program prints. The first call of `new` yields its prompt and the last `most` bytes of
    output, each later call what was printed since."""

    def __init__(self, layout: Layout, agent: str, launch: int, runtime: Runtime, most: int) -> None:
        output = layout.output(agent, launch)
        size = 0
        with contextlib.suppress(OSError):
            size = os.stat(output).st_size  # noqa: PTH116 - beside its reader's
        self._prompt = _beginning(layout.prompt(agent, launch))
        self._errors = layout.errors(agent, launch)
        self._tail = LineTail(output, max(0, size - most))
        self._reader = _Reader(launch, runtime)
        self._launch = launch

    def new(self) -> Iterator[TranscriptEntry]:
        if self._prompt:
            yield TranscriptEntry(launch=self._launch, kind=EntryKind.PROMPT, text=self._prompt)
        self._prompt = ""
        for _ in range(PIECES):
            if self._tail.has_more:
                yield from self._reader.more(self._tail)

    def end(self) -> Iterator[TranscriptEntry]:
        """Yield the entries that are left once the program has ended."""
        yield from self.new()
        yield from self._reader.end(self._tail, self._errors)


@dataclass(frozen=True, slots=True)
class LaunchHistory:
    """For each launch of an agent, by number: why it was started, and how it ended in the judgement of its runtime."""

    reasons: dict[int, str]
    endings: dict[int, str]


def launch_history(layout: Layout, agent: str) -> LaunchHistory:
    """Read the history of an agent's launches from the run's timeline, as far as there is one."""
    found = LaunchHistory({}, {})
    with contextlib.suppress(OSError, ValueError), open_plain(layout.events) as file:
        for line in iter(lambda: file.readline(LONGEST_LINE), b""):
            if b'"spawned"' in line or b'"exited"' in line:
                _note(found, line, agent)
    return found


def _note(found: LaunchHistory, line: bytes, agent: str) -> None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(event, dict) or event.get("agent") != agent:
        return
    launch, reason, names = event.get("launch"), event.get("reason"), event.get("heartbeats")
    if not isinstance(launch, int):
        return
    if event.get("type") == "exited":
        found.endings[launch] = one_line(str(event.get("ending")), 40)
    elif event.get("type") == "spawned" and isinstance(reason, dict):
        listed = f": {', '.join(map(str, names))}" if isinstance(names, list) else ""
        found.reasons[launch] = one_line(f"{reason.get('text')}{listed}", 300)


class _Reader:
    def __init__(self, launch: int, runtime: Runtime) -> None:
        self._launch = launch
        self._runtime = runtime
        self._reply_parts = ReplyParts()
        self._tools: dict[str, str] = {}
        self._usage: Usage | None = None
        self._end: OutputEvent | None = None
        self._last_reply = ""
        self._unknown = 0

    def read(self, output: Path, errors: Path) -> Iterator[TranscriptEntry]:
        tail = LineTail(output)
        try:
            pieces = os.stat(output).st_size // PIECE + 1  # noqa: PTH116 - what is printed later is left out
        except OSError:
            return
        for _ in range(pieces):
            yield from self.more(tail)
        yield from self.end(tail, errors)

    def more(self, tail: LineTail) -> Iterator[TranscriptEntry]:
        """Read the next piece of the program's output, and yield its entries."""
        omitted = tail.omitted
        for line in tail.lines():
            yield from self._line(line)
        if tail.omitted > omitted:
            yield self._entry(EntryKind.OMITTED, f"a line of more than {LONGEST_LINE >> 20} MB")

    def end(self, tail: LineTail, errors: Path) -> Iterator[TranscriptEntry]:
        """Yield the entries that are left once the program has ended."""
        for line in tail.rest():
            yield from self._line(line)
        for event in self._reply_parts.rest():
            yield from self._entries_of(event)
        yield from self._last(errors)

    def _line(self, line: bytes) -> Iterator[TranscriptEntry]:
        for event in self._runtime.read(line):
            for joined in self._reply_parts.join((event,)):
                if not event.part:  # a piece of a reply says nothing before the reply is whole
                    yield from self._entries_of(joined)

    def _entries_of(self, event: OutputEvent) -> Iterator[TranscriptEntry]:
        self._unknown += bool(event.unknown)
        if event.usage is not None:
            self._usage = total(self._usage, event.usage)
        if event.ended or event.ending is not None:
            before = self._end or event
            self._end = replace(event, ending=event.ending or before.ending, error=event.error or before.error)
            return
        if event.reply:
            yield self._entry(EntryKind.REPLY, event.reply)
        if event.tool is not None:
            yield self._tool(event.tool, event.edited)
        elif event.edited:
            yield self._entry(EntryKind.EDIT, event.edited, edited=event.edited)
        yield from self._event(event)

    def _event(self, event: OutputEvent) -> Iterator[TranscriptEntry]:
        """Yield the entry for an event of the agent's program, such as a retry or a limit, rather than of the agent."""
        if event.retry is not None:
            yield self._entry(EntryKind.RETRY, event.message or event.retry.reason)
        elif event.compacted:
            yield self._entry(EntryKind.COMPACTION, event.message)
        elif event.limit_until is not None:
            yield self._entry(EntryKind.LIMIT, event.message or event.error, until=_exact(event))
        elif event.error:
            yield self._entry(EntryKind.ERROR, event.error)
        elif event.message and not (event.reply or event.tool or event.edited) and event.message != self._last_reply:
            yield self._entry(EntryKind.STEP, event.message)

    def _tool(self, tool: Tool, edited: str) -> TranscriptEntry:
        if tool.over:
            kind, name = EntryKind.RESULT, tool.name or self._tools.pop(tool.id, "")
        else:
            kind, name = EntryKind.TOOL, tool.name
            while len(self._tools) >= MAX_TOOLS:
                del self._tools[next(iter(self._tools))]
            self._tools[tool.id] = name
        return self._entry(kind, tool.text, tool=name, id=tool.id, failed=tool.failed, edited=edited)

    def _last(self, errors: Path) -> Iterator[TranscriptEntry]:
        """Yield the usage of the launch, and its end. If the program gave no error, the end has the last characters of
        its stderr."""
        if self._usage is not None:
            yield self._entry(EntryKind.USAGE, usage=self._usage)
        end = self._end or OutputEvent()
        text = end.error or ("" if end.ending is Ending.CLEAN else one_line(end_of(errors)[-600:], 600))
        about = {"ending": end.ending, "failed": bool(end.error), "until": _exact(end), "unknown": self._unknown}
        yield self._entry(EntryKind.END, text, **about)

    def _entry(self, kind: EntryKind, text: str = "", **given: Any) -> TranscriptEntry:
        self._last_reply = text
        return TranscriptEntry(launch=self._launch, kind=kind, text=text, **given)


def _exact(event: OutputEvent) -> float | None:
    """Return when a limit ends if it was given as a number. A time of day in a sentence is not exact: it was read by
    the clock of the reader."""
    return event.limit_until if event.exact else None


def _beginning(path: Path) -> str:
    """Return the first LONGEST_PROMPT bytes of a prompt as text; empty if there is none."""
    try:
        with open_plain(path) as file:
            return printable(file.read(LONGEST_PROMPT).decode("utf-8", "replace")).strip()
    except (OSError, ValueError):
        return ""
