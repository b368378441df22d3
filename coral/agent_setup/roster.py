"""The roster of a run: its agents in order, the assignment of each, and the runtime that drives it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coral.config.load import Config
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.runtimes.model import Runtime
from coral.runtimes.registry import find, problems


def assignments_of(config: Config) -> tuple[Assignment, ...]:
    """The assignments of a mixed fleet; else the section `agents` as the only one."""
    return config.agents.assignments or (config.agents,)


def members_of(config: Config) -> dict[str, Assignment]:
    """The assignment of each agent by its name: `agent-1` and on, one assignment after the other."""
    agents = (assignment for assignment in assignments_of(config) for _ in range(assignment.count))
    return {f"agent-{number}": assignment for number, assignment in enumerate(agents, 1)}


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that agents find in their clone, as a symbolic link at the path `at`."""

    source: Path
    at: str


def mounts_of(config: Config, assignment: Assignment) -> list[Mount]:
    named = assignment.mounts.items()
    return [Mount(config.folder / Path(source).expanduser(), str(PurePosixPath(at))) for at, source in named]


def check_same_agents(before: Config, after: Config) -> None:
    """CoralError if a change of its task would add agents to a run or remove some: it cannot change them."""
    if list(members_of(before)) != list(members_of(after)):
        hint = "`coral start` makes a run with another number of agents"
        raise CoralError("cannot change the number of agents of a run", hint)


def account_of(assignment: Assignment, runtime: Runtime) -> str:
    """Whose usage the agents spend, shared with all others of the same account; empty if they spend nobody's."""
    return assignment.account or runtime.account


class Roster:
    """`assignments`: each one with its runtime. CoralError if there is no runtime of that name."""

    def __init__(self, config: Config) -> None:
        self._members = members_of(config)
        self.assignments = [(part, find(part.runtime, part.options)) for part in assignments_of(config)]
        runtimes = (runtime for assignment, runtime in self.assignments for _ in range(assignment.count))
        self._runtimes = dict(zip(self._members, runtimes, strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def assignment(self, agent: str) -> Assignment:
        return self._members[agent]

    def runtime(self, agent: str) -> Runtime:
        return self._runtimes[agent]

    def account(self, agent: str) -> str:
        return account_of(self._members[agent], self._runtimes[agent])

    def check(self) -> None:
        """CoralError says what would keep an agent from starting on this machine."""
        for assignment, runtime in self.assignments:
            if found := problems(runtime, assignment.model):
                hint = "see runtime and options under agents in task.yaml"
                raise CoralError(f"cannot start {assignment.runtime}: {found[0]}", hint)
