"""Runs Gemini CLI without its relaunching parent. We choose the conversation's id; replies come in pieces."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path

from coral.runtimes import messages
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_lines import ENTRIES, WHOLE_LOG
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Counted, Ending, LaunchSpec, OutputEvent, Usage

LARGEST_SETTINGS = 1_000_000  # bytes
QUIET_SETTINGS = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "disableAutoUpdate": True},
}
_LOGIN = ("oauth_creds.json", "google_accounts.json")


class Gemini(AgentProgram):
    name = "gemini"
    package = "@google/gemini-cli"
    chooses_session = True
    verified_version = "0.61.0"
    state_variable = "GEMINI_CLI_HOME"
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    instruction_file = "GEMINI.md"
    kept_variables = ("GEMINI_API_KEY", "GOOGLE_")
    quiet_environment = {"GEMINI_CLI_NO_RELAUNCH": "true"}  # noqa: RUF012
    lost_session = ("error resuming session",)

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        words = ["--yolo", "--skip-trust", "-o", "stream-json", *self.flag("-m", spec.model)]
        return (*words, "--resume" if spec.session else "--session-id", session, *self.extra())

    def links(self) -> Mapping[str, Path]:
        return {f".gemini/{name}": _home() / name for name in _LOGIN}

    def files(self) -> Mapping[str, str]:
        """Return settings that hold the user's choice of how to log in, and no other of the user's settings."""
        key = "gemini-api-key" if os.environ.get("GEMINI_API_KEY") else ""
        chosen = key or login_type(_home() / "settings.json")
        auth = {"security": {"auth": {"selectedType": chosen}}} if chosen else {}
        return {".gemini/settings.json": json.dumps({**auth, **QUIET_SETTINGS}, indent=1)}

    def usage(self, state: Path, session: str) -> Usage | None:
        """Sum up the usage from the conversation's log, which has figures for each answer; an answer may stand there
        more than once. The figures of `result` are not read: an interrupted turn has none."""
        answers: dict[str, JsonObject] = {}
        left, entries = WHOLE_LOG, ENTRIES  # of all files: the agent can give one of them any number of names
        for path in state.glob(f".gemini/tmp/*/chats/session-*-{escape(session[:8])}.jsonl"):
            for entry in self.logged(path, b'"tokens"', left):
                answers.setdefault(entry.line("id"), entry.inner("tokens"))
                entries -= 1
            with contextlib.suppress(OSError):
                left -= path.lstat().st_size
            if left <= 0 or entries <= 0:
                break
        return _usage([tokens for tokens in answers.values() if tokens])

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        match event.line("type"):
            case "init":
                session, message = event.line("session_id", limit=100), f"model {event.line('model', limit=80)}"
                yield OutputEvent(session=session, phase="thinking", message=message, early=True)
            case "message" if event.line("role") != "assistant":
                yield OutputEvent(phase="thinking", early=True)
            case "message" if event.true("delta"):
                yield OutputEvent(phase="thinking", part=event.piece("content"))
            case "message":
                yield OutputEvent(phase="thinking", message=event.line("content"), reply=event.text("content"))
            case "tool_use":
                name = event.line("tool_name", limit=80)
                yield messages.started("", event.line("tool_id"), name, event.inner("parameters"))
            case "tool_result":
                answer = event.text("output") or event.text("error", "message")
                yield messages.ended("", event.line("tool_id"), answer, failed=event.line("status") == "error")
            case "error":  # a warning, or an error that `result` repeats
                yield OutputEvent(message=event.line("message"), early=True)
            case "result":
                if event.line("status") == "success":
                    yield OutputEvent(phase="ended", message="success", ended=True, ending=Ending.CLEAN)
                else:
                    yield self.failed(event.text("error", "message") or "it ended with an error")
            case kind:
                yield OutputEvent(unknown=kind or "no type")


def _usage(answers: list[JsonObject]) -> Usage | None:
    """Add up the figures of answers, in which the input includes what was read from a cache; None without answers."""
    if not answers:
        return None
    cached, thoughts = (sum(answer.count(name) for answer in answers) for name in ("cached", "thoughts"))
    read = sum(answer.count("input") + answer.count("tool") for answer in answers) - cached
    written = sum(answer.count("output") for answer in answers) + thoughts
    return Usage(counted=Counted.SESSION, input=max(read, 0), cached=cached, output=written)


def login_type(path: Path) -> str:
    """Return how the user logs in, by the settings file at this path; empty if it does not say."""
    try:
        with path.open("rb") as file:
            data: object = json.loads(file.read(LARGEST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return ""
    return JsonObject(data).line("security", "auth", "selectedType", limit=60)


def _home() -> Path:
    return Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
