"""Prepares agents that the operator adds to a running fleet, or moves: checks whether they can be driven as wanted, and
writes what they need into their workspaces."""

from collections.abc import Iterator
from dataclasses import replace

from coral.agent_setup.clone import change_program, renew_instructions, write_role
from coral.agent_setup.own_user import sealed_for
from coral.agent_setup.prices import check_enforceable, check_unlimited, prices_of
from coral.agent_setup.roster import Roster, account_of, assignment_of, assignments_of
from coral.config.load import Config, load_frozen
from coral.config.model import MAX_AGENTS, Assignment
from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.members import Member, WantedMember
from coral.journal import fold
from coral.runs.prepare import make_workspace
from coral.runtimes.registry import find, with_paths
from coral.supervisor.context import RunContext
from workspace.layout import Layout, folder_of_runs

# Keys of an assignment that a member has by other names, or that are about the start of a run.
_ELSEWHERE = {"runtime", "model", "role", "role_file", "count", "research"}


def wanted_assignment(config: Config, wanted: WantedMember, base: Assignment | None) -> Assignment:
    """Return the assignment that results from `wanted`. `base`: how the agent is driven until then; None for a new one.
    For another runtime, the other keys are those of the task's agents of that runtime, and the role stays."""
    of_task = assignments_of(config)
    if base is None or wanted.runtime not in (None, base.runtime):
        runtime = wanted.runtime or of_task[0].runtime
        found = next((part for part in of_task if part.runtime == runtime), Assignment(runtime=runtime))
        role = found.role if base is None else base.role
    else:
        found, role = base, base.role
    given = {name: getattr(found, name) for name in Assignment.model_fields if name not in _ELSEWHERE}
    if wanted.options is not None:
        given["options"] = with_paths(found.runtime, dict(wanted.options), config.folder)
    return Assignment(
        runtime=found.runtime,
        model=found.model if wanted.model is None else wanted.model,
        role=role if wanted.role is None else wanted.role,
        **given,
    )


def check(config: Config, assignment: Assignment, verb: str) -> None:
    """Raise CoralError if an agent of this run cannot be driven by this assignment. `verb`: what the operator has asked
    for."""
    alone = _with_only(config, assignment)
    roster = Roster(alone)
    roster.check()
    check_unlimited(alone, verb)
    check_enforceable(alone, roster, verb)


def frozen(layout: Layout) -> tuple[Config, Roster]:
    """Return a run's frozen task, and its roster with the agents as they are driven now."""
    config = load_frozen(layout.task_file)
    return config, Roster(config, fold(layout.journal).fleet.run.members)


def check_of_run(layout: Layout, agent: str | None, wanted: WantedMember) -> None:
    """Raise CoralError if the agent cannot be driven as wanted on this machine. For the command line: the supervisor
    would find that out later, when nobody waits for its answer. `agent`: None for a new one."""
    config, roster = frozen(layout)
    base = None if agent is None else roster.assignment(agent)
    check(config, wanted_assignment(config, wanted, base), "add" if agent is None else "move")


def prepare(run_context: RunContext, action: do.PrepareAgent) -> Iterator[on.Event]:
    """Prepare an agent, in a worker thread; yields `AgentPrepared`. CoralError, GitError or OSError if that is not
    possible."""
    agent, roster, config = action.agent, run_context.roster, run_context.config
    before = None if action.is_new else roster.assignment(agent)
    assignment = wanted_assignment(config, action.wanted, assignment_of(action.base) if action.base else before)
    check(config, assignment, "add" if before is None else "move")
    alone = _with_only(config, assignment)
    sealed_for(alone, Roster(alone), folder_of_runs(run_context.layout))
    member = _member_of(assignment)
    changed = replace(run_context, roster=roster.with_member(agent, member))
    if before is None:
        _check_size(roster)
        make_workspace(changed, agent, run_context.rules.seed_commit)
        yield on.AgentPrepared(agent=agent, member=member)
        return
    was = roster.runtime(agent)
    if assignment.runtime != before.runtime:
        change_program(changed, agent, was)
    else:
        renew_instructions(changed, agent, run_context.rules.seed_commit)
    if assignment.role != before.role:
        write_role(changed, agent)
    yield on.AgentPrepared(agent=agent, member=member, was=_member_of(before))


def _with_only(config: Config, assignment: Assignment) -> Config:
    """Return the task as if it had this assignment alone, so that checks of a whole task can be used for one agent."""
    return replace(config, agents=config.agents.model_copy(update={"assignments": (assignment,)}))


def _member_of(assignment: Assignment) -> Member:
    runtime = find(assignment.runtime, assignment.options)
    rest = assignment.model_dump(mode="json", include=set(Assignment.model_fields) - _ELSEWHERE, exclude_defaults=True)
    return Member(
        runtime=assignment.runtime,
        model=assignment.model,
        role=assignment.role,
        rest=rest,
        account=account_of(assignment, runtime),
        prices=prices_of(assignment),
    )


def _check_size(roster: Roster) -> None:
    if len(list(roster)) >= MAX_AGENTS:
        raise CoralError(f"cannot add an agent: a fleet has {MAX_AGENTS} at most", "start a second run of the task")
