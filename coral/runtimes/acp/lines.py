"""Reads what our client of the Agent Client Protocol prints: the same for every agent that speaks the protocol."""

import re
from collections.abc import Iterator
from dataclasses import replace

from attempts.fields import one_line
from coral.runtimes import messages
from coral.runtimes.acp.refusal import RefusalKind
from coral.runtimes.json_lines import Reader
from coral.runtimes.json_object import MESSAGE, REPLY, JsonObject
from coral.runtimes.model import Counted, Ending, OutputEvent, Usage
from heartbeats.reply import OtherReply, parse_reply

AUTH_REQUIRED = -32000  # of the protocol; JSON-RPC lets a server use it for other errors as well
WRONG = (-32600, -32601, -32602)  # of JSON-RPC: the agent does not understand the request, and never will
_LOGIN_REQUESTS = ("initialize", "new")
# Errors after which another try may succeed.
_PASSING = re.compile(
    r"timed? ?-?out|timeout|try again|temporar|unavailable|overload|too many requests|rate.?limit"
    r"|\b(?:408|429|5\d\d)\b|internal server error|bad gateway|fetch failed|socket hang up|\bnetwork|\bdns\b"
    r"|connection (?:error|reset|refused|closed|lost)|\bE(?:CONN|TIMEDOUT|PIPE|AI_AGAIN|NOTFOUND|HOST|NET)",
    re.IGNORECASE,
)
# Errors after which no other try will succeed.
_DENIED = re.compile(
    r"authentication (?:is )?(?:required|failed)|unauthori[sz]ed|forbidden|access denied|\b40[13]\b"
    r"|not (?:authenticated|authori[sz]ed|logged in)|\blog ?in\b|\bsign ?in\b"
    r"|(?:invalid|missing|expired|no) (?:api.?key|credentials|token)|api.?key (?:is )?(?:missing|required|invalid|not)",
    re.IGNORECASE,
)
LONGEST_ERROR = 1000  # characters of a reply that may be an error instead
# An answer to a checkpoint heartbeat, whatever follows it.
_ANSWER = re.compile(r"[\W_]*(?:HEARTBEAT_OK\b|ALERT\s*:)")
_EDITS = ("edit", "delete", "move")
# The model causes none of these updates: it may not have read the prompt yet.
_EARLY = {"user_message_chunk", "available_commands_update", "current_mode_update", "config_option_update"}
_EARLY |= {"session_info_update"}
_NAMES = {"execute": "shell"}
_OUTPUTS = ("output", "stdout", "formatted_output", "aggregated_output", "error", "message")


class AcpReader(Reader):
    lost_session = ("session not found", "no such session", "unknown session", "session does not exist")

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
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

    def _result(self, event: JsonObject) -> OutputEvent:
        """Return how a turn ended. An agent may print an error as if it were its answer, and end the turn normally."""
        reason = event.line("stop")
        if reason == "cancelled":
            return OutputEvent(phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED, early=True)
        if reason == "refusal":
            return self.failed("the model refused")
        reply = event.text("reply")
        if 0 < len(reply) <= LONGEST_ERROR and not _is_answer(reply) and self.patterns.meaning(reply, self.now()):
            end = self.failed(reply)
            # No agent is retired for a sentence that a model may have written itself.
            return replace(end, ending=Ending.CRASHED) if end.ending is Ending.TERMINAL else end
        return OutputEvent(phase="ended", message=reason, ended=True, ending=Ending.CLEAN)

    def _error(self, event: JsonObject) -> OutputEvent:
        during, code = event.line("during"), event.number("code")
        text, details = event.text("message"), _details(event)
        if details and details not in text:
            text = f"{text}: {details}" if text else details
        text = text if during == "prompt" else f"{during}: {text}"
        if event.true("gone"):
            return self._gone(event, text, during)
        status = next((number for number in (code, *_statuses(event)) if number and 400 <= number < 600), None)
        end = self.failed(text, status)
        if end.ending is not Ending.CRASHED:
            return end
        if event.true("stopped"):  # some agents end a cancelled turn with an error
            return replace(end, ending=Ending.INTERRUPTED, error="", early=True)
        if kind := event.line("kind"):
            return replace(end, ending=Ending.TERMINAL) if kind == RefusalKind.NOT_OFFERED else end
        if status in (408, 429) or (status or 0) >= 500 or _PASSING.search(text):
            return end
        if _is_denied(event, text):
            return replace(end, ending=Ending.TERMINAL)
        return replace(end, ending=Ending.UNKNOWN_SESSION) if during == "load" else end

    def _gone(self, event: JsonObject, text: str, during: str) -> OutputEvent:
        """Return the event of an agent whose process ended. Some agents exit with code 0 if they do not know the
        conversation; for all others stderr holds the reason."""
        end = OutputEvent(phase="ended", message=one_line(text, MESSAGE), error=one_line(text, MESSAGE), early=True)
        unknown = during == "load" and event.raw("exit") == 0
        return replace(end, ended=True, ending=Ending.UNKNOWN_SESSION) if unknown else end


