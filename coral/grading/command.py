"""How one grade is started. It only describes: the supervisor starts, watches and kills the process."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attempts.record import Kind

RESULT, SPEC, BEATS, SCRATCH = "result.json", "spec.json", "beats.jsonl", "tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradePlace:
    """Where one grade takes place. `workspace`: the checkout; `private`: the grader's own files, which
    `coral.grading.prepare` copied; `folder`: what the grade itself writes."""

    workspace: Path
    private: Path
    folder: Path
    attempt: int
    kind: Kind

    @property
    def environment(self) -> dict[str, str]:
        """What every grader finds in its environment, besides the supervisor's."""
        return {
            "CORAL_ATTEMPT": str(self.attempt),
            "CORAL_KIND": self.kind.value,
            "CORAL_BEATS": str(self.folder / BEATS),
            "TMPDIR": str(self.folder / SCRATCH),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCommand:
    """What to start. `env` is added to the supervisor's environment; `spec` is written for the process that calls a
    grader's function, and is None for every other kind of grader."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    folder: Path
    spec: dict[str, Any] | None = None

    @property
    def result(self) -> Path:
        return self.folder / RESULT


def prepare_folder(command: GradeCommand) -> None:
    """Prepare the folder of a grade that is about to start: remove what an earlier try left of its result."""
    scratch = command.folder / SCRATCH
    for old in (command.result, scratch):
        _remove(old)
    scratch.mkdir(parents=True)
    if command.spec is not None:
        (command.folder / SPEC).write_text(json.dumps(command.spec), encoding="utf-8")


def _remove(path: Path) -> None:
    """Whatever a grader left there, be it a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
