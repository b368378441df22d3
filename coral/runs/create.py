"""From a task to a run that can be supervised: its folders, the hub, a clone per agent, the graded seed.

A run that cannot be made leaves nothing behind. While threads wait for git, what the next step needs is imported, which
takes as long.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attempts.store import Store
from coral.agent_setup.prices import unenforceable_budgets
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.errors import CoralError
from coral.grading.prepare import copy_grader_files as prepare_grader
from coral.processes import received_signals
from coral.supervisor.lock import holder as lock_holder
from coral.supervisor.workers import WorkerPool
from workspace import git, hub
from workspace.cancellation import CancelToken
from workspace.clone_overlay import SHARED
from workspace.disk import disk_problem_of, is_disk_problem
from workspace.layout import Layout, create, new_run

Say = Callable[[str], None]
Begin = Callable[..., Future[Any]]
T = TypeVar("T")


def prepare(config: Config, runs: Path, say: Say, meanwhile: Callable[[], object] = lambda: None) -> Layout:
    """Make a run of a task in the folder `runs`; `say` is told each step, and `meanwhile` is what else a thread may do.

    CoralError where that is not possible.
    """
    roster = Roster(config)
    roster.check()
    if lacking := disk_problem_of(runs):
        raise CoralError(
            f"cannot make a run in {runs}: {lacking}", "free some space, or see workspace.runs in task.yaml"
        )
    for assignment, runtime in roster.assignments:
        if budgets := unenforceable_budgets(config, assignment, runtime):
            raise CoralError(f"cannot start: {budgets[0]}", "leave that budget out, or limit attempts or hours")
    git.waiting = received_signals.let_through
    with received_signals.hold() as held:
        held.check()
        try:
            layout = new_run(runs, config.slug)
        except OSError as error:
            hint = "see workspace.runs in task.yaml"
            raise CoralError(f"cannot make a run in {runs}: {error.strerror}", hint) from error
        try:
            _furnish(layout, config, roster, say, meanwhile)
        except BaseException as error:
            remove(layout)
            if is_disk_problem(error):
                raise CoralError(f"cannot make the run: {error}", "free some space; nothing was left behind") from error
            if isinstance(error, OSError):
                raise CoralError(f"cannot make the run: {error}", "nothing was left behind") from error
            raise
    return layout


def remove(layout: Layout) -> None:
    """A run that never began, with the folders that were made for it alone."""
    shutil.rmtree(layout.root, ignore_errors=True)
    for folder in (layout.root.parent, layout.root.parent.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def holder(layout: Layout) -> int | None:
    """The pid of the supervisor of this run; None if nobody supervises it."""
    return lock_holder(layout.lock)


def _furnish(layout: Layout, config: Config, roster: Roster, say: Say, meanwhile: Callable[[], object]) -> None:
    with received_signals.let_through():  # nothing but files, which go with the run
        create(layout, tuple(roster))
        layout.task_file.write_text(config.text, encoding="utf-8")
        prepare_grader(config, layout.grader)
    say("taking in the seed")
    git.load()
    with _threads() as begin:
        taken_in = begin(hub.create, layout.hub, config.seed)
        from coral.runs.furnish import context_of, furnish, grade_seed

        commit: str = _result(taken_in)
        (layout.private / "seed").write_text(commit)
        say("grading the seed")
        begin(meanwhile)
        clones = {agent: _begin_clone(begin, layout, roster, agent, commit) for agent in roster}
        baseline = grade_seed(layout, config, commit)
        # In a thread: what was written for the clones goes to the disk with it.
        published = begin(Store(layout.attempts).publish, baseline)
        run_context = context_of(layout, config, roster, baseline)
        for agent, clone in clones.items():
            say(f"preparing {agent}")
            _result(clone)
            furnish(run_context, agent, commit)
        _result(published)


@contextlib.contextmanager
def _threads() -> Iterator[Begin]:
    """A function that has a thread begin a piece of work. When this is left, no thread is at work any more."""
    pool, token = WorkerPool(), CancelToken()
    try:
        yield partial(pool.submit_cancellable, token)
    finally:
        token.cancel()
        pool.finish(0.0)


def _begin_clone(begin: Begin, layout: Layout, roster: Roster, agent: str, commit: str) -> Future[None]:
    exclude = [roster.runtime(agent).instruction_file, SHARED]
    return begin(hub.clone, layout.hub, layout.clone(agent), agent, commit, exclude)


def _result(work: Future[T]) -> T:
    """What a thread has done, or its exception; an interrupt ends the wait."""
    with received_signals.let_through():
        return work.result()
