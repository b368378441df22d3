"""What our client of the Agent Client Protocol prints, and what it means: one reader for every agent that speaks it."""

import re
from collections.abc import Iterator
from dataclasses import replace

from attempts.fields import one_line
from coral.runtimes import messages
from coral.runtimes.event import MESSAGE, REPLY, Event
from coral.runtimes.model import Counted, Ending, OutputEvent, Usage
from coral.runtimes.reader import Reader
from coral.runtimes.settings import piece
from heartbeats.reply import Other, parse_reply

AUTH_REQUIRED = -32000  # of the protocol; also what JSON-RPC leaves to a server for whatever it likes
WRONG = (-32600, -32601, -32602)  # of JSON-RPC: a request that is not understood, and would not be another time
_ASKS_FOR_LOGIN = ("initialize", "new")
_NONE_SUCH = "choice: it offers no "  # of our client
# Another try may go well.
_PASSING = re.compile(
    r"does not answer|timed? ?-?out|timeout|try again|temporar|unavailable|overload|too many requests|rate.?limit"
    r"|\b(?:408|429|5\d\d)\b|internal server error|bad gateway|fetch failed|socket hang up|\bnetwork|\bdns\b"
    r"|connection (?:error|reset|refused|closed|lost)|\bE(?:CONN|TIMEDOUT|PIPE|AI_AGAIN|NOTFOUND|HOST|NET)",
    re.IGNORECASE,
)
# None will.
_DENIED = re.compile(
    r"authentication (?:is )?(?:required|failed)|unauthori[sz]ed|forbidden|access denied|\b40[13]\b"
    r"|not (?:authenticated|authori[sz]ed|logged in)|\blog ?in\b|\bsign ?in\b"
    r"|(?:invalid|missing|expired|no) (?:api.?key|credentials|token)|api.?key (?:is )?(?:missing|required|invalid|not)",
    re.IGNORECASE,
)
# An answer to a checkpoint, whatever follows it.
_ANSWER = re.compile(r"[\W_]*(?:HEARTBEAT_OK\b|ALERT\s*:)")
_EDITS = ("edit", "delete", "move")
# Nothing of these comes from a model: the prompt may not have been read yet.
_EARLY = {"user_message_chunk", "available_commands_update", "current_mode_update", "config_option_update"}
_EARLY |= {"session_info_update"}
_NAMES = {"execute": "shell"}
_OUTPUTS = ("output", "stdout", "formatted_output", "aggregated_output", "error", "message")


class AcpReader(Reader):
    lost_session = ("session not found", "no such session", "unknown session", "session does not exist")

    def events(self, event: Event) -> Iterator[OutputEvent]:
        match event.line("type"):
            case "agent":
                message = f"{event.line('name')} {event.line('version')}".strip()
                yield OutputEvent(phase="starting", message=message, early=True)
            case "session":
                yield OutputEvent(session=event.line("session", limit=200), phase="starting", early=True)
            case "notice" | "prompted":
                yield OutputEvent(message=event.line("message"), early=True)
            case "update":
                yield from _update(event.inner("update"))
            case "permission":
                yield OutputEvent(phase="tool", message=one_line(f"allowed: {event.text('title')}", MESSAGE))
            case "usage":
                yield OutputEvent(usage=Usage(counted=Counted.LAUNCH, cost=event.number("cost")), early=True)
            case "result":
                yield from _usage(event)
                yield self._result(event)
            case "error":
                yield self._error(event)
            case "interrupted":
                yield OutputEvent(
                    phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED, early=True
                )
            case "other":
                yield OutputEvent(early=True, unknown=event.line("method") or "other")
            case kind:
                yield OutputEvent(unknown=kind or "no type")

    def _result(self, event: Event) -> OutputEvent:
        """How a turn ended. An agent may say an error as if it were its answer, and call that a good end."""
        why = event.line("stop")
        if why == "cancelled":
            return OutputEvent(phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED, early=True)
        if why == "refusal":
            return self.failed("the model refused")
        said = event.text("said")
        if said and not _is_answer(said) and self.patterns.meaning(said, self.now()):
            sign = self.failed(said)
            # Nobody is retired for good by a sentence that a model may have written itself.
            return replace(sign, ending=Ending.CRASHED) if sign.ending is Ending.TERMINAL else sign
        return OutputEvent(phase="ended", message=why, ended=True, ending=Ending.CLEAN)

    def _error(self, event: Event) -> OutputEvent:
        during, code = event.line("during"), event.number("code")
        text, details = event.text("message"), _details(event)
        if details and details not in text:
            text = f"{text}: {details}" if text else details
        text = text if during == "prompt" else f"{during}: {text}"
        if event.true("gone"):
            return self._gone(event, text, during)
        status = next((each for each in (code, *_statuses(event)) if each is not None and 400 <= each < 600), None)
        sign = self.failed(text, status)
        if sign.ending is not Ending.CRASHED:
            return sign
        if event.true("stopped"):  # some tell of a turn that was cancelled as an error
            return replace(sign, ending=Ending.INTERRUPTED, error="", early=True)
        if text.startswith(_NONE_SUCH):
            return replace(sign, ending=Ending.TERMINAL)
        if status in (408, 429) or (status or 0) >= 500 or _PASSING.search(text):
            return sign
        if _is_denied(event, text):
            return replace(sign, ending=Ending.TERMINAL)
        return replace(sign, ending=Ending.UNKNOWN_SESSION) if during == "load" else sign

    def _gone(self, event: Event, text: str, during: str) -> OutputEvent:
        """The agent's process ended. Some do so, in good order, where they do not know a conversation; why any other
        did is in its stderr."""
        sign = OutputEvent(phase="ended", message=one_line(text, MESSAGE), error=one_line(text, MESSAGE), early=True)
        unknown = during == "load" and event.raw("exit") == 0
        return replace(sign, ended=True, ending=Ending.UNKNOWN_SESSION) if unknown else sign


