"""The roster of a run: its agents in order, the assignment of each, and the runtime that drives it."""

import copy
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from attempts.files import expanded
from coral.config.cluster import PlaceSection
from coral.config.load import Config
from coral.config.model import AgentsSection, Assignment
from coral.errors import CoralError
from coral.fleet.members import Member
from coral.runtimes.model import Runtime
from coral.runtimes.registry import RUNTIMES, find, problems
from workspace.layout import SHARED

ANY_NODE = PlaceSection()


def assignments_of(config: Config) -> tuple[Assignment, ...]:
    """Return the assignments of a mixed fleet; else the section `agents` as the only one."""
    return config.agents.assignments or (config.agents,)


def members_of(config: Config) -> dict[str, Assignment]:
    """Return the assignment of each agent by its name; names are `agent-1` and on, one assignment after the other."""
    agents = (assignment for assignment in assignments_of(config) for _ in range(assignment.count))
    return {f"agent-{number}": assignment for number, assignment in enumerate(agents, 1)}


def place_of(agents: AgentsSection, assignment: Assignment) -> PlaceSection | None:
    """Return what agents of this assignment need of a node; None if they run on this machine."""
    if assignment.place is not None:
        return assignment.place
    return ANY_NODE if agents.executor == "ray" else None


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that agents find in their clone, as a symbolic link at the path `at`."""

    source: Path
    at: str


def mounts_of(config: Config, assignment: Assignment) -> list[Mount]:
    named = assignment.mounts.items()
    return [Mount(config.folder / expanded(source), str(PurePosixPath(at))) for at, source in named]


def check_same_programs(before: Config, after: Config, known: Collection[str], members: Collection[str] = ()) -> None:
    """Raise CoralError if the change of a task would give an agent of a run another program, which could not resume the
    agent's session. `known`: the agents of the run, including those that earlier changes took away. `members`: those
    that the operator has added or moved, which keep their programs whatever the task says.

    Agents are added and taken away at the end. Those without an assignment have the program of the last one.
    """
    old, new = members_of(before), members_of(after)
    programs = {name: assignment.runtime for name, assignment in new.items()}
    last = programs[list(new)[-1]]
    was_last = list(old.values())[-1].runtime
    for name in sorted({*old, *known}.difference(members)):
        was = old[name].runtime if name in old else was_last
        if (is_now := programs.get(name, last)) != was:
            of_one = f"the program of {name} from {was} to {is_now}"
            change = of_one if name in new else f"the number of agents of {was}"
            hint = "agents are numbered one assignment after the other: add agents at the end, and take away only there"
            raise CoralError(f"cannot change {change}", hint)


def seed_conflict(files: Path, runtime: Runtime) -> str:
    """Return why an agent of this runtime cannot work on a seed with these files; "" if it can."""
    if os.path.lexists(files / SHARED):
        return f"it has {SHARED}, where agents find the shared knowledge: give it another name"
    if (files / runtime.instruction_file).is_dir():
        return f"{runtime.instruction_file} is a folder, and {runtime.name} reads a file of that name: rename it"
    return ""


def account_of(assignment: Assignment, runtime: Runtime) -> str:
    """Return the name of the account whose usage the agents share with all others of that account; "" if they use
    none."""
    return assignment.account or runtime.account


def may_use_models(config: Config) -> bool:
    """Return whether agents of the task could use a model. Agents of a runtime of the operator's own could: it is not
    asked, since that would run its code."""
    return any(_may_use_a_model(assignment) for assignment in assignments_of(config))


def _may_use_a_model(assignment: Assignment) -> bool:
    if assignment.runtime not in RUNTIMES:
        return True
    try:
        return bool(account_of(assignment, find(assignment.runtime, assignment.options)))
    except CoralError:
        return True


def is_paid(assignment: Assignment, runtime: Runtime) -> bool:
    """Return whether somebody pays for what the agents use, as far as is known: also where the task states prices."""
    return runtime.costs_money or assignment.prices is not None


def assignment_of(member: Member) -> Assignment:
    """Return the assignment of a member. CoralError if its keys are invalid, because another version has written
    them."""
    given = {**member.rest, "runtime": member.runtime, "model": member.model, "role": member.role}
    try:
        return Assignment.model_validate(given)
    except ValueError as error:
        raise CoralError(f"cannot read how an agent is driven: {error}", "see the release notes of Coral") from error


class Roster:
    """The agents of a run, each with its assignment and runtime. `assignments`: the task's own, each with its runtime.
    CoralError if there is no runtime of such a name."""

    def __init__(self, config: Config, members: Mapping[str, Member] = MappingProxyType({})) -> None:
        """`members`: the agents that the operator has added or moved since the run began."""
        self._members = members_of(config)
        self.assignments = [(part, find(part.runtime, part.options)) for part in assignments_of(config)]
        runtimes = (runtime for assignment, runtime in self.assignments for _ in range(assignment.count))
        self._runtimes = dict(zip(self._members, runtimes, strict=True))
        for agent, member in members.items():
            self.set(agent, member)

    def set(self, agent: str, member: Member) -> None:
        """Drive an agent as `member` says from now on. CoralError if there is no such runtime."""
        assignment = assignment_of(member)
        self._runtimes[agent] = find(assignment.runtime, assignment.options)
        self._members[agent] = assignment

    def with_member(self, agent: str, member: Member) -> "Roster":
        """Return a copy of the roster in which this agent is driven as `member` says."""
        changed = copy.copy(self)
        changed._members, changed._runtimes = dict(self._members), dict(self._runtimes)
        changed.set(agent, member)
        return changed

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def assignment(self, agent: str) -> Assignment:
        """Return the assignment of an agent; for an agent that the task has no more, that of the last one."""
        return self._members.get(agent) or self.assignments[-1][0]

    def runtime(self, agent: str) -> Runtime:
        return self._runtimes.get(agent) or self.assignments[-1][1]

    def account(self, agent: str) -> str:
        return account_of(self.assignment(agent), self.runtime(agent))

    def check(self) -> None:
        """Raise CoralError, which says what would keep an agent from starting on this machine."""
        for assignment, runtime in self.assignments:
            if found := problems(runtime, assignment.model):
                hint = "see runtime and options under agents in task.yaml"
                raise CoralError(f"cannot start {assignment.runtime}: {found[0]}", hint)
            if missing := runtime.missing_login():
                raise CoralError(f"cannot start {assignment.runtime}: {missing}", runtime.how_to_log_in)
