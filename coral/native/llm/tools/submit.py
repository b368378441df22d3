"""Submits the workspace by the real `coral eval`. Whatever interrupts it, no submission is made twice.

The result is recorded as soon as it is printed, since `coral eval` may stay until a heartbeat interrupts the agent.
"""

import time
from dataclasses import replace
from functools import partial
from typing import ClassVar

from pydantic import Field

from coral.native.coral_command import CoralCommand, SubmissionResult, submission_result
from coral.native.format import score_text
from coral.native.llm.tools.base import AgentTool
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError

WAIT_SECONDS, PROMPT_SECONDS = 600.0, 5.0  # of one `coral wait`; if it ends within PROMPT_SECONDS, nobody grades


class SubmitTool(AgentTool):
    """Submit the workspace as it is, and wait for its grade. Say in the title what you changed and what you expect."""

    name: ClassVar[str] = "submit"
    works: ClassVar[bool] = True
    title: str = Field(min_length=1, max_length=300)

    def perform(self, bench: Workbench) -> str:
        result = _coral(bench, ["eval", "-m", self.title, "--json"]) or _wait(bench)
        return _result_text(bench, result)


def settle_interrupted(bench: Workbench) -> str:
    """Return the result of a submission that was interrupted. ToolError if it was never made."""
    known = {int(number) for number in bench.memory.attempts}
    result = _coral(bench, ["wait", "--json", "--timeout", f"{WAIT_SECONDS:g}"], known) or _wait(bench)
    if result.number in known:
        raise ToolError("an interrupt came before it was submitted; submit again")
    return _result_text(bench, result)


def _wait(bench: Workbench) -> SubmissionResult:
    while True:
        began = time.monotonic()
        if (result := _coral(bench, ["wait", "--json", "--timeout", f"{WAIT_SECONDS:g}"])) is not None:
            return result
        if time.monotonic() - began < PROMPT_SECONDS:
            raise ToolError("it is submitted, and nobody grades now; do not submit it again")


def _coral(bench: Workbench, arguments: list[str], known: set[int] = frozenset()) -> SubmissionResult | None:  # type: ignore[assignment]
    bench.running = command = CoralCommand(bench.clone, arguments, partial(bench.output.beat, "wait"))
    data = command.first_object()
    result = submission_result(data, None, "") if data is not None else None
    if result is not None and result.number not in known:
        bench.settle(_result_text(bench, result))
    code, errors = command.finish()
    bench.running = None
    return result if data is not None else submission_result(None, code, errors)


def _result_text(bench: Workbench, result: SubmissionResult) -> str:
    """Return the result in words, and count the attempt as the agent's own, once."""
    number = result.number
    if str(number) not in bench.memory.attempts:
        bench.inline += result.inline
        bench.memory = replace(bench.memory.new_attempt(number, result.commit), checked=False)
    reason = f": {result.reason}" if result.reason else ""
    return f"#{number} {result.verdict}, score {score_text(result.score, 10)}{reason}"
