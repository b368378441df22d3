"""Reads messages whose content is a list of blocks, as claude and qwen print them: text, thinking, tools, results.

Joins replies that come in pieces, because only a whole reply can be understood.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from attempts.fields import one_line
from coral.runtimes.json_object import MESSAGE, REPLY, JsonObject
from coral.runtimes.model import Counted, OutputEvent, Tool, Usage

_PATHS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_EDITORS = {"edit", "write", "multiedit", "notebookedit", "write_file", "replace", "create", "patch", "apply_patch"}
_ARGUMENTS = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")


def content(event: JsonObject, session: str) -> Iterator[OutputEvent]:
    """Yield the model's texts and tool calls. A text of a subagent is no reply."""
    inner = event.raw("parent_tool_use_id") is not None
    for block in event.items("message", "content"):
        match block.line("type"):
            case "text":
                text = block.text("text")
                yield OutputEvent(
                    session=session, phase="thinking", message=one_line(text, MESSAGE), reply="" if inner else text
                )
            case "tool_use" | "server_tool_use":
                yield started(session, block.line("id"), block.line("name", limit=80), block.inner("input"))
            case "thinking" | "redacted_thinking":
                yield OutputEvent(session=session, phase="thinking", message=block.line("thinking"))
            case kind:
                yield OutputEvent(session=session, unknown=f"content/{kind}")


def tool_results(event: JsonObject, session: str) -> Iterator[OutputEvent]:
    """Yield the outputs of tools, which come as a message of the user. Texts in it are not read: they are our prompt,
    or a summary."""
    found = False
    for block in event.items("message", "content"):
        if block.line("type") == "tool_result":
            found = True
            text = flat(block, "content")
            yield ended(session, block.line("tool_use_id"), text, failed=block.true("is_error"))
    for name in _changed(event):
        yield OutputEvent(session=session, phase="thinking", message=f"edited {name}", edited=name)
    if not found:
        yield OutputEvent(session=session)


def started(session: str, call: str, name: str, arguments: JsonObject) -> OutputEvent:
    """Return the event of a tool call that begins. The file that it will write counts as edited at once."""
    shown = main_argument(arguments)
    edited = next(iter(_texts(arguments, _PATHS)), "") if name.lower() in _EDITORS else ""
    return OutputEvent(
        session=session,
        phase="tool",
        message=one_line(f"{name}: {shown}" if shown else name, MESSAGE),
        edited=edited,
        tool=Tool(id=call, name=name, text=shown),
    )


def ended(session: str, call: str, text: str, *, failed: bool) -> OutputEvent:
    """Return the event of a tool call that has ended. `text`: its output."""
    return OutputEvent(
        session=session,
        phase="thinking",
        message=one_line(text, MESSAGE),
        tool=Tool(id=call, text=text, over=True, failed=failed),
    )


def main_argument(arguments: JsonObject) -> str:
    """Return the one argument of a tool call that a reader wants to see."""
    return next(iter(_texts(arguments, _ARGUMENTS)), "")


def flat(event: JsonObject, name: str) -> str:
    """Return the text of a field that holds a text, or a list of blocks with texts."""
    parts = [block.text("text") for block in event.items(name)]
    return event.text(name) or "\n".join(part for part in parts if part)[:REPLY]


def _texts(arguments: JsonObject, names: tuple[str, ...]) -> list[str]:
    return [text for name in names if (text := arguments.text(name))]


def _changed(event: JsonObject) -> list[str]:
    """Return the files that a shell command changed, if the program names them."""
    names = event.raw("tool_use_result", "bashEditDiff", "changedFiles")
    return [one_line(name, 200) for name in names[:100] if isinstance(name, str)] if isinstance(names, list) else []


def cached_within(usage: JsonObject, counted: Counted, input_name: str, cached_name: str, output_name: str) -> Usage:
    """Return the usage by the fields of these names, of which the input includes what was read from a cache. It has no
    cost."""
    cached = usage.count(cached_name)
    return Usage(
        counted=counted, input=max(usage.count(input_name) - cached, 0), cached=cached, output=usage.count(output_name)
    )


class ReplyParts:
    def __init__(self) -> None:
        self._parts = ""

    def join(self, events: Iterable[OutputEvent]) -> Iterator[OutputEvent]:
        """Yield the events, and each joined reply before the first event that is not a part of it. An early event, such
        as one of usage, may come in the middle of a reply."""
        for event in events:
            if event.part:
                self._parts = (self._parts + event.part)[:REPLY]
                yield replace(event, part="", message=one_line(self._parts[-300:], 300))
            else:
                if event.ended or event.error or not event.early:
                    yield from self.rest()
                yield event

    def rest(self) -> Iterator[OutputEvent]:
        """Yield the reply that is not complete yet: no more events come."""
        reply, self._parts = self._parts, ""
        if reply.strip():
            yield OutputEvent(reply=reply.strip())
