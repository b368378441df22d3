"""Runs the built-in agent with the brain `llm`, which asks a model. Errors of the model are judged by the patterns and
statuses that are used for other agent programs."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from coral.native.llm.request import LONGEST_WAIT
from coral.native.llm.settings import LlmOptions
from coral.runtimes import coral_protocol
from coral.runtimes.exits import UNKNOWN_SESSION, USAGE
from coral.runtimes.json_lines import Reader
from coral.runtimes.json_object import JsonObject
from coral.runtimes.model import Command, Ending, LaunchSpec, LaunchSummary, OutputEvent, Tool, new_session

MODULE = "coral.native"


class NativeLlm(Reader):
    name = "native"
    account = "native"
    costs_money = True
    reports = "tokens"

    def check(self) -> list[str]:
        try:
            LlmOptions.read(self.own_options)
        except ValueError as error:
            return [str(error)]
        return self.limit_problems()

    def missing_login(self) -> str:
        options = LlmOptions.read(self.own_options)
        if os.environ.get(options.key_name) or options.base_url or options.url.startswith("http://"):
            return ""  # a server of the user's may need no key
        return f"no key of a model was found; looked for: {options.key_name}"

    @property
    def how_to_log_in(self) -> str:
        return f"set {LlmOptions.read(self.own_options).key_name}, or base_url in agents.options"

    @property
    def own_options(self) -> dict[str, object]:
        """The options that the program gets: all but `limits`, whose patterns the runtime uses itself."""
        return {name: value for name, value in self.options.items() if name != "limits"}

    def command(self, spec: LaunchSpec) -> Command:
        session = spec.session or new_session(spec)
        line = (sys.executable, "-P", "-m", MODULE, "--session", session, *(("--resume",) if spec.session else ()))
        words = (*line, "--state", str(spec.state), "--model", spec.model, "--options", json.dumps(self.own_options))
        return Command(argv=words, session=session)

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        if event.holds("failed"):
            yield self._failed(event.inner("failed"))
            return
        read = coral_protocol.output_event(event)
        if event.holds("tool"):
            tool = event.inner("tool")
            yield replace(
                read,
                tool=Tool(
                    id=tool.line("id", limit=100),
                    name=tool.line("name", limit=80),
                    text=tool.text("text"),
                    over=tool.true("over"),
                    failed=tool.true("failed"),
                ),
            )
        else:
            yield read

    def _failed(self, failure: JsonObject) -> OutputEvent:
        wait = failure.number("retry_after")
        limited = wait is not None and wait > LONGEST_WAIT  # whatever its status
        text = failure.text("text") or "the model could not be asked"
        event = self.failed(text, failure.number("status"), limited=limited)
        if event.ending is Ending.LIMIT and wait:  # none or 0 names no end
            return replace(event, limit_until=self.now() + wait, exact=True)
        return event

    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        if summary.ending is None and code in (UNKNOWN_SESSION, USAGE):
            return Ending.UNKNOWN_SESSION if code == UNKNOWN_SESSION else Ending.TERMINAL
        if summary.ending is None and code == 0:
            return Ending.CLEAN
        if coral_protocol.in_start_up(code, summary):
            return Ending.INTERRUPTED
        return super().judge(code, summary)
