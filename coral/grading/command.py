"""Describes how one grade is started; the supervisor starts, watches and kills the process."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attempts.record import Kind
from coral.grader.remove_tree import remove_tree
from coral.grading.limits import GradeLimits
from coral.grading.sandbox import hand_over
from coral.grading.venv import variables
from coral.processes import environment
from coral.processes.prestarted import Interpreter, PrestartedInterpreter
from coral.processes.process import Program
from coral.processes.seal import Sandbox
from workspace.owner import CANDIDATES

RESULT, SPEC, BEATS, SCRATCH, STDOUT, STDERR = "result.json", "spec.json", "beats.jsonl", "tmp", "stdout", "stderr"
ARTIFACTS = "artifacts"  # a folder for files that agents may read


@dataclass(frozen=True, slots=True, kw_only=True)
class GradePlace:
    """The folders of one grade. `workspace`: the checkout; `private`: the grader's own files, which
    `copy_grader_files` copied; `folder`: what the grade itself writes; `timeout`: in seconds; `venv`: the grader's
    environment, None where it has that of Coral; `task`: its name and its description."""

    workspace: Path
    private: Path
    folder: Path
    attempt: int
    kind: Kind
    timeout: float
    sandbox: Sandbox
    venv: Path | None = None
    task: tuple[str, str] = ("", "")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that every grader gets besides those of the user's that it may have."""
        return {
            "CORAL_ATTEMPT": str(self.attempt),
            "CORAL_KIND": self.kind.value,
            "CORAL_BEATS": str(self.folder / BEATS),
            "CORAL_ARTIFACTS": str(self.folder / ARTIFACTS),
            "CORAL_DEADLINE": f"{time.time() + self.timeout:.3f}",
            "CORAL_SEED": str(int.from_bytes(os.urandom(4))),
            "TMPDIR": str(self.folder / SCRATCH),
            "CORAL_SEAL": self.sandbox.level,
            **variables(self.venv),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCommand:
    """How one grade is started. `env`: added to what a grader gets of the user's environment; `inherits`: names of
    further variables that it gets of that; `spec`: written for the process that calls a grader's function, None for
    other kinds of grader. For a grade on a cluster, `bridge`: the folder of the bridge; `cluster`: the executor and
    what its bridge is told; `wait`: seconds that the grade may take beyond its timeout, because it waits for a node."""

    interpreter: Interpreter
    argv: tuple[str, ...]
    env: dict[str, str]
    inherits: tuple[str, ...]
    cwd: Path
    folder: Path
    workspace: Path
    sandbox: Sandbox
    limits: GradeLimits
    spec: dict[str, Any] | None = None
    bridge: Path | None = None
    cluster: tuple[str, ...] = ()
    wait: float = 0.0

    def prestart(self, tag: str, group: str = "") -> PrestartedInterpreter:
        """Start the interpreter that will run the grade. OSError if it cannot be started."""
        return PrestartedInterpreter(self.interpreter, environment.of_grader(self.inherits), tag, group, self.sandbox)

    def program(self, tag: str) -> Program:
        """Return the process to start, whose output stays in the grade's folder."""
        return Program(
            argv=self.argv,
            env={**environment.of_grader(self.inherits), **self.env},
            cwd=self.cwd,
            stdin=Path(os.devnull),
            stdout=self.folder / STDOUT,
            stderr=self.folder / STDERR,
            tag=tag,
        )


def prepare_folder(command: GradeCommand) -> None:
    """Make the folder of a grade that is about to start ready, and remove the result of an earlier launch."""
    scratch = command.folder / SCRATCH
    artifacts = command.folder / ARTIFACTS
    for old in (command.folder / RESULT, scratch, artifacts, command.folder / CANDIDATES):
        remove_tree(old)
    for folder in (scratch, artifacts):
        folder.mkdir(parents=True)
    if command.spec is not None:
        (command.folder / SPEC).write_text(json.dumps(command.spec), encoding="utf-8")
    hand_over(command.sandbox, command.folder, command.workspace)
