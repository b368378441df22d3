"""A launch as a conversation: what the agent was told and what its program printed, one entry after the other.

Read as it streams, by the runtime's own reader. Nothing is kept but the names of tools that are still at work, so that
the longest log costs no memory; a line without end is passed over and said to be.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from attempts.fields import one_line, printable
from attempts.files import open_plain
from coral.runtimes.model import Ending, OutputEvent, Runtime, Usage
from coral.runtimes.reply_parts import ReplyParts
from coral.runtimes.usage_total import UsageTotal
from coral.supervisor.output import LONGEST_LINE, PIECE, LineTail, end_of
from workspace.layout import Layout

LONGEST_PROMPT = 400_000  # bytes
MAX_TOOLS = 1000  # at work at the same time
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
    """`tool`: a name; `id` joins a tool and its result. `until`: seconds since the epoch, when a limit ends. `unknown`:
    how many lines of the launch its runtime does not know."""

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
    """The launches of which there is anything to read, in their order."""
    try:
        with os.scandir(layout.logs(agent)) as found:
            names = [_LOG.fullmatch(path.name) for path in found]
    except OSError:
        return []
    return sorted({int(name[1]) for name in names if name})


def entries(layout: Layout, agent: str, launch: int, runtime: Runtime) -> Iterator[TranscriptEntry]:
    """One launch from its prompt to the last word that it has printed by now."""
    if prompt := _beginning(layout.prompt(agent, launch)):
        yield TranscriptEntry(launch=launch, kind=EntryKind.PROMPT, text=prompt)
    yield from _Reader(launch, runtime).read(layout.output(agent, launch), layout.errors(agent, launch))


@dataclass(frozen=True, slots=True)
class LaunchHistory:
    """Of one agent, by the number of the launch: why it was started, and how it ended as its runtime judged."""

    reasons: dict[int, str]
    endings: dict[int, str]


def launch_history(layout: Layout, agent: str) -> LaunchHistory:
    """As far as the run's timeline tells; it is a view, and may be gone."""
    found = LaunchHistory({}, {})
    try:
        with open_plain(layout.events) as file:
            for line in iter(lambda: file.readline(LONGEST_LINE), b""):
                if b'"spawned"' in line or b'"exited"' in line:
                    _note(found, line, agent)
    except (OSError, ValueError):
        pass
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
        self._usage_total = UsageTotal()
        self._end: OutputEvent | None = None
        self._last_reply = ""
        self._unknown = 0

    def read(self, output: Path, errors: Path) -> Iterator[TranscriptEntry]:
        tail, omitted = LineTail(output), 0
        try:
            pieces = os.stat(output).st_size // PIECE + 1  # noqa: PTH116 - what it prints from now on is not waited for
        except OSError:
            return
        for _ in range(pieces):
            for line in tail.lines():
                yield from self._line(line)
            if tail.omitted > omitted:
                omitted = tail.omitted
                yield self._entry(EntryKind.OMITTED, f"a line of more than {LONGEST_LINE >> 20} MB")
        for line in tail.rest():
            yield from self._line(line)
        for sign in self._reply_parts.rest():
            yield from self._of(sign)
        yield from self._last(errors)

    def _line(self, line: bytes) -> Iterator[TranscriptEntry]:
        for sign in self._runtime.read(line):
            for joined in self._reply_parts.join((sign,)):
                if not sign.part:  # a piece of a reply says nothing before the reply is whole
                    yield from self._of(joined)

    def _of(self, sign: OutputEvent) -> Iterator[TranscriptEntry]:
        """What a sign says, as entries; most signs are one, or none."""
        self._unknown += bool(sign.unknown)
        if sign.usage is not None:
            self._usage_total.take(sign.usage)
        if sign.ended or sign.ending is not None:
            before = self._end or sign
            self._end = replace(sign, ending=sign.ending or before.ending, error=sign.error or before.error)
            return
        if sign.reply:
            yield self._entry(EntryKind.REPLY, sign.reply)
        if sign.tool is not None and not sign.tool.over:
            self._remember(sign.tool.id, sign.tool.name)
            yield replace(self._tool(EntryKind.TOOL, sign), edited=sign.edited)
        elif sign.tool is not None:
            yield replace(self._tool(EntryKind.RESULT, sign), edited=sign.edited)
        elif sign.edited:
            yield replace(self._entry(EntryKind.EDIT, sign.edited), edited=sign.edited)
        yield from self._event(sign)

    def _event(self, sign: OutputEvent) -> Iterator[TranscriptEntry]:
        """What is neither said nor done by the agent, but happens to its program."""
        if sign.retry is not None:
            yield self._entry(EntryKind.RETRY, sign.message or sign.retry.reason)
        elif sign.compacted:
            yield self._entry(EntryKind.COMPACTION, sign.message)
        elif sign.limit_until is not None:
            yield replace(self._entry(EntryKind.LIMIT, sign.message or sign.error), until=_exact(sign))
        elif sign.error:
            yield self._entry(EntryKind.ERROR, sign.error)
        elif sign.message and not (sign.reply or sign.tool or sign.edited) and sign.message != self._last_reply:
            yield self._entry(EntryKind.STEP, sign.message)

    def _tool(self, kind: EntryKind, sign: OutputEvent) -> TranscriptEntry:
        assert sign.tool is not None
        tool = sign.tool
        name = tool.name or (self._tools.pop(tool.id, "") if tool.over else "")
        return replace(self._entry(kind, tool.text), tool=name, id=tool.id, failed=tool.failed)

    def _remember(self, id: str, name: str) -> None:
        while len(self._tools) >= MAX_TOOLS:
            del self._tools[next(iter(self._tools))]
        self._tools[id] = name

    def _last(self, errors: Path) -> Iterator[TranscriptEntry]:
        """What the launch has used, and how it ended: with the end of its stderr where it does not say so itself."""
        if self._usage_total.figure is not None:
            yield replace(self._entry(EntryKind.USAGE), usage=self._usage_total.figure)
        end = self._end or OutputEvent()
        text = end.error or ("" if end.ending is Ending.CLEAN else one_line(end_of(errors)[-600:], 600))
        yield replace(
            self._entry(EntryKind.END, text), ending=end.ending, failed=bool(end.error), until=_exact(end),
            unknown=self._unknown,
        )  # fmt: skip

    def _entry(self, kind: EntryKind, text: str = "") -> TranscriptEntry:
        self._last_reply = text
        return TranscriptEntry(launch=self._launch, kind=kind, text=text)


def _exact(sign: OutputEvent) -> float | None:
    """The end of a limit, where a figure tells it: clock times in a sentence were read by the clock of today."""
    return sign.limit_until if sign.exact else None


def _beginning(path: Path) -> str:
    """A prompt, as far as it is reasonable to read; empty where there is none."""
    try:
        with open_plain(path) as file:
            return printable(file.read(LONGEST_PROMPT).decode("utf-8", "replace")).strip()
    except (OSError, ValueError):
        return ""
