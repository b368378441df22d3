"""The kinds of grader. The key of `grader` in task.yaml that is set chooses one.

A kind names the files of the task that it needs and says how one grade is started. A grader's own files come from
`private/grader`, so that a candidate cannot replace them: a change to the task's folder must not change them either.
"""

import contextlib
import json
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from coral.config.model import GraderSection
from coral.config.paths import split_entry, split_module
from coral.errors import CoralError
from coral.grading.command import RESULT, SCRATCH, SPEC, GradeCommand, GradePlace
from coral.grading.limits import GradeLimits
from coral.grading.remote import RemoteGrader
from coral.processes import environment
from coral.processes.prestarted import SHELL, Interpreter, PrestartedInterpreter, python_order
from coral.processes.seal import UNSEALED, Sandbox
from workspace.layout import leads_outside

# Not -m: that imports what runs modules, and takes milliseconds of every grade.
_WAIT_AND_CALL = "import sys; from coral.grading.runner import wait; wait(sys.argv[1])"
_PLAIN_SHELL = re.compile(r"[\w@%+=:,./ \t-]+")  # words without quotes, variables, globs, pipes
_PATHS = re.compile(r"[\w@%+=:,./-]+")


class GraderKind(Protocol):
    def interpreter(self, venv: Path | None) -> Interpreter:
        """Return the interpreter that is started before it is known which grade it is for, and then runs what `command`
        says. `venv`: the grader's environment, if it has one of its own."""

    @property
    def python(self) -> str:
        """The Python of its grades, with its version and its path; empty where that is not known."""

    def files(self, grader: GraderSection, folder: Path) -> Iterator[Path]:
        """Return the files and folders of the task's `folder` that the grader needs, relative to it."""

    def command(self, grader: GraderSection, place: GradePlace) -> GradeCommand:
        """Say how one grade is started. It is called before `prepare_folder`."""


class FunctionGrader:
    """`entry: grade.py:grade`. A process of its own calls the function, in an empty folder."""

    python = f"Python {platform.python_version()} ({sys.executable})"

    def interpreter(self, venv: Path | None) -> Interpreter:
        python = sys.executable if venv is None else str(venv / "bin" / "python")
        return Interpreter((python, "-P", "-u", "-c", _WAIT_AND_CALL), python_order, hands_over=True)

    def files(self, grader: GraderSection, folder: Path) -> Iterator[Path]:  # noqa: ARG002 - as the protocol says
        """Yield the entry's file, or the whole folder around it, so that its siblings can be imported; nothing for a
        module, which is installed."""
        if split_module(grader.entry) is None:
            path = Path(_entry(grader)[0])
            yield path.parent if path.parent.parts else path

    def command(self, grader: GraderSection, place: GradePlace) -> GradeCommand:
        path, function = _entry(grader)
        name, description = place.task
        section = grader.model_dump(include={"setup", "timeout", "args", "private"}, mode="json")
        spec = {
            "entry": path if split_module(grader.entry) else str(place.private / path),
            "function": function,
            "workspace": str(place.workspace),
            "private": str(place.private),
            "args": grader.args,
            "kind": place.kind.value,
            "attempt": place.attempt,
            "section": {**section, "entrypoint": grader.entry, "direction": grader.direction.value},
            "task": {"name": name, "description": description},
            "result": str(place.folder / RESULT),
        }
        argv, cwd = (str(place.folder / SPEC),), place.folder / SCRATCH
        return GradeCommand(
            interpreter=self.interpreter(place.venv),
            argv=argv,
            env=place.environment,
            inherits=grader.pass_env,
            cwd=cwd,
            folder=place.folder,
            workspace=place.workspace,
            sandbox=place.sandbox,
            limits=GradeLimits.of(grader),
            spec=spec,
        )


