"""The part of creating a run that grades the seed and prepares each agent. `create` imports it while git works."""

import os
import shutil
import time
from pathlib import Path

from attempts.record import Attempt, Kind, Verdict
from attempts.store import Store
from coral.agent_setup.clone import create_knowledge, set_up_clone
from coral.agent_setup.roster import Roster, seed_conflict
from coral.config.load import Config
from coral.config.model import GraderSection
from coral.errors import CoralError
from coral.fleet.actions import CheckOut
from coral.fleet.events import Outcome
from coral.grading.checkout import prepare_grade
from coral.grading.once import run_grader
from coral.grading.result import GradeResult
from coral.grading.venv import venv_of
from coral.journal import fold
from coral.processes import environment
from coral.processes.command import run_command
from coral.processes.prestarted import PrestartedInterpreter
from coral.records.recent import RecentResults
from coral.runs.rules import rules_of
from coral.supervisor.clock import wall
from coral.supervisor.context import RunContext
from workspace import hub
from workspace.layout import SHARED, Layout, folders


def grade_seed(
    layout: Layout,
    config: Config,
    commit: str,
    interpreter: PrestartedInterpreter | None = None,
    *,
    epoch: int = 1,
    files: Path | None = None,
) -> Attempt:
    """Grade the seed; returns the baseline of an epoch. In the first epoch it is attempt #0; the run numbers a later
    one. `files`: see `prepare_grade`. CoralError if the seed has no score, because then no attempt would get one;
    unless the task says that the seed may fail."""
    started = wall()
    check_out = CheckOut(number=0, launch=epoch, commit=commit, kind=Kind.BASELINE)
    command = prepare_grade(layout, config, check_out, venv_of(files or layout.grader), files)
    began = time.monotonic()
    result = run_grader(command, config.grader.timeout, interpreter)
    seconds = time.monotonic() - began
    may_fail = config.grader.seed_may_fail and result.outcome is Outcome.FAILED
    if result.score is None and not may_fail:
        raise CoralError(f"cannot grade the seed: {result.reason}", _shown(result, config.grader))
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
        verdict=Verdict.FAILED if result.score is None else Verdict.NEW_BEST,
        score=result.score,
        reason=result.reason,
        feedback=result.feedback,
        metrics=result.metrics,
        seconds=round(seconds, 3),
        channel=result.channel,
        epoch=epoch,
    )


def context_of(layout: Layout, config: Config, roster: Roster, baseline: Attempt) -> RunContext:
    """Return the context of a run that has its baseline and no other attempt."""
    rules = rules_of(config, roster, baseline.commit)
    return RunContext(layout, config, rules, RecentResults([baseline]), roster)


def prepare_agent(run_context: RunContext, agent: str, commit: str) -> None:
    """Create what an agent finds besides the files of its clone, and run the task's set-up commands there. CoralError
    if the seed or a command does not allow it."""
    layout = run_context.layout
    for folder in (layout.attempts / "inbox" / agent, layout.attempts / "replies" / agent):
        folder.mkdir(parents=True)
    if conflict := seed_conflict(layout.clone(agent), run_context.roster.runtime(agent)):
        raise CoralError(f"cannot use the seed: {conflict}", "see task.seed in task.yaml")
    create_knowledge(run_context, agent)
    set_up_clone(run_context, agent, commit)
    for command in run_context.config.workspace.setup:
        _set_up(run_context, agent, command)


def latest_baseline(layout: Layout) -> Attempt:
    """Return the seed's record of the present epoch."""
    seed = fold(layout.journal).fleet.standing.seed
    return Store(layout.attempts).read(0 if seed is None else seed.number)


def add_agents(layout: Layout, config: Config, baseline: Attempt | None = None) -> None:
    """Prepare the agents that the task has and the run's journal does not know. They begin at the commit of `baseline`,
    by default that of the present epoch."""
    fleet, roster = fold(layout.journal).fleet, Roster(config)
    missing = [agent for agent in roster if agent not in fleet.agents] if fleet.run.opened else []
    if not missing:
        return
    roster.check()
    baseline = baseline or latest_baseline(layout)
    commit = baseline.commit
    run_context = context_of(layout, config, roster, baseline)
    for agent in missing:
        make_workspace(run_context, agent, commit)


def make_workspace(run_context: RunContext, agent: str, commit: str) -> None:
    """Make the folders and the clone of a new agent at this commit, and prepare it. Folders that exist are removed
    first: no agent has worked in them, a supervisor that was killed has left them."""
    layout, exclude = run_context.layout, (run_context.roster.runtime(agent).instruction_file, SHARED)
    for folder in (layout.clone(agent), layout.attempts / "inbox" / agent, layout.attempts / "replies" / agent):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in folders(layout, (agent,)):
        folder.mkdir(parents=True, exist_ok=True)
    hub.clone(layout.hub, layout.clone(agent), agent, commit, exclude)
    prepare_agent(run_context, agent, commit)


def _set_up(run_context: RunContext, agent: str, command: str) -> None:
    """Run a set-up command in an agent's clone."""
    layout = run_context.layout
    env = environment.of_agent(layout, agent, run_context.config.grader.direction)
    code, output = run_command(["/bin/sh", "-c", command], layout.clone(agent), env)
    if code != 0:
        raise CoralError(f"cannot set up {agent}: `{command}` ended with exit code {code}", output)


def _shown(result: GradeResult, grader: GraderSection) -> str:
    output = "\n".join(text for text in (result.feedback, result.output) if text.strip()).strip()
    if output:
        return f"the grader's own output:{os.linesep}{output}"
    if grader.is_remote and result.outcome is Outcome.VOID:  # as where the cluster does not let it begin
        return "the grader printed nothing; `coral doctor` asks its cluster what is wrong there"
    return "the grader printed nothing"
