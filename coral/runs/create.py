"""From a task to a run that can be supervised: its folders, the hub, a clone per agent, the graded seed.

A run that cannot be made leaves nothing behind.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from attempts.progress import Progress, judge
from attempts.record import Attempt, Kind
from attempts.store import Store
from coral.agent_setup.clone import create_knowledge, set_up_clone
from coral.agent_setup.prices import unenforceable_budgets
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.errors import CoralError
from coral.fleet.actions import Grade
from coral.grading.checkout import make_ready, tidy
from coral.grading.once import run as run_grader
from coral.grading.prepare import prepare as prepare_grader
from coral.grading.result import GradeResult
from coral.processes import environment, signal_handlers
from coral.records.standings import Standings
from coral.runs.rules import rules_of
from coral.supervisor.clock import wall
from coral.supervisor.context import RunContext
from coral.supervisor.lock import holder as lock_holder
from coral.supervisor.workers import WorkerPool
from workspace import git, hub
from workspace.cancellation import CancelToken
from workspace.disk import disk_problem_of, is_disk_problem
from workspace.layout import Layout, create, new_run

SHOWN_OF_SETUP = 2000  # bytes of what a command said that failed
Say = Callable[[str], None]


def prepare(config: Config, runs: Path, say: Say) -> Layout:
    """Make a run of a task in the folder `runs`; `say` is told each step. CoralError where that is not possible."""
    roster = Roster(config)
    roster.check()
    if lacking := disk_problem_of(runs):
        raise CoralError(
            f"cannot make a run in {runs}: {lacking}", "free some space, or see workspace.runs in task.yaml"
        )
    for assignment, runtime in roster.assignments:
        if budgets := unenforceable_budgets(config, assignment, runtime):
            raise CoralError(f"cannot start: {budgets[0]}", "leave that budget out, or limit attempts or hours")
    git.waiting = signal_handlers.let_through
    with signal_handlers.held() as gate:
        gate.check()
        try:
            layout = new_run(runs, config.slug)
        except OSError as error:
            hint = "see workspace.runs in task.yaml"
            raise CoralError(f"cannot make a run in {runs}: {error.strerror}", hint) from error
        try:
            _furnish(layout, config, roster, say)
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


def _furnish(layout: Layout, config: Config, roster: Roster, say: Say) -> None:
    with signal_handlers.let_through():  # nothing but files, which go with the run
        create(layout, tuple(roster))
        layout.task_file.write_text(config.text, encoding="utf-8")
        prepare_grader(config, layout.grader)
    say("taking in the seed")
    commit = hub.create(layout.hub, config.seed)
    (layout.private / "seed").write_text(commit)
    with _clones(layout, roster, commit) as clones:
        say("grading the seed")
        baseline = _grade_seed(layout, config, commit)
        Store(layout.attempts).publish(baseline)
        rules = rules_of(config, roster, commit)
        run_context = RunContext(layout, config, rules, Standings(rules.direction, [baseline]), roster)
        for agent, clone in clones.items():
            say(f"preparing {agent}")
            for folder in (layout.attempts / "inbox" / agent, layout.attempts / "replies" / agent):
                folder.mkdir(parents=True)
            create_knowledge(run_context, agent)
            with signal_handlers.let_through():
                clone.result()
            set_up_clone(run_context, agent, commit)
            for command in config.workspace.setup:
                _set_up(layout, agent, command)


@contextlib.contextmanager
def _clones(layout: Layout, roster: Roster, commit: str) -> Iterator[dict[str, Future[None]]]:
    """The clones of the agents, which are made by threads. When this is left, no thread is at work any more."""
    pool, token = WorkerPool(), CancelToken()

    def begin(agent: str) -> Future[None]:
        exclude = [f"/{roster.runtime(agent).instruction_file}"]
        return pool.submit_cancellable(token, hub.clone, layout.hub, layout.clone(agent), agent, commit, exclude)

    try:
        yield {agent: begin(agent) for agent in roster}
    finally:
        token.cancel()
        pool.finish(0.0)


def _set_up(layout: Layout, agent: str, command: str) -> None:
    """What it leaves running ends with it: nobody would know of it later. Its words go to a file, for whoever is left
    would hold a pipe open."""
    with tempfile.TemporaryFile() as said:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=layout.clone(agent),
            env=environment.of_agent(layout, agent),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            with signal_handlers.let_through():
                if hasattr(os, "waitid"):
                    # Looked at, not reaped: until its group is gone, no other process has its number.
                    os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)
                else:  # macOS, before Python 3.13
                    shell.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        if shell.returncode != 0:
            said.seek(max(said.tell() - SHOWN_OF_SETUP, 0))
            shown = said.read().decode(errors="replace").strip()
            raise CoralError(f"cannot set up {agent}: `{command}` ended with exit code {shell.returncode}", shown)


def _grade_seed(layout: Layout, config: Config, commit: str) -> Attempt:
    """The baseline, attempt #0. A grader that cannot grade the seed will grade nothing."""
    started = wall()
    command = make_ready(layout, config.grader, Grade(number=0, launch=1, commit=commit, kind=Kind.BASELINE))
    began = time.monotonic()
    result = run_grader(command, layout.grading(0), config.grader.timeout)
    seconds = time.monotonic() - began
    if result.score is None:
        raise CoralError(f"cannot grade the seed: {result.reason}", _shown(result))
    tidy(layout, 0)
    return Attempt(
        number=0,
        agent="",
        kind=Kind.BASELINE,
        commit=commit,
        tree=hub.tree_of(layout.hub, commit),
        parent="",
        title="the seed",
        submission="",
        submitted_at=started,
        published_at=wall(),
        order=0,
        verdict=judge(Progress(), result.score, config.grader.direction, config.grader.noise),
        score=result.score,
        feedback=result.feedback,
        metrics=result.metrics,
        seconds=round(seconds, 3),
    )


def _shown(result: GradeResult) -> str:
    output = "\n".join(each for each in (result.feedback, result.output) if each.strip()).strip()
    return f"the grader's own output:{os.linesep}{output}" if output else "the grader printed nothing"
