"""Messages whose content is a list of blocks, as claude and qwen print them: text, thinking, tools, results."""

from collections.abc import Iterator

from attempts.fields import one_line
from coral.runtimes.event import MESSAGE, REPLY, Event
from coral.runtimes.model import Counted, OutputEvent, Tool, Usage

_PATHS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_EDITORS = {"edit", "write", "multiedit", "notebookedit", "write_file", "replace", "create", "patch", "apply_patch"}
_TELLING = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")


def content(event: Event, session: str) -> Iterator[OutputEvent]:
    """What the model said: to us, or to a tool. What a subagent says is none of its replies."""
    inner = event.raw("parent_tool_use_id") is not None
    for block in event.each("message", "content"):
        match block.line("type"):
            case "text":
                said = block.text("text")
                yield OutputEvent(
                    session=session, phase="thinking", message=one_line(said, MESSAGE), reply="" if inner else said
                )
            case "tool_use" | "server_tool_use":
                yield started(session, block.line("id"), block.line("name", limit=80), block.inner("input"))
            case "thinking" | "redacted_thinking":
                yield OutputEvent(session=session, phase="thinking", message=block.line("thinking"))
            case kind:
                yield OutputEvent(session=session, unknown=f"content/{kind}")


def tool_results(event: Event, session: str) -> Iterator[OutputEvent]:
    """What tools answered, which comes as a message of the user's. Its text is what we said, or a summary."""
    found = False
    for block in event.each("message", "content"):
        if block.line("type") == "tool_result":
            found = True
            text = flat(block, "content")
            yield ended(session, block.line("tool_use_id"), text, failed=block.true("is_error"))
    for name in _changed(event):
        yield OutputEvent(session=session, phase="thinking", message=f"edited {name}", edited=name)
    if not found:
        yield OutputEvent(session=session)


def started(session: str, id: str, name: str, given: Event) -> OutputEvent:
    """A tool begins. A file that it is to write counts as edited when it says so."""
    told = told_by(given)
    edited = next(iter(_given(given, _PATHS)), "") if name.lower() in _EDITORS else ""
    return OutputEvent(
        session=session,
        phase="tool",
        message=one_line(f"{name}: {told}" if told else name, MESSAGE),
        edited=edited,
        tool=Tool(id=id, name=name, text=told),
    )


def ended(session: str, id: str, text: str, *, failed: bool, name: str = "") -> OutputEvent:
    return OutputEvent(
        session=session,
        phase="thinking",
        message=one_line(text, MESSAGE),
        tool=Tool(id=id, name=name, text=text, over=True, failed=failed),
    )


def told_by(given: Event) -> str:
    """The one argument of a tool that a reader wants to see."""
    return next(iter(_given(given, _TELLING)), "")


def flat(event: Event, name: str) -> str:
    """The text of a field that holds a text, or a list of blocks with texts."""
    parts = [each.text("text") for each in event.each(name)]
    return event.text(name) or "\n".join(part for part in parts if part)[:REPLY]


def _given(given: Event, names: tuple[str, ...]) -> list[str]:
    return [text for name in names if (text := given.text(name))]


def _changed(event: Event) -> list[str]:
    """The files that a shell command changed, where the program found out."""
    names = event.raw("tool_use_result", "bashEditDiff", "changedFiles")
    return [one_line(name, 200) for name in names[:100] if isinstance(name, str)] if isinstance(names, list) else []


def cached_within(usage: Event, counted: Counted, input: str, cached: str, output: str) -> Usage:
    """Figures by these names, where those of the input include what was read from a cache. No money is told."""
    found = usage.count(cached)
    return Usage(
        counted=counted,
        input=max(usage.count(input) - found, 0),
        cached=found,
        output=usage.count(output),
    )
