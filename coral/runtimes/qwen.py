"""Runs Qwen Code without its launcher. We choose the conversation's id; its events are like Claude Code's."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attempts.files import expanded
from coral.runtimes import programs
from coral.runtimes.agent import AgentProgram
from coral.runtimes.gemini import QUIET_SETTINGS, login_type  # one origin: their settings are alike
from coral.runtimes.json_object import JsonObject
from coral.runtimes.messages import cached_within, content, tool_results
from coral.runtimes.model import Counted, Ending, LaunchSpec, OutputEvent, Retry, Usage

_API_ERROR = "[API Error: "


class Qwen(AgentProgram):
    name = "qwen"
    package = "@qwen-code/qwen-code"
    chooses_session = True
    verified_version = "0.24.4"
    state_variable = "QWEN_HOME"
    keys = ("OPENAI_API_KEY",)
    kept_variables = ("OPENAI_",)
    quiet_environment = {"QWEN_CODE_NO_RELAUNCH": "true", "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}  # noqa: RUF012
    lost_session = ("no saved session found",)
    locks = ("extension-store/lock.lock",)  # qwen waits for it for half a minute, then exits; it is stale after one

    def more_options(self) -> tuple[str, ...]:
        return ("auth",)

    def executable(self, found: Path) -> tuple[str, ...]:
        program = found.resolve().with_name("cli.js")
        if not programs.is_script(found) or not program.is_file():
            return (str(found),)
        return (str(programs.on_path("node") or "node"), "--expose-gc", str(program))

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        auth = self.option("auth") or ("openai" if os.environ.get("OPENAI_API_KEY") else "")
        auth = auth or login_type(_home() / "settings.json") or "qwen-oauth"
        words = ["--yolo", "--auth-type", auth, "-o", "stream-json", *self.flag("--model", spec.model)]
        return (*words, "--resume" if spec.session else "--session-id", session, *self.extra())

    def links(self) -> Mapping[str, Path]:
        return {"oauth_creds.json": _home() / "oauth_creds.json"}

    def files(self) -> Mapping[str, str]:
        return {"settings.json": json.dumps(QUIET_SETTINGS, indent=1)}

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        session = event.line("session_id", limit=100)
        match event.line("type"):
            case "system" if event.line("subtype") == "init":
                message = f"model {event.line('model', limit=80)}"
                yield OutputEvent(session=session, phase="thinking", message=message, early=True)
            case "system" if event.line("subtype") == "retry":
                yield OutputEvent(session=session, phase="retrying", retry=Retry(attempt=event.count("attempt")))
            case "system":
                yield OutputEvent(session=session, unknown=f"system/{event.line('subtype')}")
            case "stream_event":
                yield OutputEvent(session=session, early=True)
            case "assistant":
                yield from (sign for sign in content(event, session) if not sign.reply.startswith(_API_ERROR))
                yield from _usage(event.inner("message", "usage"), session)
            case "user":
                yield from tool_results(event, session)
            case "result":
                yield from self._result(event, session)
            case "control_response" | "tool_progress":
                yield OutputEvent(session=session)
            case kind:
                yield OutputEvent(session=session, unknown=kind or "no type")

    def _result(self, event: JsonObject, session: str) -> Iterator[OutputEvent]:
        if event.true("is_error"):
            yield self.failed(event.text("error", "message") or event.line("subtype"))
        else:
            yield OutputEvent(session=session, phase="ended", message="success", ended=True, ending=Ending.CLEAN)


def _usage(usage: JsonObject, session: str) -> Iterator[OutputEvent]:
    """Yield the usage of one call of the model. The figures of `result` are not read: an interrupted turn has none, and
    in others they would count the calls a second time."""
    step = cached_within(usage, Counted.STEP, "input_tokens", "cache_read_input_tokens", "output_tokens")
    if step != Usage():
        yield OutputEvent(session=session, usage=step)


def _home() -> Path:
    return expanded(os.environ.get("QWEN_HOME") or Path.home() / ".qwen")
