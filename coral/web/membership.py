"""Adding an agent to the running fleet, and giving an agent another runtime, model or role: the choices that the page
offers, and requests as `coral agent` makes them."""

from collections.abc import Mapping
from typing import Any

from coral.agent_setup.roster import Roster, assignments_of
from coral.errors import CoralError
from coral.fleet.members import WantedMember
from coral.runs.membership import check_of_run, frozen, wanted_assignment
from coral.runtimes.registry import RUNTIMES
from coral.web.reading import RunView

KEYS = ("runtime", "model", "role")  # not the options of a runtime: some of them name programs to start
LONGEST_NAME = 80

Given = Mapping[str, Any]
Json = dict[str, object]


def choices(view: RunView, _: Mapping[str, str]) -> Json:
    """Return the model and the role that a new agent of each runtime would have, and the runtime, model and role of
    each agent now. `first`: the runtime of a new agent if none is chosen."""
    config, roster = frozen(view.layout)
    of_task = list(dict.fromkeys(part.runtime for part in assignments_of(config)))
    names = dict.fromkeys([*of_task, *RUNTIMES])
    as_new = {name: wanted_assignment(config, WantedMember(runtime=name), None) for name in names}
    driven = {name: roster.assignment(name) for name in view.agents()}
    return {
        "first": of_task[0],
        "runtimes": [{"runtime": name, "model": part.model, "role": part.role} for name, part in as_new.items()],
        "agents": {
            name: {"runtime": part.runtime, "model": part.model, "role": part.role} for name, part in driven.items()
        },
    }


def add(view: RunView, given: Given) -> Json:
    """Return the request to add an agent. What `given` leaves out is as for the task's first agents. CoralError if that
    cannot work."""
    name, wanted = given.get("name", ""), _wanted(view, given)
    if not isinstance(name, str):
        raise CoralError("cannot add an agent: its name is no text", "leave it out for the next number")
    check_of_run(view.layout, None, WantedMember(**wanted))
    return {"name": name.strip()[:LONGEST_NAME], **wanted}


def move(view: RunView, agent: str, given: Given) -> Json:
    """Return the request to change how an agent is driven. What `given` leaves out stays as it is. CoralError if that
    cannot work."""
    wanted = _wanted(view, given)
    if not wanted:
        raise CoralError(f"cannot move {agent}: nothing is to change", "give a model, a role or a runtime")
    check_of_run(view.layout, agent, WantedMember(**wanted))
    return {"agent": agent, **wanted}


def _wanted(view: RunView, given: Given) -> dict[str, Any]:
    wanted = {key: given[key] for key in KEYS if given.get(key) is not None}
    for key, value in wanted.items():
        if not isinstance(value, str):
            raise CoralError(f"cannot send that: the {key} is no text", "write it, then send it")
    runtime = wanted.get("runtime", "")
    # A runtime that this run does not have yet would be loaded as code here, by whoever has the token.
    if ":" in runtime and runtime not in _runtimes_of(frozen(view.layout)[1]):
        hint = "give it to `coral agent` as --runtime"
        raise CoralError(f"cannot use the runtime {runtime[:60]!r} from here: this run does not have it", hint)
    return wanted


def _runtimes_of(roster: Roster) -> set[str]:
    return {assignment.runtime for assignment, _ in roster.assignments} | {
        roster.assignment(agent).runtime for agent in roster
    }
