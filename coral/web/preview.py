"""Renders what the prompt of a heartbeat would say to an agent now. The dashboard does that itself, so that it costs
the supervisor nothing."""

import threading
from itertools import islice
from typing import Any

from attempts.index import query
from attempts.record import Attempt
from coral.agent_setup.roster import Roster
from coral.config.load import load_frozen
from coral.errors import CoralError
from coral.journal import fold
from coral.records.recent import RECENT, RecentResults
from coral.runs.rules import rules_of
from coral.supervisor.context import RunContext
from coral.views.prompt import section_preview
from coral.web.reading import RunView
from heartbeats.heartbeat import BUILT_IN, find
from heartbeats.render import problems

LATEST = 200  # attempts of the fleet that a prompt may speak of
_one_at_a_time = threading.Lock()  # rendering is bounded, but may take a core for a moment


def preview(view: RunView, given: Any) -> dict[str, object]:
    """Render a heartbeat's section of a prompt. `given`: the agent, the heartbeat's name and its prompt, empty for the
    built-in one. `problem` of the result: why the prompt would be refused, or would be sent as it is written.
    CoralError if there is no such agent or prompt."""
    agent, name, prompt = (_text(given, key) for key in ("agent", "name", "prompt"))
    if agent not in view.agents():
        raise CoralError(f"cannot find the agent {agent[:80]!r}", "choose one of the run's")
    if not prompt.strip() and find(BUILT_IN, name) is None:
        raise CoralError(f"cannot preview {name[:60]!r}: it has no prompt", "write what it says")
    with _one_at_a_time:
        wrong = problems(prompt) if prompt.strip() else []
        memory = fold(view.layout.journal)
        if agent not in memory.fleet.agents:
            raise CoralError(f"cannot preview it for {agent}: it has not begun", "choose another agent")
        text, warning = section_preview(_context(view, agent), memory.fleet, agent, name, prompt.strip(), memory.clock)
    return {"agent": agent, "text": text, "problem": wrong[0] if wrong else warning}


def _text(given: Any, name: str) -> str:
    held = given.get(name) if isinstance(given, dict) else None
    return held if isinstance(held, str) else ""


def _context(view: RunView, agent: str) -> RunContext:
    """Return what the supervisor would make the prompt from, as far as it is published."""
    config = load_frozen(view.layout.task_file)
    roster = Roster(config)
    rules = rules_of(config, roster, view.seed.commit if view.seed else "")
    return RunContext(view.layout, config, rules, RecentResults(_latest(view, agent)), roster)


def _latest(view: RunView, agent: str) -> list[Attempt]:
    def numbers(wanted: query.Wanted, most: int) -> list[int]:
        return view.index.ask(lambda rows: list(islice(query.recent(rows, wanted), most)))

    latest = dict.fromkeys([*numbers(query.Wanted(), LATEST), *numbers(query.Wanted(agent), RECENT)])
    records = [view.seed, *map(view.attempt_or_none, latest)]
    return [record for record in records if record is not None]
