"""Runs GitHub Copilot CLI without its loader. We choose the conversation's id; only its log says what it has used.

The exit code in its `result` is 0 after an interrupt as well: only the events before that say how the turn ended.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coral.runtimes import messages
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_lines import WHOLE_LOG
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Counted, Ending, LaunchSpec, OutputEvent, Retry, Usage

# Until the model answers, the conversation may not be saved.
_EARLY = {
    *("session.skills_loaded", "session.mcp_servers_loaded", "session.tools_updated", "session.start"),
    *("session.resume", "session.info", "user.message", "assistant.turn_start", "model.call_start"),
    *("session.background_tasks_changed", "session.model_change", "session.warning", "system.message"),
    *("session.usage_info", "session.title_changed"),
    # Printed after an immediate interrupt as well.
    *("agent.interrupted", "assistant.idle", "session.idle", "session.shutdown", "assistant.turn_end"),
    *("model.call_finished", "model.call_final_result", "model.call_failure", "assistant.usage", "assistant.intent"),
}
_SILENT = {
    *("assistant.message_start", "assistant.message_delta", "assistant.tool_call_delta"),
    *("assistant.reasoning", "assistant.reasoning_delta"),
    *("tool.execution_partial_result", "tool.execution_progress", "tool.shell_output"),
}


class Copilot(AgentProgram):
    name = "copilot"
    package = "@github/copilot"
    chooses_session = True
    behind_launcher = ("@github/copilot-{platform}", "copilot")
    verified_version = "1.0.102"
    state_variable = "COPILOT_HOME"
    keys = ("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY")
    needs_login = False  # it also takes GitHub's own variables, and the login of gh
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    kept_variables = (
        *("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_", "COPILOT_MODEL", "COPILOT_OFFLINE", "COPILOT_GH_HOST"),
        "COPILOT_AUTO_TIER",
    )
    quiet_environment = {"COPILOT_AUTO_UPDATE": "false"}  # noqa: RUF012
    lost_session = (
        "no session, task, or name matched",
        "no session or task found",
        "session not found",
        "no session found",
    )

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        words = ["--yolo", "--no-ask-user", "--output-format", "json"]
        words += [f"--resume={session}"] if spec.session else ["--session-id", session]
        words += [*self.flag("--model", spec.model), *self.flag("--reasoning-effort", self.option("effort"))]
        return (*words, *self.extra())

    def usage(self, state: Path, session: str) -> Usage | None:
        """Sum up the usage from the conversation's log: the figures of its last shutdown, and of each answer since."""
        answers: list[JsonObject] = []
        # Read whole: without the figures of the last shutdown, the usage would seem to have fallen.
        for entry in self.logged(state / "session-state" / session / "events.jsonl", b'"outputTokens"', WHOLE_LOG):
            if entry.line("type") == "session.shutdown":
                models = entry.inner("data", "accountingSnapshot").values("modelMetrics")
                return _usage([*answers, *(model.inner("usage") for model in models)])
            if entry.line("type") == "session.usage_record":
                answers.append(entry.inner("data", "usage"))
        return _usage(answers) if answers else None

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        data = event.inner("data")
        match event.line("type"):
            case "assistant.message":
                yield OutputEvent(phase="thinking", message=data.line("content"), reply=data.text("content"))
                if not data.items("toolRequests"):
                    yield OutputEvent(phase="ended", message=data.line("content"), ended=True, ending=Ending.CLEAN)
            case "tool.execution_start":
                name = data.line("toolName", limit=80)
                yield messages.started("", data.line("toolCallId"), name, data.inner("arguments"))
            case "tool.execution_complete":
                answer = data.text("result", "content") or data.text("error", "message")
                failed = data.raw("success") is False
                ended = messages.ended("", data.line("toolCallId"), answer, failed=failed)
                # At a resume it repairs the tool that an interrupt cut off, before it reads the prompt.
                yield replace(ended, early=data.line("interactionId") == "resume")
            case "assistant.turn_retry":
                reason = data.line("reason", limit=80)
                yield OutputEvent(phase="retrying", message=f"retry: {reason}", retry=Retry(reason=reason), early=True)
            case "session.compaction_start":
                yield OutputEvent(phase="compacting", message="compacting the conversation", early=True)
            case "session.compaction_complete":
                yield OutputEvent(phase="thinking", compacted=data.raw("success") is not False, early=True)
            case "session.error":
                yield self.failed(data.text("message"), data.number("statusCode"))
            case "abort":
                yield OutputEvent(phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED)
            case "result":
                yield OutputEvent(session=event.line("sessionId", limit=100), phase="ended", ended=True, early=True)
            case kind if kind in _EARLY:
                yield OutputEvent(early=True)
            case kind:
                yield OutputEvent(unknown="" if kind in _SILENT else kind or "no type")


def _usage(figures: list[JsonObject]) -> Usage:
    """Add up figures, in which the input includes what was read from a cache."""
    read, cached, written = (
        sum(figure.count(name) for figure in figures) for name in ("inputTokens", "cacheReadTokens", "outputTokens")
    )
    return Usage(counted=Counted.SESSION, input=max(read - cached, 0), cached=cached, output=written)