def _is_answer(reply: str) -> bool:
    """Return whether a reply answers a checkpoint: then it may mention a limit that is not the agent's own."""
    return _ANSWER.match(reply) is not None or not isinstance(parse_reply(reply), OtherReply)


def _is_denied(event: JsonObject, text: str) -> bool:
    """Return whether an error stays until a person changes something, such as a login."""
    during, code = event.line("during"), event.number("code")
    if code == AUTH_REQUIRED and (during in _LOGIN_REQUESTS or event.items("data", "authMethods")):
        return True
    if during in ("authenticate", "choice") and code in WRONG:
        return True
    return (during != "prompt" or code == AUTH_REQUIRED) and bool(_DENIED.search(text))


def _update(update: JsonObject) -> Iterator[OutputEvent]:
    match update.line("sessionUpdate", limit=60):
        case "agent_message_chunk":
            yield OutputEvent(phase="thinking", part=update.piece("content", "text"))
        case "agent_thought_chunk":
            yield OutputEvent(phase="thinking")
        case "tool_call" | "tool_call_update":
            yield from _tool(update)
        case "plan":
            entries = update.items("entries")
            now = [entry.line("content") for entry in entries if entry.line("status") == "in_progress"]
            yield OutputEvent(phase="thinking", message=now[0] if now else "")
        case kind if kind in _EARLY:
            yield OutputEvent(early=True)
        case kind:
            yield OutputEvent(unknown=kind or "no update")


def _tool(update: JsonObject) -> Iterator[OutputEvent]:
    """Yield the events of a tool call that begins, goes on or is over; some agents print all of it in one update."""
    call, title, kind = update.line("toolCallId"), update.text("title"), update.line("kind", limit=40)
    name = _NAMES.get(kind, kind) or "tool"
    status = update.line("status")
    if update.true("begins"):
        arguments = update.inner("rawInput")
        shown = arguments if messages.main_argument(arguments) else JsonObject({"command": title})
        yield replace(messages.started("", call, name, shown), edited="")
    elif status not in ("completed", "failed"):
        yield OutputEvent(phase="tool")
    if status in ("completed", "failed"):
        yield messages.ended("", call, _answer(update), failed=status == "failed")
    if status == "completed" and kind in _EDITS:
        for path in _paths(update):
            yield OutputEvent(phase="thinking", message=f"edited {path}", edited=path)


def _answer(update: JsonObject) -> str:
    parts = [block.text("content", "text") for block in update.items("content")]
    text = "\n".join(part for part in parts if part)[:REPLY] or update.text("rawOutput")
    return text or next((text for name in _OUTPUTS if (text := update.text("rawOutput", name))), "")


def _paths(update: JsonObject) -> list[str]:
    """Return the changed files, each once."""
    found = [block.line("path") for block in update.items("content") if block.line("type") == "diff"]
    found = found or [location.line("path") for location in update.items("locations")]
    return list(dict.fromkeys(path for path in found if path))[:100]


def _usage(event: JsonObject) -> Iterator[OutputEvent]:
    """Yield the usage of the prompt, the only one of the launch. Its total shows whether the input includes the tokens
    that were read from a cache, and the output those of thinking."""
    usage, cost = event.inner("usage"), event.number("cost")
    if not usage and cost is None:
        return
    read, written, out = (usage.count(f"{name}Tokens") for name in ("input", "cachedWrite", "output"))
    cached, thought, total = (usage.count(f"{name}Tokens") for name in ("cachedRead", "thought", "total"))
    apart = total >= read + cached + out
    figures = Usage(
        counted=Counted.LAUNCH,
        input=read + written if apart else max(read - cached, 0),
        cached=cached,
        output=out + (thought if total >= read + cached + out + thought else 0),
        cost=cost,
    )
    yield OutputEvent(usage=figures, early=True)


def _details(event: JsonObject) -> str:
    """Return the text that came with an error: agents put it into different fields."""
    data = event.raw("data")
    if isinstance(data, str):
        return event.text("data")
    inner = event.inner("data")
    found = (inner.text(*path) for path in (("details",), ("message",), ("error", "message"), ("error",), ("reason",)))
    return next((text for text in found if text), "")


def _statuses(event: JsonObject) -> tuple[float | None, ...]:
    return tuple(event.number("data", name) for name in ("status", "statusCode", "code", "http_status_code"))
