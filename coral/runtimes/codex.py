"""Runs Codex in its exec mode. The program chooses the thread's id, and keeps login and sessions in CODEX_HOME."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from coral.runtimes import messages
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Counted, Ending, LaunchSpec, OutputEvent, Retry, Tool, Usage

_RETRY = re.compile(r"Reconnecting\.\.\. (?P<attempt>\d+)/\d+(?: \((?P<reason>.+?)\)?$)?")
_QUIET = ("check_for_update_on_startup=false", "analytics.enabled=false")
_SHELL = ("allow_login_shell=false",)  # a login shell may set another PATH: without `coral`, no attempt is possible


class Codex(AgentProgram):
    name = "codex"
    package = "@openai/codex"
    behind_launcher = ("@openai/codex-{platform}", "vendor/*/bin/codex")
    verified_version = "0.169.0"
    state_variable = "CODEX_HOME"
    keys = ("CODEX_API_KEY", "OPENAI_API_KEY")
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh")
    kept_variables = ("OPENAI_", "CODEX_API_KEY")
    lost_session = ("no rollout found",)
    interrupt_codes = (1,)  # SIGINT ends it with this code, and it prints nothing

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        settings = [f"model={json.dumps(spec.model)}"] if spec.model else []
        settings += [*_QUIET, *_SHELL]
        settings += [f'model_reasoning_effort="{self.option("effort")}"'] if self.option("effort") else []
        words = ["exec", *(["resume"] if spec.session else [])]
        words += [word for setting in settings for word in ("-c", setting)]
        words += ["--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", *self.extra()]
        return (*words, *([session] if spec.session else []), "-")

    def links(self) -> Mapping[str, Path]:
        """Return the login, and the configuration, which names the providers that the user has a key for."""
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return {name: home / name for name in ("auth.json", "config.toml")}

    def usage(self, state: Path, session: str) -> Usage | None:
        """Read the tokens used from the file where codex logs the conversation: when it is interrupted, it prints
        none."""
        for path in _logs(state, session):
            for entry in self.logged(path, b'"token_count"'):
                if total := entry.inner("payload", "info", "total_token_usage"):
                    return _usage(total)
        return None

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        match event.line("type"):
            case "thread.started":
                yield OutputEvent(session=event.line("thread_id", limit=100), early=True)
            case "turn.started":  # the prompt is logged milliseconds later, or after a compaction
                yield OutputEvent(phase="thinking", proves_prompt=False)
            case "item.started":
                yield from _item(event.inner("item"), over=False)
            case "item.completed":
                yield from _item(event.inner("item"), over=True)
            case "item.updated":
                yield OutputEvent()
            case "turn.completed":
                yield OutputEvent(usage=_usage(event.inner("usage")))
                yield OutputEvent(phase="ended", message="turn completed", ended=True, ending=Ending.CLEAN)
            case "turn.failed":
                yield self.failed(event.text("error", "message"))
            case "error":
                yield _error(event.line("message"))
            case kind:
                yield OutputEvent(unknown=kind or "no type")


def _item(item: JsonObject, *, over: bool) -> Iterator[OutputEvent]:
    """Yield the events of a step that begins or is over. Its texts are read when it is over."""
    item_id, kind = item.line("id"), item.line("type")
    match kind:
        case "agent_message" if over:
            yield OutputEvent(phase="thinking", message=item.line("text"), reply=item.text("text"))
        case "command_execution" | "mcp_tool_call" | "web_search" | "collab_tool_call" if not over:
            yield messages.started("", item_id, item.line("tool", limit=80) or _NAMES.get(kind, kind), item)
        case "command_execution" | "mcp_tool_call" | "web_search" | "collab_tool_call":
            failed = item.number("exit_code") not in (None, 0.0) or item.line("status") in ("failed", "declined")
            answer = item.text("aggregated_output") or item.text("error", "message")
            yield messages.ended("", item_id, answer, failed=failed)
        case "file_change" if over:
            failed = item.line("status") == "failed"
            for change in item.items("changes"):
                path = change.line("path")
                tool = Tool(id=item_id, name="edit", text=path, over=True, failed=failed)
                yield OutputEvent(phase="thinking", message=f"edited {path}", edited="" if failed else path, tool=tool)
        case "reasoning":
            yield OutputEvent(phase="thinking", message=item.line("text"))
        case "error":
            yield OutputEvent(message=item.line("message"), early=True)  # a warning
        case "agent_message" | "file_change" | "todo_list" | "plan_update":
            yield OutputEvent(phase="thinking")
        case _:
            yield OutputEvent(unknown=f"item/{kind}")


_NAMES = {"command_execution": "shell"}


def _error(line: str) -> OutputEvent:
    """Read an error; if it ends the turn, `turn.failed` follows. It may come from a compaction, before the prompt
    is saved."""
    if retry := _RETRY.match(line):
        again = Retry(attempt=int(retry["attempt"]), reason=retry["reason"] or line)
        return OutputEvent(phase="retrying", message=line, retry=again, proves_prompt=False)
    return OutputEvent(message=line, error=line, proves_prompt=False)


def _usage(usage: JsonObject) -> Usage:
    """Return the usage of the whole thread, earlier launches included."""
    return messages.cached_within(usage, Counted.SESSION, "input_tokens", "cached_input_tokens", "output_tokens")


def _logs(state: Path, session: str) -> list[Path]:
    """Find a thread's log, which is in the folder of the day on which the thread began. Its id holds that day."""
    try:
        thread = UUID(session)
        day = datetime.fromtimestamp((thread.int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return []
    return sorted((state / "sessions" / f"{day:%Y/%m/%d}").glob(f"rollout-*-{thread}.jsonl"))[-1:]
