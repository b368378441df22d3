"""One grade, from start to result, for whoever waits for it: `coral validate`, and the seed before a run begins.

It takes the way of every attempt: the same copies of the grader's files, the same checkout, the same command, and at
the end nothing that was started is left.
"""

import os
from pathlib import Path

from attempts.record import Kind
from coral.config.load import Config
from coral.errors import CoralError
from coral.grading.command import GradeCommand, GradePlace, prepare_folder
from coral.grading.kinds import kind_of
from coral.grading.prepare import copy_grader_files
from coral.grading.result import GradeResult, read_result
from coral.processes import environment, process, received_signals
from workspace import hub
from workspace.errors import GitError

SETTLE = 5.0  # seconds to wait for a killed process; one in the kernel's hands may take longer


def grade_once(config: Config, folder: Path, timeout: float | None = None) -> GradeResult:
    """Grade the seed for real in `folder`, which is empty and private to the caller. The default is the task's timeout.

    CoralError when the seed or the grader's files cannot be prepared; whatever the grader does is in the result.
    """
    copy_grader_files(config, folder / "grader")
    try:
        commit = hub.create(folder / "hub.git", config.seed)
        hub.checkout(folder / "hub.git", commit, folder / "checkout")
    except GitError as error:
        raise CoralError(str(error), error.hint) from error
    place = GradePlace(
        workspace=folder / "checkout", private=folder / "grader", folder=folder, attempt=0, kind=Kind.BASELINE
    )
    command = kind_of(config.grader).command(config.grader, place)
    prepare_folder(command)
    return run_grader(command, folder, config.grader.timeout if timeout is None else timeout)


def run_grader(command: GradeCommand, folder: Path, timeout: float) -> GradeResult:
    """Run a grader and wait for it, at most `timeout` seconds; its output stays in `folder`."""
    stdout, stderr = folder / "stdout", folder / "stderr"
    tag = f"grade-{os.getpid()}-{folder.name}"
    program = process.Program(
        argv=command.argv,
        env={**environment.base(), **command.env},
        cwd=command.cwd,
        stdin=Path(os.devnull),
        stdout=stdout,
        stderr=stderr,
        tag=tag,
    )
    try:
        held = process.start(program)
    except OSError as error:
        raise CoralError(f"cannot start the grader: {error}", "see grader in task.yaml") from error
    code = _finish(held, tag, timeout)
    return read_result(command.result, code, stdout, stderr, timed_out=code is None)


def _finish(held: process.HeldChild, tag: str, timeout: float) -> int | None:
    """The exit code, None for a timeout. However this ends, everything the grader started ends with it."""
    try:
        held.release()
        with received_signals.let_through():
            code = process.wait(held.child, timeout)
    finally:
        process.kill(held.identity, tag)
        held.child.wait(SETTLE)
    return code