def _is_answer(said: str) -> bool:
    """To a checkpoint: it may tell of a limit that something else met."""
    return _ANSWER.match(said) is not None or not isinstance(parse_reply(said), Other)


def _is_denied(event: Event, text: str) -> bool:
    """Whether a person has to change something first: for an error that is not passing."""
    during, code = event.line("during"), event.number("code")
    if code == AUTH_REQUIRED and (during in _ASKS_FOR_LOGIN or event.each("data", "authMethods")):
        return True
    if during in ("authenticate", "choice") and code in WRONG:
        return True
    return (during != "prompt" or code == AUTH_REQUIRED) and bool(_DENIED.search(text))


def _update(update: Event) -> Iterator[OutputEvent]:
    match update.line("sessionUpdate", limit=60):
        case "agent_message_chunk":
            yield OutputEvent(phase="thinking", part=piece(update.raw("content", "text")))
        case "agent_thought_chunk":
            yield OutputEvent(phase="thinking")
        case "tool_call" | "tool_call_update":
            yield from _tool(update)
        case "plan":
            now = [each.line("content") for each in update.each("entries") if each.line("status") == "in_progress"]
            yield OutputEvent(phase="thinking", message=now[0] if now else "")
        case kind if kind in _EARLY:
            yield OutputEvent(early=True)
        case kind:
            yield OutputEvent(unknown=kind or "no update")


def _tool(update: Event) -> Iterator[OutputEvent]:
    """A tool begins, goes on, or is over; some tell it all in one."""
    id, title, kind = update.line("toolCallId"), update.text("title"), update.line("kind", limit=40)
    name = _NAMES.get(kind, kind) or "tool"
    status = update.line("status")
    if update.true("begins"):
        given = update.inner("rawInput")
        shown = given if messages.told_by(given) else Event({"command": title})
        yield replace(messages.started("", id, name, shown), edited="")
    elif status not in ("completed", "failed"):
        yield OutputEvent(phase="tool")
    if status in ("completed", "failed"):
        yield messages.ended("", id, _answer(update), failed=status == "failed")
    if status == "completed" and kind in _EDITS:
        for path in _paths(update):
            yield OutputEvent(phase="thinking", message=f"edited {path}", edited=path)


def _answer(update: Event) -> str:
    parts = [each.text("content", "text") for each in update.each("content")]
    said = "\n".join(part for part in parts if part)[:REPLY] or update.text("rawOutput")
    return said or next((text for name in _OUTPUTS if (text := update.text("rawOutput", name))), "")


def _paths(update: Event) -> list[str]:
    """Without a repetition, in their order."""
    found = [each.line("path") for each in update.each("content") if each.line("type") == "diff"]
    found = found or [each.line("path") for each in update.each("locations")]
    return list(dict.fromkeys(each for each in found if each))[:100]


def _usage(event: Event) -> Iterator[OutputEvent]:
    """Of this prompt, which is all that the launch had. Whether what was read from a cache is within the input, and
    what was thought within the output, shows in the sum."""
    usage, cost = event.inner("usage"), event.number("cost")
    if not usage and cost is None:
        return
    read, written, out = (usage.count(f"{each}Tokens") for each in ("input", "cachedWrite", "output"))
    cached, thought, total = (usage.count(f"{each}Tokens") for each in ("cachedRead", "thought", "total"))
    apart = total >= read + cached + out
    figures = Usage(
        counted=Counted.LAUNCH,
        input=read + written if apart else max(read - cached, 0),
        cached=cached,
        output=out + (thought if total >= read + cached + out + thought else 0),
        cost=cost,
    )
    yield OutputEvent(usage=figures, early=True)


def _details(event: Event) -> str:
    """The words that came with an error: where agents put them differs."""
    data = event.raw("data")
    if isinstance(data, str):
        return event.text("data")
    inner = event.inner("data")
    found = (inner.text(*path) for path in (("details",), ("message",), ("error", "message"), ("error",), ("reason",)))
    return next((each for each in found if each), "")


def _statuses(event: Event) -> tuple[float | None, ...]:
    return tuple(event.number("data", name) for name in ("status", "statusCode", "code", "http_status_code"))
