"""What a run has used - money, tokens and time - in total and by agent."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from coral.api.rows import Rows
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUsage:
    """What one agent has used and brought. Money is in dollars. None: that is not known.

    `attempts`: real ones with any verdict but void. `best`: the median of its own best attempt, `best_number`.
    """

    agent: str
    runtime: str
    model: str
    attempts: int | None
    best: float | None
    best_number: int | None
    money: float | None
    tokens: int | None
    input: int | None
    cached: int | None
    output: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What all agents have used together. Money is in dollars. None: that is not known.

    `seconds`: under supervision. `tokens_unknown_of`, `money_unknown_of`: the agents that may have used more tokens, or
    more money, than is counted. If there is one, the sum is a lower bound.
    """

    seconds: float | None
    money: float | None
    tokens: int | None
    input: int | None
    cached: int | None
    output: int | None
    tokens_unknown_of: tuple[str, ...]
    money_unknown_of: tuple[str, ...]
    agents: Rows[AgentUsage]

    def data(self) -> dict[str, object]:
        """Return the usage as plain data, as `--json` prints it."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        names = {"tokens_unknown_of": [*self.tokens_unknown_of], "money_unknown_of": [*self.money_unknown_of]}
        return {**own, **names, "agents": self.agents.data()}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row for each agent."""
        return self.agents.to_pandas()


def usage_of(view: RunView) -> RunUsage:
    status = view.status
    agents = [_of_agent(agent) for agent in status.objects("agents")]
    columns = [part.name for part in fields(AgentUsage)]
    spent = status.inner("spent")
    return RunUsage(
        seconds=status.number("clock"),
        money=spent.number("money"),
        tokens=spent.integer("tokens"),
        input=spent.integer("input"),
        cached=spent.integer("cached"),
        output=spent.integer("output"),
        tokens_unknown_of=tuple(status.texts("tokens_unknown_of")),
        money_unknown_of=tuple(status.texts("money_unknown_of")),
        agents=Rows(agents, columns, asdict),
    )


def _of_agent(agent: LenientJson) -> AgentUsage:
    spent = agent.inner("spent")
    return AgentUsage(
        agent=agent.text("name"),
        runtime=agent.text("runtime"),
        model=agent.text("model"),
        attempts=agent.integer("attempts"),
        best=agent.number("best"),
        best_number=agent.integer("best_number"),
        money=spent.number("money"),
        tokens=spent.integer("tokens"),
        input=spent.integer("input"),
        cached=spent.integer("cached"),
        output=spent.integer("output"),
    )
