"""Runs pi in its print mode. pi saves a session only when the model has answered; the last answer ends the turn."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from attempts.files import expanded
from coral.runtimes import messages
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Ending, LaunchSpec, OutputEvent, Retry, Usage

_SILENT = {"message_start", "message_update", "tool_execution_update", "agent_end", "queue_update"}
_SILENT |= {"agent_start", "turn_start", "session_info_changed", "thinking_level_changed"}


class Pi(AgentProgram):
    name = "pi"
    package = "@mariozechner/pi-coding-agent"
    verified_version = "0.73.1"
    state_variable = "PI_CODING_AGENT_DIR"
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
    reports = "money"
    needs_login = False  # it takes the keys of any provider
    efforts = ("off", "minimal", "low", "medium", "high", "xhigh")
    kept_variables = (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "COPILOT_GITHUB_TOKEN",
    )
    quiet_environment = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}  # noqa: RUF012
    lost_session = ("no session found matching",)

    def more_options(self) -> tuple[str, ...]:
        return ("provider",)

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        words = ["-p", "--mode", "json", *self.flag("--provider", self.option("provider"))]
        words += [*self.flag("--model", spec.model), *self.flag("--thinking", self.option("effort"))]
        return (*words, *self.flag("--session", session), *self.extra())

    def links(self) -> Mapping[str, Path]:
        """Return the login, and the providers that the user added, with their keys."""
        home = expanded(os.environ.get("PI_CODING_AGENT_DIR") or Path.home() / ".pi/agent")
        return {name: home / name for name in ("auth.json", "models.json")}

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        match event.line("type"):
            case "session":
                yield OutputEvent(session=event.line("id", limit=100), early=True)
            case "message_end":  # printed just before the conversation is saved; any later line shows that it was
                yield from (replace(sign, proves_prompt=False) for sign in self._message(event.inner("message")))
            case "turn_end":
                yield OutputEvent(early=event.line("message", "stopReason") in ("error", "aborted"))
            case "tool_execution_start":
                name = event.line("toolName", limit=80)
                yield messages.started("", event.line("toolCallId"), name, event.inner("args"))
            case "tool_execution_end":
                answer = messages.flat(event.inner("result"), "content")
                yield messages.ended("", event.line("toolCallId"), answer, failed=event.true("isError"))
            case "auto_retry_start":
                yield _retry(event)
            case "auto_retry_end":
                yield OutputEvent(phase="thinking")
            case "compaction_start" | "auto_compaction_start":
                # It may also compact before it takes in the prompt.
                yield OutputEvent(phase="compacting", message=event.line("reason"), early=True)
            case "compaction_end" | "auto_compaction_end":
                compacted = bool(event.inner("result")) and not event.true("aborted")
                yield OutputEvent(phase="thinking", compacted=compacted, early=True)
            case kind if kind in _SILENT:
                yield OutputEvent(early=True)
            case kind:
                yield OutputEvent(unknown=kind or "no type")

    def _message(self, message: JsonObject) -> Iterator[OutputEvent]:
        if message.line("role") != "assistant":
            yield OutputEvent(early=True)
            return
        for block in message.items("content"):
            if block.line("type") == "text":
                yield OutputEvent(phase="thinking", message=block.line("text"), reply=block.text("text"))
        yield OutputEvent(usage=_usage(message.inner("usage")))
        match message.line("stopReason"):
            case "error":
                yield self.failed(message.text("errorMessage") or "the model answered with an error")
            case "aborted":
                yield OutputEvent(phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED)
            case "toolUse":
                pass
            case reason:
                yield OutputEvent(phase="ended", message=reason, ended=True, ending=Ending.CLEAN)


def _retry(event: JsonObject) -> OutputEvent:
    delay, reason = event.amount("delayMs"), event.line("errorMessage")
    retry = Retry(attempt=event.count("attempt"), seconds=None if delay is None else delay / 1000, reason=reason)
    return OutputEvent(phase="retrying", message=reason, retry=retry)


def _usage(usage: JsonObject) -> Usage:
    return Usage(
        input=usage.count("input") + usage.count("cacheWrite"),
        cached=usage.count("cacheRead"),
        output=usage.count("output"),
        cost=usage.amount("cost", "total"),
    )
