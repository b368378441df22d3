"""Who works, and what drives each: the agents of a task in order, every one with its part of the section `agents`."""

from collections.abc import Iterator

from coral.config.agents import Driven
from coral.config.load import Config
from coral.errors import CoralError
from coral.runtimes.model import Runtime
from coral.runtimes.registry import find, problems


def parts(config: Config) -> tuple[Driven, ...]:
    """The fleet as assignments, be it one."""
    return config.agents.assignments or (config.agents,)


def members(config: Config) -> dict[str, Driven]:
    """The agents by name, `agent-1` first, those of an assignment one after the other."""
    agents = (part for part in parts(config) for _ in range(part.count))
    return {f"agent-{number}": part for number, part in enumerate(agents, 1)}


def must_stay(before: Config, after: Config) -> None:
    """The agents of a run are there, or are not: CoralError where a change of its task would add or drop some."""
    if list(members(before)) != list(members(after)):
        raise CoralError(
            "cannot change the number of agents of a run", "`coral start` makes a run with another number of agents"
        )


def account_of(part: Driven, runtime: Runtime) -> str:
    """Whose usage its agents spend, shared with all others of the same account; empty if they spend nobody's."""
    return part.account or runtime.account


class Roster:
    """The runtimes of a run's agents: one for each assignment. CoralError where there is none of that name."""

    def __init__(self, config: Config) -> None:
        self._members = members(config)
        self.driven = [(part, find(part.runtime, part.options)) for part in parts(config)]
        runtimes = (runtime for part, runtime in self.driven for _ in range(part.count))
        self._runtimes = dict(zip(self._members, runtimes, strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def part(self, agent: str) -> Driven:
        return self._members[agent]

    def runtime(self, agent: str) -> Runtime:
        return self._runtimes[agent]

    def account(self, agent: str) -> str:
        return account_of(self._members[agent], self._runtimes[agent])

    def must_work(self) -> None:
        """CoralError says what would keep one of them from starting on this machine."""
        for part, runtime in self.driven:
            if found := problems(runtime, part.model):
                hint = "see runtime and options under agents in task.yaml"
                raise CoralError(f"cannot start {part.runtime}: {found[0]}", hint)
