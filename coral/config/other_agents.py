"""Translates the agents and heartbeats of a task of the other CORAL. docs/import.md tells users what becomes of
them."""

import contextlib
import re
from pathlib import Path
from typing import Any

from coral.config.document import KeyPath, dotted
from coral.config.translation import Translation, flag, texts, unknown, whole
from coral.errors import CoralError
from coral.runtimes.other_names import DEFAULT, options_of, runtime_of
from coral.runtimes.registry import find as runtime_named
from heartbeats.heartbeat import BUILT_IN, MAX_ATTEMPTS, PROTECTED_SLACK, find
from heartbeats.trigger import Every

RESEARCH_MINUTES = 20.0  # of the research phase, which the other system ends by itself
NEVER = 30 * 86_400.0  # seconds: the largest value that `agents.stall` may have
_NAMES = {"pivot": "redirect"}  # the other system's names of built-in heartbeats, and ours
_UNKNOWN_HERE = "lint_wiki"  # a built-in heartbeat whose prompt is not in the task
_OF_THE_FLEET = ("consolidate", _UNKNOWN_HERE)  # heartbeats with the scope fleet, whatever their entry says
_JINJA = re.compile(r"\{[{%#]")
_BREAKER = {
    "restart_burst_threshold": "run.breaker_crashes",
    "restart_burst_window": "run.breaker_window",
    "restart_pause_seconds": "run.breaker_pause",
}
_NO_COUNTERPART = {
    "max_turns": "no counterpart: agents go on until a budget ends the run",
    "gateway": "no counterpart: tell the agent program its endpoint, by its own environment",
    "grader_pending_max_age": "no counterpart: who waits for a grade is never taken for stalled",
    "min_clean_runtime_seconds": "no counterpart: docs/agents.md says how crashes are judged",
}
_ASSIGNMENTS: KeyPath = ("agents", "assignments")
_ASSIGNED = {"count", "runtime", "model", "runtime_options"}
_KNOWN = {*_ASSIGNED, *_BREAKER, *_NO_COUNTERPART, "assignments", "timeout", "heartbeat", "skills", "research"}
_KNOWN |= {"stagger_seconds", "warmstart", "reflect_every", "heartbeat_every"}


def read_agents(made: Translation, *, chosen: str) -> None:
    """Translate the section `agents`. `chosen`: the agents' program that the command line names; empty if it names
    none. The task's model and options are not for that program and are left out; so is research if its agents do
    none."""
    given = made.section("agents")
    assignments = made.entries(_ASSIGNMENTS, given.get("assignments"))
    research = flag(made.keys(("agents", "warmstart"), given.get("warmstart")).get("enabled"))
    if research and chosen and not _can_research(chosen):
        made.leave("agents.warmstart", f"left out: {chosen} agents do no research")
        research = False
    if assignments:
        made.put("agents.assignments", [], "agents.assignments")
        entries: list[Any] = made.document.data["agents"]["assignments"]  # type: ignore[index]  # it was just put there
        for number, entry in enumerate(assignments):
            where = (*_ASSIGNMENTS, number)
            entries.append(_assignment(made, {**given, **_inherited(made, entry, where)}, where, research=research))
    else:
        for name, value in _assignment(made, given, ("agents",), research=research).items():
            if not (chosen and name in ("runtime", "model", "options")):
                made.put(f"agents.{name}", value, f"agents.{name}")
            elif name != "runtime":
                made.leave(f"agents.{name}", f"left out: it is for {given.get('runtime') or DEFAULT}, not for {chosen}")
    made.move("agents.stall", "agents.timeout", lambda seconds: whole(seconds) or NEVER)
    made.move("agents.stagger", "agents.stagger_seconds", whole)
    for name, target in _BREAKER.items():
        made.move(target, f"agents.{name}", whole)
    for name, why in _NO_COUNTERPART.items():
        if name in given and (name != "gateway" or flag(made.keys(("agents", name), given[name]).get("enabled"))):
            made.leave(f"agents.{name}", why)
    if not flag(given.get("research"), default=True):
        made.leave("agents.research", "no counterpart: whether agents reach the web is a setting of their program")
    unknown(made, "agents", given, _KNOWN)


def _can_research(runtime: str) -> bool:
    with contextlib.suppress(CoralError):
        return runtime_named(runtime, {}).can_research
    return True  # there is no runtime of that name, which is refused later


