"""What the tools of the brain `llm` work with. It does without pydantic, for it is made before the first request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coral.native.llm.conversation import LlmMemory
from coral.native.llm.output import LlmOutput
from coral.native.llm.request import ModelUsage
from coral.native.llm.settings import LlmOptions
from coral.native.llm.transcript import Transcript
from coral.native.snapshots import Snapshots
from coral.native.tool_error import ToolError

if TYPE_CHECKING:
    from attempts.record import Attempt
    from coral.native.coral_command import CoralCommand

LONGEST_RESULT = 16_000  # characters of a result; a smaller window shortens it


@dataclass(slots=True)
class Workbench:
    """What tools work with. `environment`: of the commands that they start, without the key of the model.

    `settle`: records the result of the submission that is being performed, its attempt and the heartbeats that came
    with it, before the tool returns, since an interrupt may end the rest. `running`: the command that an interrupt has
    to end.
    """

    clone: Path
    agent: str
    snapshots: Snapshots[LlmMemory]
    output: LlmOutput
    options: LlmOptions
    transcript: Transcript
    environment: dict[str, str]
    settle: Callable[[str, Attempt, tuple[str, ...]], None]
    running: CoralCommand | None = None
    group: int = 0  # of the command that runs; 0 if none does

    @property
    def memory(self) -> LlmMemory:
        return self.snapshots.memory

    @memory.setter
    def memory(self, memory: LlmMemory) -> None:
        self.snapshots.memory = memory

    def spend(self, usage: ModelUsage) -> None:
        """Count what a request to the model has used, for the limits of an attempt and for the run's budget."""
        self.memory = self.memory.spend(usage.input + usage.cached + usage.output, usage.cost or 0.0)
        self.output.usage(input=usage.input, cached=usage.cached, output=usage.output, cost=usage.cost)

    @property
    def longest(self) -> int:
        """The most characters of a result that leave room for others in the window."""
        return min(LONGEST_RESULT, self.options.window // 8)

    def file(self, name: str, *, write: bool = False) -> Path:
        """Return a path of the workspace. ToolError for one outside: only `.shared` may be read through its link."""
        root = self.clone.resolve()
        path = (root / name).resolve()
        roots = (root,) if write else (root, (root / ".shared").resolve())
        if not any(path.is_relative_to(allowed) for allowed in roots):
            raise ToolError(f"{name} is outside of the workspace; give a path relative to it, such as src/solve.py")
        if write and path.is_relative_to(root / ".git"):
            raise ToolError(f"{name} belongs to git; change the files of the workspace")
        return path
