"""How to start the grader of one attempt. It only describes: the supervisor starts, watches and kills the process.

A function grader runs in an empty folder, a command in the candidate's checkout. In both cases the grader's own files
come from `private/grader`, so that a candidate cannot put its own in their place.
"""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attempts.record import Kind
from coral.config.model import GraderSection
from coral.config.paths import split_entry

RESULT, SPEC, BEATS, SCRATCH = "result.json", "spec.json", "beats.jsonl", "tmp"
# Not -m: that imports what runs modules, and takes milliseconds of every grade.
_CALL = "import sys; from coral.grading.runner import main; main(sys.argv[1])"
_PLAIN_SHELL = re.compile(r"[\w@%+=:,./ \t-]+")  # words without quotes, variables, globs, pipes


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCommand:
    """What to start: `env` is added to the supervisor's environment; `spec`: what the process that calls a
    grader's function reads from `folder`; none for a command."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    folder: Path
    spec: dict[str, Any] | None = None

    @property
    def result(self) -> Path:
        return self.folder / RESULT


def command_for(
    grader: GraderSection, *, private: Path, workspace: Path, folder: Path, attempt: int, kind: Kind
) -> GradeCommand:
    """How to start one grade of `workspace` (the checkout), in a `folder` that `prepare_folder` has prepared.

    `private` is the folder that `coral.grading.prepare` filled.
    """
    scratch = folder / SCRATCH
    env = {
        "CORAL_ATTEMPT": str(attempt),
        "CORAL_KIND": kind.value,
        "CORAL_BEATS": str(folder / BEATS),
        "TMPDIR": str(scratch),
    }
    if grader.entry:
        spec = _spec(grader, private, workspace, folder, attempt, kind)
        argv = (sys.executable, "-P", "-u", "-c", _CALL, str(folder / SPEC))
        return GradeCommand(argv=argv, env=env, cwd=scratch, folder=folder, spec=spec)
    env |= {
        "CORAL_RESULT": str(folder / RESULT),
        "CORAL_WORKSPACE": str(workspace),
        "CORAL_PRIVATE": str(private),
        "CORAL_ARGS": json.dumps(grader.args),
    }
    return GradeCommand(argv=program(grader.command, private), env=env, cwd=workspace, folder=folder)


def prepare_folder(command: GradeCommand) -> None:
    """Prepare the folder of a grade that is about to start: remove what an earlier try left of its result."""
    scratch = command.folder / SCRATCH
    for old in (command.result, scratch):
        _remove(old)
    scratch.mkdir(parents=True)
    if command.spec is not None:
        (command.folder / SPEC).write_text(json.dumps(command.spec), encoding="utf-8")


def program(command: str | Sequence[str], private: Path) -> tuple[str, ...]:
    """The command as arguments. Words that name files of the grader (`./grade.sh`, `grade.py`) mean those in `private`.

    A line that needs the shell (quotes, pipes, variables) is left as it is: `$CORAL_PRIVATE/grade.sh` names them there.
    """
    if not isinstance(command, str):
        return tuple(_own(word, private) for word in command)
    if _PLAIN_SHELL.fullmatch(command):
        command = shlex.join(_own(word, private) for word in command.split())
    return ("/bin/sh", "-c", command)


def _own(word: str, private: Path) -> str:
    relative = Path(word)
    if relative.is_absolute() or ".." in relative.parts or not (private / relative).is_file():
        return word
    return str(private / relative)


def _spec(
    grader: GraderSection, private: Path, workspace: Path, folder: Path, attempt: int, kind: Kind
) -> dict[str, Any]:
    entry = split_entry(grader.entry)
    assert entry is not None, "the configuration was checked"
    return {
        "entry": str(private / entry[0]),
        "function": entry[1],
        "workspace": str(workspace),
        "private": str(private),
        "args": grader.args,
        "kind": kind.value,
        "attempt": attempt,
        "result": str(folder / RESULT),
    }


def _remove(path: Path) -> None:
    """Whatever a grader left there, be it a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