class CommandGrader:
    """`command: ./grade.sh`. Any program, started in the checkout; it writes its result to `$CORAL_RESULT`."""

    python = ""  # a command may start any Python

    def interpreter(self, venv: Path | None) -> Interpreter:  # noqa: ARG002 - it finds the environment by PATH
        return SHELL

    def files(self, grader: GraderSection, folder: Path) -> Iterator[Path]:
        """Return the files that the command names."""
        words = _PATHS.findall(grader.command) if isinstance(grader.command, str) else grader.command
        return (Path(word) for word in words if not leads_outside(word) and (folder / word).is_file())

    def command(self, grader: GraderSection, place: GradePlace) -> GradeCommand:
        env = {
            "CORAL_RESULT": str(place.folder / RESULT),
            "CORAL_WORKSPACE": str(place.workspace),
            "CORAL_PRIVATE": str(place.private),
            "CORAL_ARGS": json.dumps(grader.args),
        }
        argv = command_argv(grader.command, place.private)
        return GradeCommand(
            interpreter=self.interpreter(place.venv),
            argv=argv,
            env=place.environment | env,
            inherits=grader.pass_env,
            cwd=place.workspace,
            folder=place.folder,
            workspace=place.workspace,
            sandbox=place.sandbox,
            limits=GradeLimits.of(grader),
        )


def prestart(
    grader: GraderSection, tag: str, group: str = "", sandbox: Sandbox = UNSEALED, venv: Path | None = None
) -> PrestartedInterpreter | None:
    """Start an interpreter, which makes itself ready while the commit of its grade is taken in and checked out; None if
    that fails. `tag`, `group`, `sandbox`: those of the grade's launch; `venv`: the grader's environment."""
    env = environment.of_grader(grader.pass_env)
    with contextlib.suppress(OSError):  # then the grade starts one itself, or fails
        return PrestartedInterpreter(kind_of(grader).interpreter(venv), env, tag, group, sandbox)
    return None


KINDS: Mapping[str, GraderKind] = {"entry": FunctionGrader(), "command": CommandGrader()}


def kind_of(grader: GraderSection) -> GraderKind:
    """Return the kind that the task chose. The configuration was checked: exactly one of the keys is set."""
    kind = next(kind for key, kind in KINDS.items() if getattr(grader, key))
    return RemoteGrader(kind) if grader.is_remote else kind


def command_argv(command: str | Sequence[str], private: Path) -> tuple[str, ...]:
    """Return the command as arguments. Words that name files of the grader (`./grade.sh`, `grade.py`) mean those in
    `private`.

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


def _entry(grader: GraderSection) -> tuple[str, str]:
    entry = split_module(grader.entry) or split_entry(grader.entry)
    assert entry is not None, "the configuration was checked"
    return entry


_NOT_COPIED = frozenset({"__pycache__", ".git"})
_JUNK = shutil.ignore_patterns(*_NOT_COPIED)


def grader_files(grader: GraderSection, folder: Path) -> tuple[Path, ...]:
    """Return the files and folders that a run copies for its grader, relative to the task's `folder`."""
    needed = kind_of(grader).files(grader, folder)
    return tuple(dict.fromkeys([*needed, *map(Path, grader.private)]))


def copied_files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder that a copy of it has, relative to the folder."""
    below = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return (name for name in below if not _NOT_COPIED & set(name.parts))


def list_of(private: Path) -> Path:
    """Return the path of the list, beside the folder, of the `files` that were copied into it, and of the folders of
    `data` in it."""
    return private.with_name(f"{private.name}.files.json")


def copy_grader_files(grader: GraderSection, folder: Path, private: Path) -> None:
    """Copy the files of the task's `folder` that the grader's kind needs, and its `private` entries, into `private`
    (made 0700). Beside that folder, a list names the files: a grader may leave others among them."""
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    private.chmod(0o700)
    for name in grader_files(grader, folder):
        try:
            _copy(folder / name, private / name)
        except (OSError, shutil.Error) as error:
            raise CoralError(
                f"cannot copy the grader's file {name}: {error}", "see grader.private in task.yaml"
            ) from error
    data = [name for name in grader.private if (private / name).is_dir()]
    listed = {"files": sorted(map(str, copied_files(private))), "data": data}
    list_of(private).write_text(json.dumps(listed), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=_JUNK, ignore_dangling_symlinks=True)
    else:
        shutil.copy2(source, target)
