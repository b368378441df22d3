"""The part of making a run that grades its seed and furnishes its agents' clones."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time

from attempts.progress import Progress, judge
from attempts.record import Attempt, Kind
from coral.agent_setup.clone import create_knowledge, set_up_clone
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.errors import CoralError
from coral.fleet.actions import Grade
from coral.grading.checkout import prepare_grade
from coral.grading.once import run_grader
from coral.grading.result import GradeResult
from coral.processes import environment, received_signals
from coral.records.standings import Standings
from coral.runs.rules import rules_of
from coral.supervisor.clock import wall
from coral.supervisor.context import RunContext
from workspace import hub
from workspace.layout import Layout

SHOWN_OF_SETUP = 2000  # bytes of what a command said that failed


def grade_seed(layout: Layout, config: Config, commit: str) -> Attempt:
    """The baseline, attempt #0. A grader that cannot grade the seed will grade nothing."""
    started = wall()
    command = prepare_grade(layout, config.grader, Grade(number=0, launch=1, commit=commit, kind=Kind.BASELINE))
    began = time.monotonic()
    result = run_grader(command, config.grader.timeout)
    seconds = time.monotonic() - began
    if result.score is None:
        raise CoralError(f"cannot grade the seed: {result.reason}", _shown(result))
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


def context_of(layout: Layout, config: Config, roster: Roster, baseline: Attempt) -> RunContext:
    """What the agents' instructions are written from, in a run that has its baseline and nothing else."""
    rules = rules_of(config, roster, baseline.commit)
    return RunContext(layout, config, rules, Standings(rules.direction, [baseline]), roster)


def furnish(run_context: RunContext, agent: str, commit: str) -> None:
    """Make all that an agent finds beside the files of its clone, and run the task's own commands there."""
    layout = run_context.layout
    for folder in (layout.attempts / "inbox" / agent, layout.attempts / "replies" / agent):
        folder.mkdir(parents=True)
    create_knowledge(run_context, agent)
    set_up_clone(run_context, agent, commit)
    for command in run_context.config.workspace.setup:
        _set_up(layout, agent, command)


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
            with received_signals.let_through():
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


def _shown(result: GradeResult) -> str:
    output = "\n".join(each for each in (result.feedback, result.output) if each.strip()).strip()
    return f"the grader's own output:{os.linesep}{output}" if output else "the grader printed nothing"
