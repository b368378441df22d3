"""What prompts and the supervisor read of a run: its folder, task, rules, recent results and agents."""

from dataclasses import dataclass
from pathlib import Path

from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.fleet.rules import Rules
from coral.records.recent import RecentResults
from workspace.layout import Layout
from workspace.seal import Level


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is known of a run besides its fleet's state: fixed for one supervisor, except the recent results and the
    roster."""

    layout: Layout
    config: Config
    rules: Rules
    results: RecentResults
    roster: Roster
    level: Level = Level.NONE  # at which agents are sealed
    venv: Path | None = None  # of the graders. Read once: an agent that can write there could name another one.
