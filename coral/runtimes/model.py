"""What a runtime is: it says how to start a program, what a line that it prints means, and what its end means.

It is made with its options, keeps no state of a launch, and starts nothing: the same questions get the same answers.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coral.fleet.events import Ending

__all__ = ["Command", "Ending", "Job", "Runtime", "Said", "Sign", "new_session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One launch of one agent. `session` is the conversation to go on with, None for a new one."""

    agent: str
    launch: int
    session: str | None
    clone: Path
    state: Path
    run_root: Path
    model: str = ""
    editable: tuple[str, ...] = ()
    check: str = ""
    direction: str = "maximize"
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start. `env` is added to the environment; `session` is the conversation's id if that is known already."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What one line of output says. `limit_until`: seconds since the epoch, when the account's limit ends."""

    session: str = ""
    phase: str = ""
    message: str = ""
    progress: float | None = None
    reply: str = ""
    limit_until: float | None = None
    ended: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was read in one launch: whether anything was printed, the last error, the end of its stderr."""

    output: bool = False
    session: str = ""
    error: str = ""
    stderr: str = ""
    limit_until: float | None = None


class Runtime(Protocol):
    """`instruction_file`: where in the clone the program looks for its instructions.

    `resumes`: whether it can go on with a conversation; if not, every launch is new and is handed the story so far.

    `uses_model`: whether `agents.model` reaches the program; where it does not, a task that sets it is refused.
    """

    @property
    def name(self) -> str: ...

    @property
    def instruction_file(self) -> str: ...

    @property
    def resumes(self) -> bool: ...

    @property
    def uses_model(self) -> bool: ...

    def check(self) -> list[str]:
        """What would keep it from starting on this machine: wrong options, a missing program."""
        ...

    def command(self, job: Job) -> Command: ...

    def read(self, line: bytes) -> tuple[Sign, ...]:
        """What a line says; never raises, whatever the program prints."""
        ...

    def judge(self, code: int, said: Said) -> Ending:
        """`code` is Popen's: negative for a signal."""
        ...


def new_session(job: Job) -> str:
    """The id of a conversation that begins with this launch. Never random: whoever asks again gets it again."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"coral/{job.run_root.name}/{job.agent}/{job.launch}"))
