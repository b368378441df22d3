"""Runs opencode in its run mode. Its sessions are in a folder of the agent; its configuration is the user's own.

opencode does not print that a turn ends: a step that finishes without a tool call is the last one.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from coral.runtimes import messages
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Ending, LaunchSpec, LaunchSummary, OutputEvent, Usage

_AUTH = Path("opencode/auth.json")


class Opencode(AgentProgram):
    name = "opencode"
    package = "opencode-ai"
    behind_launcher = ("opencode-{platform}", "bin/opencode")
    verified_version = "1.18.33"
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_API_KEY")
    reports = "money"
    needs_login = False  # some of its models are free
    reports_interrupted = False
    kept_variables = (
        *("OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONFIG", "OPENCODE_DISABLE_", "OPENCODE_ENABLE_"),
        *("OPENCODE_EXPERIMENTAL", "OPENCODE_MODELS_", "OPENCODE_PERMISSION"),
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),  # it speaks to any provider
    )
    quiet_environment = {  # noqa: RUF012
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    }
    lost_session = ("session not found",)

    def more_options(self) -> tuple[str, ...]:
        return ("variant",)  # the names of the levels of effort depend on the provider

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        words = ["run", "--format", "json", "--auto", *self.flag("--session", session)]
        words += [*self.flag("--model", spec.model), *self.flag("--variant", self.option("variant"))]
        return (*words, *self.extra())

    def variables(self, spec: LaunchSpec) -> Mapping[str, str]:
        return {"XDG_DATA_HOME": str(spec.state / "data"), "XDG_STATE_HOME": str(spec.state / "state")}

    def links(self) -> Mapping[str, Path]:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
        return {f"data/{_AUTH}": home / _AUTH}

    def scratch(self) -> Mapping[str, Path]:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return {".config/opencode": home / "opencode"}  # it writes a .gitignore

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        session, part = event.line("sessionID", limit=100), event.inner("part")
        match event.line("type"):
            case "step_start":
                yield OutputEvent(session=session, phase="thinking")
            case "text" if part.true("synthetic"):
                yield OutputEvent(session=session, compacted=part.true("metadata", "compaction_continue"))
            case "text":
                yield OutputEvent(session=session, phase="thinking", message=part.line("text"), reply=part.text("text"))
            case "reasoning":
                yield OutputEvent(session=session, phase="thinking", message=part.line("text"))
            case "tool_use":
                yield from _tool(part, session)
            case "step_finish":
                yield OutputEvent(session=session, usage=_usage(part))
                if part.line("reason") != "tool-calls":
                    yield OutputEvent(
                        session=session, phase="ended", message="step finished", ended=True, ending=Ending.CLEAN
                    )
            case "error":
                yield OutputEvent(session=session)
                yield self._error(event.inner("error"))
            case kind:
                yield OutputEvent(session=session, unknown=kind or "no type")

    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        """Judge the end of a launch. If a signal ended the program, the last step that it printed was not the end of
        its turn: that may have been a summary of the conversation, and the error of a conversation that is too long is
        printed before the summary."""
        signalled = code < 0 and summary.ending in (Ending.CLEAN, Ending.UNKNOWN_SESSION)
        return super().judge(code, replace(summary, ending=None) if signalled else summary)

    def _error(self, error: JsonObject) -> OutputEvent:
        name = error.line("name")
        if name == "MessageAbortedError":
            return OutputEvent(phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED)
        text = error.text("data", "message") or name
        return self.failed(text, error.number("data", "statusCode"), more=error.text("data", "responseBody"))


def _tool(part: JsonObject, session: str) -> Iterator[OutputEvent]:
    """Yield the begin and the end of a tool call, which is printed as a whole when it is over."""
    call, state = part.line("callID"), part.inner("state")
    yield messages.started(session, call, part.line("tool", limit=80), state.inner("input"))
    failed = state.line("status") == "error"
    yield messages.ended(session, call, state.text("output") or state.text("error"), failed=failed)


def _usage(part: JsonObject) -> Usage:
    tokens = part.inner("tokens")
    return Usage(
        input=tokens.count("input") + tokens.count("cache", "write"),
        cached=tokens.count("cache", "read"),
        output=tokens.count("output") + tokens.count("reasoning"),
        cost=part.amount("cost"),
    )
