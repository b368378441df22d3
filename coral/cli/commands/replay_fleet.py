"""The fleet as it was, shown as `coral status` shows it as it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import Console

from coral.cli.commands.status import print_heading
from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.agents_table import agents_table
from coral.fleet.agent_state import LIVE
from coral.fleet.rules import Rules
from coral.journal import Memory
from coral.journal.changes import whole
from coral.views.fleet_view import agents_of, grading_of, spent_of, state_of
from coral.views.prompt import budget
from workspace.layout import Layout


@dataclass(frozen=True)
class PastRun(RunView):
    """A look at a run of which only its journal is believed."""

    memory: Memory

    @cached_property
    def status(self) -> LenientJson:
        data = view(self.memory)
        number = self.memory.fleet.run.progress.best_attempt
        best = None if number is None else self.attempt_or_none(number)
        if best is not None:
            data["best"] |= {"agent": best.agent, "title": best.title}
        return LenientJson(data)

    @property
    def state(self) -> str:
        return self.status.text("state")


def show(out: Console, layout: Layout, memory: Memory) -> None:
    reading = PastRun(layout, memory)
    print_heading(out, reading)
    out.print(f"as it was at {memory.wall}")
    if memory.fleet.agents:
        out.print()
        out.print(agents_table(reading.status, 0.0, out.width))


def view(memory: Memory) -> dict[str, Any]:
    """What `status.json` said then, as far as the state of the fleet tells."""
    fleet, rules = memory.fleet, memory.rules or Rules()
    progress = fleet.run.progress
    return {
        "run": fleet.run.id,
        "direction": rules.direction.value,
        **state_of(fleet.run),
        "wall": memory.wall,
        "clock": round(memory.clock, 3),
        "best": None if progress.best is None else {"number": progress.best_attempt, "score": progress.best},
        "attempts": progress.evals,
        "grading": {"slots": rules.slots, **grading_of(fleet, memory.clock)},
        "spent": spent_of(fleet.run.spent),
        "budget": budget(rules, fleet, memory.clock),
        "agents": [_agent(each, memory) for each in agents_of(fleet, memory.clock)],
    }


def _agent(view: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """With the last sign of life that was worth a line."""
    agent = memory.fleet.agents[view["name"]]
    age = round(memory.clock - agent.last_output_at, 1)
    beat = {"phase": agent.activity, "message": "", "age": age} if agent.phase in LIVE and agent.has_output else None
    return {**view, "beat": beat}


def plain(memory: Memory) -> dict[str, Any]:
    """For programs: the view, and the whole state as the journal holds it."""
    return {**view(memory), "fleet": whole(memory.fleet)}
