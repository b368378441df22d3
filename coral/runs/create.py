"""Creates a run from a task: its folders, the hub, a clone for each agent, the graded seed.

If a run cannot be created, nothing is left behind. While threads wait for git, the modules of the next step are
imported, which takes as long.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from attempts.store import Store
from coral.agent_setup.own_user import sealed_for
from coral.agent_setup.prices import check_enforceable
from coral.agent_setup.remote import check_seal
from coral.agent_setup.roster import Roster
from coral.config.load import Config, checklist
from coral.errors import CoralError
from coral.grading.checkout import sandbox_of_attempt
from coral.grading.kinds import copy_grader_files, prestart
from coral.grading.venv import make as make_venv, note, venv_of
from coral.processes import cgroup, received_signals
from coral.processes.launch_tags import tag_of_one
from coral.processes.prestarted import PrestartedInterpreter
from coral.supervisor.workers import WorkerPool
from workspace import git, hub, owner
from workspace.cancellation import CancelToken
from workspace.disk import disk_problem_of, is_disk_problem
from workspace.layout import SHARED, Layout, create, new_run
from workspace.seal import Level

Say = Callable[[str], None]
Begin = Callable[..., Future[Any]]
T = TypeVar("T")


def create_run(config: Config, runs: Path, say: Say, meanwhile: Callable[[], object] = lambda: None) -> Layout:
    """Create a run in the folder `runs`. `say` is called with each step; a thread calls `meanwhile` while the seed is
    graded. CoralError if the run cannot be created."""
    roster = Roster(config)
    roster.check()
    check_seal(config)
    level, config = sealed_for(config, roster, runs)
    if problem := disk_problem_of(runs):
        hint = "free some space, or see workspace.runs in task.yaml"
        raise CoralError(f"cannot make a run in {runs}: {problem}", hint)
    check_enforceable(config, roster)
    git.waiting = received_signals.let_through
    with received_signals.hold() as held:
        held.check()
        try:
            layout = new_run(runs, config.slug)
        except OSError as error:
            hint = "see workspace.runs in task.yaml"
            raise CoralError(f"cannot make a run in {runs}: {error.strerror}", hint) from error
        try:
            _fill(layout, config, roster, level, say, meanwhile)
        except BaseException as error:
            remove_run(layout)
            if not (full := is_disk_problem(error)) and not isinstance(error, OSError):
                raise
            hint = f"{'free some space; ' if full else ''}nothing was left behind"
            raise CoralError(f"cannot make the run: {error}", hint) from error
    return layout


def remove_run(layout: Layout) -> None:
    """Remove a run that never began, and the folders that were created for it alone."""
    shutil.rmtree(layout.root, ignore_errors=True)
    for folder in (layout.root.parent, layout.root.parent.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _fill(
    layout: Layout, config: Config, roster: Roster, level: Level, say: Say, meanwhile: Callable[[], object]
) -> None:
    with received_signals.let_through():  # these steps create only files, which are removed with the run
        create(layout, tuple(roster))
        layout.task_file.write_text(config.text, encoding="utf-8")
        shutil.copyfile(config.path, layout.task_source)
        copy_grader_files(config.grader, config.folder, layout.grader)
        if config.holdout_grader is not None:
            copy_grader_files(config.holdout_grader, config.folder, layout.holdout)
        if (text := checklist(config)) is not None:
            layout.checklist.write_text(text, encoding="utf-8")
    venv = make_venv(config, layout.venvs, say)
    for private in (layout.grader, layout.holdout):
        note(private, venv)
    owner.divide_for(level, layout, tuple(roster), config.workspace.share)
    say("taking in the seed")
    with _threads() as begin, _interpreter(layout, config) as interpreter:
        git.load()
        taken_in = begin(hub.create, layout.hub, config.seed)
        from coral.runs.prepare import context_of, grade_seed, prepare_agent

        commit: str = _result(taken_in)
        layout.seed_commit.write_text(commit)
        shutil.copyfile(layout.hub / "config", layout.hub_config)
        say("grading the seed")
        begin(meanwhile)
        clones = {}
        for agent in roster:
            exclude = [roster.runtime(agent).instruction_file, SHARED]
            clones[agent] = begin(hub.clone, layout.hub, layout.clone(agent), agent, commit, exclude)
        baseline = grade_seed(layout, config, commit, interpreter)
        # In a thread, because its fsync also writes the files of the clones.
        published = begin(Store(layout.attempts).publish, baseline)
        run_context = context_of(layout, config, roster, baseline)
        for agent, clone in clones.items():
            say(f"preparing {agent}")
            _result(clone)
            prepare_agent(run_context, agent, commit)
        _result(published)


@contextlib.contextmanager
def _threads() -> Iterator[Begin]:
    """Yield a function that gives work to a thread. When the context ends, no thread is at work any more."""
    pool, token = WorkerPool(), CancelToken()
    try:
        yield partial(pool.submit_cancellable, token)
    finally:
        token.cancel()
        pool.finish(0.0)


@contextlib.contextmanager
def _interpreter(layout: Layout, config: Config) -> Iterator[PrestartedInterpreter | None]:
    """Yield the prestarted interpreter that grades the seed; None where the grader uses none."""
    name = f"grade-{os.getpid()}-0"
    group, venv = cgroup.Groups(name).make("grade"), venv_of(layout.grader)
    interpreter = prestart(config.grader, tag_of_one(name), group, sandbox_of_attempt(layout, config, 0, venv), venv)
    try:
        yield interpreter
    finally:
        if interpreter is not None:
            interpreter.close()


def _result(work: Future[T]) -> T:
    """Return the result of a thread's work; raises its exception. An interrupt ends the wait."""
    over: SimpleQueue[Future[T]] = SimpleQueue()
    work.add_done_callback(over.put)
    with received_signals.let_through():
        # Not work.result(): what interrupts that can leave its lock taken, and the thread waits for it for ever.
        over.get()
    return work.result()
