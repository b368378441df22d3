"""Runs Claude Code in its print mode. We choose the conversation's id; the usage it reports is of the whole session."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from glob import escape
from itertools import islice
from pathlib import Path

from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_object import JsonObject
from coral.runtimes.messages import content, tool_results
from coral.runtimes.model import Counted, Ending, LaunchSpec, OutputEvent, Retry, Usage

_SILENT = {
    *("hook_started", "hook_response", "task_started", "task_progress", "task_notification", "task_updated"),
    *("session_state_changed", "files_persisted", "thinking_tokens", "post_turn_summary", "status"),
}
CEILING = "--max-budget-usd"
LOGS = 20  # of one conversation: there is one for each folder that claude works in
LATEST = 1e11  # seconds since the epoch: a later end of a limit is in another unit, and would hold for ever
LEAST = 0.0001  # US dollars: claude refuses a ceiling of 0
_CUT = {"aborted_tools", "aborted_streaming"}
_USED_UP = {"error_max_turns", "error_max_budget_usd"}  # a ceiling of ours or of the task was reached: the turn ended


class Claude(AgentProgram):
    name = "claude"
    package = "@anthropic-ai/claude-code"
    chooses_session = True
    verified_version = "2.1.329"
    state_variable = "CLAUDE_CONFIG_DIR"
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    reports = "money"
    instruction_file = "CLAUDE.md"  # AGENTS.md is read only where there is no CLAUDE.md
    efforts = ("low", "medium", "high", "xhigh", "max")
    kept_variables = (
        *("ANTHROPIC_", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_", "CLAUDE_CODE_MAX_"),
        "CLAUDE_CODE_API_",
    )
    quiet_environment = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}  # noqa: RUF012
    lost_session = ("no conversation found",)

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        words = ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
        words += ["--resume" if spec.session else "--session-id", session]
        words += [*self.flag("--model", spec.model), *self.flag("--effort", self.option("effort"))]
        return (*words, *self._ceiling(spec), *self.extra())

    def _ceiling(self, spec: LaunchSpec) -> list[str]:
        """Return the option that limits what a turn may spend: claude reports its usage only at the end of a turn, so
        during the turn it must keep within the budget itself."""
        if spec.money is None or any(argument.startswith(CEILING) for argument in self.extra()):
            return []
        return [CEILING, f"{max(spec.money, LEAST):.4f}"]

    def variables(self, spec: LaunchSpec) -> Mapping[str, str]:
        # As root it skips permissions only if it is told that it runs in a sandbox.
        return {**super().variables(spec), **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {})}

    def links(self) -> Mapping[str, Path]:
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        return {".credentials.json": home / ".credentials.json"}

    def usage(self, state: Path, session: str) -> Usage | None:
        """Read the usage from claude's own log of the conversation: after an interrupt, claude may end without printing
        the `result` that holds it."""
        found = islice(state.glob(f"projects/*/{escape(session)}.jsonl"), LOGS)
        entries = (entry for path in found for entry in self.logged(path, b'"cost-state"'))
        return next((_usage(entry, "totalCostUSD") for entry in entries), None)

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        session = event.line("session_id", limit=100)
        match event.line("type"):
            case "system":
                yield from self._system(event, session)
            case "assistant":
                if not event.true("is_api_error_message"):  # the program's text about an error, which `result` repeats
                    yield from content(event, session)
            case "user":
                yield from tool_results(event, session)
            case "rate_limit_event":
                yield replace(_limits(event.inner("rate_limit_info"), session), proves_prompt=False)
            case "result":
                yield from self._result(event, session)
            case "stream_event" | "tool_progress":
                yield OutputEvent(session=session)
            case "control_response" | "keep_alive":
                yield OutputEvent(session=session, proves_prompt=False)
            case kind:
                yield OutputEvent(session=session, unknown=kind or "no type")

    def _system(self, event: JsonObject, session: str) -> Iterator[OutputEvent]:
        match event.line("subtype"):
            case "init":
                # The prompt is saved, but a conversation that is too long for the model is given up before it answers.
                message = f"model {event.line('model', limit=80)}"
                yield OutputEvent(session=session, phase="thinking", message=message, proves_prompt=False)
            case "api_retry":
                delay, reason = event.amount("retry_delay_ms"), event.line("error", limit=80)
                seconds = None if delay is None else delay / 1000
                retry = Retry(attempt=event.count("attempt"), seconds=seconds, reason=reason)
                message = f"retry {retry.attempt}: {reason}"
                yield OutputEvent(session=session, phase="retrying", message=message, retry=retry, proves_prompt=False)
            case "status" if event.line("status") == "compacting":
                message = "compacting the conversation"
                yield OutputEvent(session=session, phase="compacting", message=message, proves_prompt=False)
            case "compact_boundary":
                before, after = (event.count("compact_metadata", name) for name in ("pre_tokens", "post_tokens"))
                message = f"{before} → {after} tokens"
                found = OutputEvent(session=session, phase="thinking", message=message, compacted=True)
                yield replace(found, proves_prompt=False)
            case kind:
                is_known = kind in _SILENT  # hooks run before the program has anything of the conversation
                yield OutputEvent(session=session, early=is_known, unknown="" if is_known else f"system/{kind}")

    def _result(self, event: JsonObject, session: str) -> Iterator[OutputEvent]:
        yield OutputEvent(session=session, usage=_usage(event, "total_cost_usd"))
        subtype, reason = event.line("subtype"), event.line("terminal_reason")
        if reason in _CUT:
            yield OutputEvent(
                session=session, phase="ended", message="interrupted", ended=True, ending=Ending.INTERRUPTED
            )
        elif subtype in _USED_UP or not (event.true("is_error") or subtype.startswith("error")):
            yield OutputEvent(session=session, phase="ended", message=subtype, ended=True, ending=Ending.CLEAN)
        else:
            yield self._failure(event, reason, subtype)

    def _failure(self, event: JsonObject, reason: str, subtype: str) -> OutputEvent:
        errors = event.raw("errors")
        texts = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
        texts = [event.text("result"), *texts, "" if reason == "api_error" else reason]
        message = "\n".join(text for text in texts if text)
        limited = event.line("api_error") == "usage_limit_reached"  # stays true when the texts are reworded
        return self.failed(message or subtype, event.number("api_error_status"), limited=limited)


def _limits(info: JsonObject, session: str) -> OutputEvent:
    """Read a limit of the account's plan. The program also prints such events after successful answers."""
    kind, until = info.line("rateLimitType", limit=40), info.number("resetsAt")
    until = until if until is not None and 0 < until < LATEST else None  # the answer's status still tells the limit
    if info.line("status") != "rejected":
        return OutputEvent(session=session)
    return OutputEvent(session=session, message=f"limit reached: {kind}", limit_until=until, exact=until is not None)


def _usage(event: JsonObject, cost: str) -> Usage:
    """Return the usage of the whole conversation, earlier launches included, and of all models that it used."""
    models = event.values("modelUsage")
    return Usage(
        counted=Counted.SESSION,
        input=sum(model.count("inputTokens") + model.count("cacheCreationInputTokens") for model in models),
        cached=sum(model.count("cacheReadInputTokens") for model in models),
        output=sum(model.count("outputTokens") for model in models),
        cost=event.amount(cost),
    )
