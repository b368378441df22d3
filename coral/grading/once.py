"""Grades once and waits for the result: for `coral validate`, and for the seed before a run begins.

The seed is graded like every attempt: the same copies of the grader's files, the same checkout, the same command.
Afterwards no process that was started is left.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from attempts.record import Kind
from coral.cluster.keeper import BridgeKeeper
from coral.config.load import Config
from coral.errors import CoralError
from coral.fleet.events import Outcome
from coral.grading.checkout import make_workspace
from coral.grading.command import GradeCommand, GradePlace, prepare_folder
from coral.grading.kinds import copy_grader_files, kind_of
from coral.grading.limits import CHECK_SECONDS, GradeCheck, pause_after
from coral.grading.result import GradeResult, read_result
from coral.grading.sandbox import sandbox_of
from coral.grading.venv import make
from coral.processes import cgroup, namespaces, process, received_signals
from coral.processes.launch_tags import tag_of_one
from coral.processes.prestarted import PrestartedInterpreter
from coral.processes.process_tree import Identity
from workspace import hub
from workspace.errors import GitError


def grade_once(
    config: Config,
    folder: Path,
    timeout: float | None = None,
    kind: Kind = Kind.BASELINE,
    venv: Path | None = None,
) -> GradeResult:
    """Grade the seed in `folder`, which is empty and private to the caller. `timeout`: in seconds; None: the task's.
    `venv`: the grader's environment, if `grading.venv` has made it for several grades.

    CoralError when the seed or the grader's files cannot be prepared; a grader's failure is in the result.
    """
    copy_grader_files(config.grader, config.folder, folder / "grader")
    venv = venv or make(config, folder / "venvs")
    private, runs = folder / "grader", Path(config.workspace.runs)
    place = GradePlace(
        workspace=folder / "checkout",
        private=private,
        folder=folder,
        attempt=0,
        kind=kind,
        timeout=config.grader.timeout,
        sandbox=sandbox_of(config, config.grader, private=private, folder=folder, runs=runs, root=folder, venv=venv),
        venv=venv,
        task=(config.task.name, config.task.description),
    )
    command = kind_of(config.grader).command(config.grader, place)
    try:
        make_workspace(command, folder / "hub.git", hub.create(folder / "hub.git", config.seed))
    except GitError as error:
        raise CoralError(str(error), error.hint) from error
    prepare_folder(command)
    return run_grader(command, config.grader.timeout if timeout is None else timeout)


def run_grader(command: GradeCommand, timeout: float, interpreter: PrestartedInterpreter | None = None) -> GradeResult:
    """Run a grader, in the interpreter if one was started for it, and wait at most `timeout` seconds. All that the
    grader started ends with it."""
    with _bridge(command):
        return _run_grader(command, timeout + command.wait, interpreter)


@contextlib.contextmanager
def _bridge(command: GradeCommand) -> Iterator[None]:
    """Run the bridge to the cluster meanwhile, if the grader runs on one."""
    if command.bridge is None:
        yield
        return
    keeper = BridgeKeeper(command.bridge, *command.cluster)
    try:
        yield
    finally:
        keeper.close()


def _run_grader(command: GradeCommand, timeout: float, interpreter: PrestartedInterpreter | None) -> GradeResult:
    try:
        interpreter = interpreter or _prestarted(command)
        program = replace(command.program(interpreter.tag), group=interpreter.group)
        held = interpreter.hold(program)
    except OSError as error:
        raise CoralError(f"cannot start the grader: {error}", "see grader in task.yaml") from error
    try:
        held.release()
        with received_signals.let_through():
            code, exceeded = _wait(command, held.identity, program.tag, held.child, timeout)
        if code is not None and held.identity.sealed:
            code = namespaces.code_of_program(code)
    finally:
        process.kill_and_wait(held.identity, program.tag)
        held.child.wait(process.KILL_SECONDS)
        cgroup.remove(program.group)
    result = read_result(command.folder, code, held.channel, is_remote=command.bridge is not None)
    return replace(result, outcome=Outcome.FAILED, score=None, reason=exceeded) if exceeded else result


def _wait(
    command: GradeCommand, identity: Identity, tag: str, child: "subprocess.Popen[bytes]", timeout: float
) -> tuple[int | None, str]:
    """Return the exit code of the grader, None if it did not end by itself; and the reason, if it was over a limit."""
    check = GradeCheck(command.limits, identity, tag, command.folder)
    end, pause = time.monotonic() + timeout, CHECK_SECONDS
    while (left := end - time.monotonic()) > 0:
        if (code := process.wait(child, min(left, pause))) is not None:
            return code, ""
        began = time.monotonic()
        if exceeded := check.exceeded():
            return None, exceeded
        pause = pause_after(time.monotonic() - began)
    return None, ""


def _prestarted(command: GradeCommand) -> PrestartedInterpreter:
    name = f"grade-{os.getpid()}-{command.folder.name}"
    return command.prestart(tag_of_one(name), cgroup.Groups(name).make("grade"))
