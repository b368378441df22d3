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

from attempts.record import Kind
from coral.config.files import split_entry
from coral.config.model import GraderSection

RESULT, SPEC, BEATS, SCRATCH = "result.json", "spec.json", "beats.jsonl", "tmp"
# Not -m: that imports what runs modules, and takes milliseconds of every grade.
_CALL = "import sys; from coral.grading.runner import main; main(sys.argv[1])"
_PLAIN_SHELL = re.compile(r"[\w@%+=:,./ \t-]+")  # words without quotes, variables, globs, pipes


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCommand:
    """What to start: `env` is added to the supervisor's environment; `result` and `beats` are what to read."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    result: Path
    beats: Path


def command_for(
    grader: GraderSection, *, private: Path, workspace: Path, folder: Path, attempt: int, kind: Kind
) -> GradeCommand:
    """Make `folder` ready for one grade of `workspace` (the checkout), and say how to start it.

    `private` is the folder that `prepare` filled. What an earlier try left of its result in `folder` is removed.
    """
    result, scratch, beats = folder / RESULT, folder / SCRATCH, folder / BEATS
    for old in (result, scratch):
        _remove(old)
    scratch.mkdir(parents=True)
    env = {
        "CORAL_ATTEMPT": str(attempt),
        "CORAL_KIND": kind.value,
        "CORAL_BEATS": str(beats),
        "TMPDIR": str(scratch),
    }
    if grader.entry:
        spec = _write_spec(grader, private, workspace, folder, attempt, kind)
        argv = (sys.executable, "-P", "-u", "-c", _CALL, str(spec))
        return GradeCommand(argv=argv, env=env, cwd=scratch, result=result, beats=beats)
    env |= {
        "CORAL_RESULT": str(result),
        "CORAL_WORKSPACE": str(workspace),
        "CORAL_PRIVATE": str(private),
        "CORAL_ARGS": json.dumps(grader.args),
    }
    return GradeCommand(argv=program(grader.command, private), env=env, cwd=workspace, result=result, beats=beats)


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


def _write_spec(grader: GraderSection, private: Path, workspace: Path, folder: Path, attempt: int, kind: Kind) -> Path:
    entry = split_entry(grader.entry)
    assert entry is not None, "the configuration was checked"
    spec = {
        "entry": str(private / entry[0]),
        "function": entry[1],
        "workspace": str(workspace),
        "private": str(private),
        "args": grader.args,
        "kind": kind.value,
        "attempt": attempt,
        "result": str(folder / RESULT),
    }
    path = folder / SPEC
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


def _remove(path: Path) -> None:
    """Whatever a grader left there, be it a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