def _inherited(made: Translation, entry: dict[str, Any], where: KeyPath) -> dict[str, Any]:
    """Return the keys that an assignment sets itself, with the options of the section `agents` below its own. Empty
    ones are left out, so that it inherits them; but a model is not inherited for another program."""
    own = {name: value for name, value in entry.items() if value not in ("", None)}
    name = "runtime_options"
    options = {
        **made.keys(("agents", name), made.section("agents").get(name)),
        **made.keys((*where, name), own.get(name)),
    }
    model = {} if "runtime" not in own else {"model": own.get("model")}
    return {"count": 1, **own, "runtime_options": options, **model}


def _assignment(made: Translation, given: dict[str, Any], where: KeyPath, *, research: bool) -> dict[str, Any]:
    name = str(given.get("runtime") or DEFAULT)
    found: dict[str, Any] = {"count": whole(given.get("count", 1)), "runtime": runtime_of(name) or name}
    if not runtime_of(name):
        made.leave(f"{dotted(where)}.runtime", f"{name} is none of ours: choose one by agents.runtime=NAME")
    if given.get("model"):
        found["model"] = str(given["model"])
    if research:
        found["research"] = RESEARCH_MINUTES
        made.leave("agents.warmstart", f"research: {RESEARCH_MINUTES:g} minutes, unless the agents end it before")
    at = (*where, "runtime_options")
    options = dict(made.keys(at, given.get("runtime_options")))
    mounts = {
        str(target): str(source) for source, target in made.keys((*at, "mounts"), options.pop("mounts", None)).items()
    }
    for source in texts(given.get("skills") or []):
        target = f"skills/{Path(source).name}"
        mounts[target] = source
        made.leave("agents.skills", f"{source} is in each workspace, as {target}")
    if mounts:
        found["mounts"] = mounts
    if role := options.pop("role_file", ""):
        found["role_file"] = str(role)
    known, others = options_of(options)
    if known:
        found["options"] = known
    for other in others:
        made.leave(f"{dotted(at)}.{other}", "no counterpart, left out")
    return found


def read_heartbeats(made: Translation) -> None:
    given = made.section("agents")
    listed = made.entries(("agents", "heartbeat"), given.get("heartbeat"))
    old = {"reflect": given.get("reflect_every"), "consolidate": given.get("heartbeat_every")}
    entries = [entry for entry in listed if entry.get("name")]
    entries += [{"name": name, "every": every} for name, every in old.items() if every is not None]
    found = {entry["name"]: entry for entry in (_heartbeat(made, entry) for entry in entries) if entry}
    if found:
        made.put("heartbeats", list(found.values()), "agents.heartbeat")


def _heartbeat(made: Translation, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return our entry for a heartbeat; None for a built-in one that we do not have."""
    title = str(given["name"]).strip()
    name = _NAMES.get(title, re.sub(r"[^a-z0-9-]+", "-", title.lower()).strip("-"))
    where, prompt = f"agents.heartbeat {title}", str(given.get("prompt") or "")
    if title == _UNKNOWN_HERE and not prompt.strip():
        made.leave(where, "left out: its prompt is not in the task, and consolidate keeps the notes in order")
        return None
    every, trigger = whole(given.get("every", 1)), "stagnant" if given.get("trigger") == "plateau" else "every"
    built_in = find(BUILT_IN, name)
    entry: dict[str, Any] = {"name": name, trigger: every}
    if built_in is not None and built_in.protected and isinstance(built_in.trigger, Every):
        most = PROTECTED_SLACK * built_in.trigger.n
        bounded = min(max(every, 1), most) if isinstance(every, int) else every
        if bounded != every or trigger != "every":
            made.leave(where, f"every {bounded}: it is protected, and comes after 1 to {most} attempts")
        entry = {"name": name, "every": bounded}
    elif isinstance(every, int):
        entry[trigger] = min(max(every, 1), MAX_ATTEMPTS)
        is_global = flag(given.get("global")) or title in _OF_THE_FLEET
        entry["scope"] = "fleet" if is_global and trigger == "every" else "own"
    if prompt.strip():
        entry["prompt"] = _prompt(prompt)
    return entry


def _prompt(text: str) -> str:
    """Return a prompt as a Jinja template: braces that stand in the text itself are escaped."""
    plain = _JINJA.sub(lambda match: "{{ '" + match[0] + "' }}", text)
    return plain.replace("{shared_dir}", ".shared").replace("{agent_id}", "{{ agent.name }}")
