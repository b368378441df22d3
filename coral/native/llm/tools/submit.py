"""Submits the workspace by the real `coral eval`. Whatever interrupts it, no submission is made twice."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

from pydantic import Field

from attempts.inbox import submission_ids
from attempts.record import Attempt
from coral.native.coral_command import CoralCommand, Inline
from coral.native.format import score_text
from coral.native.llm.tools.base import AgentTool
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError
from workspace.layout import find_agent


class SubmitTool(AgentTool):
    """Submit the workspace as it is, and wait for its grade. Say in the title what you changed and what you expect."""

    name: ClassVar[str] = "submit"
    works: ClassVar[bool] = True
    title: str = Field(min_length=1, max_length=300)

    def perform(self, bench: Workbench) -> str:
        bench.memory = replace(bench.memory, submitted_before=_last_submission(bench))
        bench.snapshots.save()
        coral = _coral(bench)
        return _result_text(coral.submit(self.title) or coral.wait())


def settle_interrupted(bench: Workbench) -> str:
    """Return the result of a submission that was interrupted. ToolError if it was never made: the last one is then
    older, maybe of another session."""
    if bench.memory.submitted_before in (None, _last_submission(bench)):
        raise ToolError("an interrupt came before it was submitted; submit again")
    return _result_text(_coral(bench).wait())


def _last_submission(bench: Workbench) -> str:
    """Return the id of the agent's last submission; empty if there is none."""
    found = find_agent(bench.clone)
    if found is None:
        return ""
    layout, agent = found
    return max(submission_ids(layout.attempts, agent), default="")


def _coral(bench: Workbench) -> CoralCommand:
    bench.running = CoralCommand(bench.clone, partial(bench.output.beat, "wait"), partial(_take, bench))
    return bench.running


def _take(bench: Workbench, attempt: Attempt, inline: Inline) -> None:
    """Record the result of the call that submitted it, and count the attempt as the agent's own; both once."""
    if str(attempt.number) not in bench.memory.attempts:
        heartbeats = tuple(f"## Heartbeat: {part.name} (id {part.id})\n\n{part.text}" for part in inline)
        bench.settle(_result_text(attempt), attempt, heartbeats)


def _result_text(attempt: Attempt) -> str:
    reason = f": {attempt.reason}" if attempt.reason else ""
    return f"#{attempt.number} {attempt.verdict}, score {score_text(attempt.score)}{reason}"
