"""Reads plain values as sections. Each section is checked by itself, so that one mistake does not hide the next."""

import difflib
from collections.abc import Mapping
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coral.config.document import KeyPath, Problem, dotted, shown
from coral.config.model import HeartbeatEntry, TaskFile
from coral.config.section import NOISE_PATTERN, SPAN_PATTERN
from heartbeats.entry import from_entry, is_switched_off
from heartbeats.heartbeat import BUILT_IN, Heartbeat, HeartbeatError, remove_heartbeat, set_heartbeat

S = TypeVar("S", bound=BaseModel)
MESSAGES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a section of keys and values",
    "model_type": "must be a section of keys and values",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "missing": "is missing: {description}",
}
PATTERNS = {  # what a text must be that has to match a pattern
    NOISE_PATTERN: "must be auto, a number from 0, or a share such as 2%",
    SPAN_PATTERN: "must be a number of attempts, or a time such as 30m or 2h",
}

# Keys of the other format of tasks that exists, and what to write instead.
_BREAKER = "crashes are limited by run.breaker_crashes, run.breaker_window and run.breaker_pause"
_GRADER = "name the grader by grader.entry (file.py:function) or grader.command"
_VIEW = "`coral start` shows the run; `coral start --detach` leaves it in the background"

MOVED = {
    "grader.entrypoint": "write entry: package.module:Class",
    "grader.type": _GRADER,
    "grader.module": _GRADER,
    "grader.parallel": "write slots: N",
    "agents.runtime_options": "write options",
    "agents.timeout": "write stall: the seconds of silence after which an agent is interrupted",
    "agents.heartbeat": "write a section heartbeats: entries with name and every, stagnant, minutes or seconds",
    "agents.reflect_every": "write heartbeats: [{name: reflect, every: N}]",
    "agents.heartbeat_every": "write heartbeats: [{name: consolidate, every: N}]",
    "agents.max_turns": "a run is limited by the section budget",
    "agents.restart_burst_threshold": _BREAKER,
    "agents.restart_burst_window": _BREAKER,
    "agents.restart_pause_seconds": _BREAKER,
    "agents.stagger_seconds": "write stagger",
    "agents.warmstart": "write research: the minutes in which agents read and think first",
    "heartbeats.global": "write scope: fleet",
    "heartbeats.trigger": "write every: N, or stagnant: N for a plateau",
    "sharing": "write workspace.share: true or false",
    "workspace.results_dir": "write runs",
    "workspace.repo_path": "write task.seed: a folder or a git repository",
    "run.ui": _VIEW,
    "run.session": _VIEW,
    "run.verbose": _VIEW,
}
TRIGGERS = ("every", "stagnant", "minutes", "seconds")


def section(kind: type[S], values: object, path: KeyPath, problems: list[Problem]) -> S | None:
    """Return the section; None if it has problems, which are added to `problems`. An empty one has its defaults."""
    values = {} if values is None and len(path) == 1 else values
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems.extend(_problem(kind, values, path, detail) for detail in error.errors(include_url=False))
        return None


def unknown_sections(values: Mapping[str, object], problems: list[Problem]) -> None:
    """Add a problem for each section that no task has."""
    for key in values.keys() - TaskFile.model_fields.keys():
        problems.append(Problem((key,), _unknown(key, (key,), values[key], TaskFile)))


def _problem(kind: type[BaseModel], values: object, path: KeyPath, detail: ErrorDetails) -> Problem:
    loc = _within(values, detail["loc"], missing=detail["type"] == "missing")
    where = (*path, *loc)
    value = detail["input"]
    if detail["type"] == "extra_forbidden":
        return Problem(where, _unknown(str(loc[-1]), where, value, _holder(kind, loc)))
    context = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in detail.get("ctx", {}).items()
    }
    if detail["type"] == "missing":
        description = _holder(kind, loc).model_fields[str(loc[-1])].description or ""
        return Problem(where, f"is missing: {description.partition('. ')[0].rstrip('.')}")
    if detail["type"] == "value_error":
        return Problem(where, f"{context['error']}; got {shown(value)}")
    text = MESSAGES.get(detail["type"]) or PATTERNS.get(str(context.get("pattern")), detail["msg"])
    text = text.format(**context)
    quotes = detail["type"] == "string_type" and isinstance(value, int | float)
    return Problem(where, f"{text}; got {shown(value)}" + (" (put it in quotes)" if quotes else ""))


def _holder(kind: type[BaseModel], loc: KeyPath) -> type[BaseModel]:
    for part in loc[:-1]:
        field = kind.model_fields.get(str(part))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        kind = next((other for other in kinds if isinstance(other, type) and issubclass(other, BaseModel)), kind)
    return kind


def _within(values: object, loc: tuple[int | str, ...], *, missing: bool) -> KeyPath:
    """Return the path in the file for a location of pydantic's, which also names the branches of its unions."""
    path: list[int | str] = []
    for part in loc:
        inside = (isinstance(values, dict) and part in values) or (
            isinstance(values, list) and isinstance(part, int) and part < len(values)
        )
        if inside:
            path.append(part)
            values = values[part]  # type: ignore[index]  # `inside` has proved it
        elif missing:
            path.append(part)
    return tuple(path)


def _unknown(key: str, path: KeyPath, value: object, kind: type[BaseModel]) -> str:
    text = f"unknown key (with {shown(value)})"
    if (moved := MOVED.get(dotted(tuple(part for part in path if isinstance(part, str))))) is not None:
        return f"{text}; {moved}"
    if near := difflib.get_close_matches(key.lower(), kind.model_fields, n=1):
        return f'{text}; did you mean "{near[0]}"?'
    for name, field in TaskFile.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and key in inner.model_fields:
            return f"{text}; it belongs under {name}"
    return f"{text}; the keys here are {', '.join(kind.model_fields)}"


def read_heartbeats(values: object, problems: list[Problem]) -> tuple[Heartbeat, ...]:
    """Merge the entries into the built-in heartbeats one by one, so that each refusal has its place in the file."""
    if values is None:
        return BUILT_IN
    if not isinstance(values, list):
        problems.append(Problem(("heartbeats",), f"must be a list of entries, each with a name; got {shown(values)}"))
        return BUILT_IN
    merged, seen = BUILT_IN, set[str]()
    for index, value in enumerate(values):
        where = ("heartbeats", index)
        entry = section(HeartbeatEntry, value, where, problems)
        if entry is None:
            continue
        triggers = [name for name in TRIGGERS if getattr(entry, name) is not None]
        if entry.name in seen:
            problems.append(Problem((*where, "name"), f'"{entry.name}" has an entry already; keep one of them'))
        elif len(triggers) > 1:
            text = f"gives both {triggers[0]} and {triggers[1]}; a heartbeat has one trigger"
            problems.append(Problem((*where, triggers[1]), text))
        else:
            merged = _merged(merged, entry, where, problems)
        seen.add(entry.name)
    return merged


def _merged(
    heartbeats: tuple[Heartbeat, ...], entry: HeartbeatEntry, where: KeyPath, problems: list[Problem]
) -> tuple[Heartbeat, ...]:
    given = entry.model_dump(mode="json", exclude_none=True)
    try:
        if is_switched_off(given):
            return remove_heartbeat(heartbeats, entry.name, "task")
        return set_heartbeat(heartbeats, from_entry(given), "task")
    except HeartbeatError as error:
        problems.append(Problem(where, f"{error} ({error.hint})" if error.hint else str(error)))
        return heartbeats
