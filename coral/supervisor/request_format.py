"""Reads requests as agents and the operator write them; the data may be malformed. ValueError says what is wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from attempts.fields import one_line
from coral.fleet import events as on
from coral.fleet.members import WantedMember
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.fleet.run_state import FLEET

TEXT_LIMIT = 20_000
IDS_LIMIT = 100
WHAT_LENGTH = 200
DEEPEST = 16  # objects and lists in one another, in the options of an agent
Fields = Mapping[str, object]


def read_request(data: Fields) -> on.Request:
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"type: there is no request {one_line(str(kind), 60)!r}")
    return _KINDS[kind](data)


def _run_job(data: Fields) -> on.RunJob:
    what, folder = one_line(_text(data, "what", ""), WHAT_LENGTH), _text(data, "folder", "")
    return on.RunJob(agent=_text(data, "agent"), argv=_command(data.get("command")), what=what, folder=folder)


def _number(data: Fields, name: str = "number") -> int:
    number = data.get(name)
    if type(number) is not int:
        raise ValueError(f"{name}: must be a whole number")
    return number


def _limit(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15):
        raise ValueError("limit: must be a finite number, or null")
    return value


def _wanted(data: Fields) -> WantedMember:
    given = {name: _text(data, name) for name in ("runtime", "model", "role") if data.get(name) is not None}
    options = data.get("options")
    if options is not None and not isinstance(options, dict):
        raise ValueError("options: must be an object")
    if not _fits(options, DEEPEST):
        raise ValueError(f"options: must have finite numbers, and at most {DEEPEST} levels")
    return WantedMember(**given, options=options)


def _fits(value: object, levels: int) -> bool:
    """Return whether the journal can hold a value: an infinite number, or one that is nested too deeply, would end the
    supervisor, and every later one that reads the request again."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_fits(item, levels - 1) for item in inner)
    return not isinstance(value, float) or math.isfinite(value)


def _owner(data: Fields) -> str:
    return _text(data, "owner", FLEET)


def _end(data: Fields) -> RunEnd:
    return RunEnd(RunEndKind.REQUEST, detail=_text(data, "reason", ""))


def _entry(value: object) -> dict[str, str | int | float | bool | None]:
    if not isinstance(value, dict):
        raise ValueError("heartbeat: must be an object")
    entry: dict[str, str | int | float | bool | None] = {}
    for key, field in value.items():
        if isinstance(field, str):
            entry[key] = _text(value, key)
        elif field is None or isinstance(field, bool) or (isinstance(field, int | float) and abs(field) < 1e15):
            entry[key] = field
        else:
            raise ValueError(f"heartbeat: {one_line(str(key), 40)}: must be a text or a finite number")
    return entry


def _command(value: object) -> tuple[str, ...]:
    """Read a command, a list of words. A word that cannot be written as UTF-8 is refused: it cannot be journalled, and
    with the character replaced it would be another command."""
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError("command: must be a list of words, and not an empty one")
    if any("\0" in word or word != _writable(word) for word in value):
        raise ValueError("command: must be text")
    return tuple(value)


def _list(data: Fields, name: str, kind: type, called: str) -> tuple[Any, ...]:
    items = data.get(name, [])
    if not isinstance(items, list) or not all(type(item) is kind for item in items):
        raise ValueError(f"{name}: must be a list of {called}")
    return tuple(items[:IDS_LIMIT])


def _text(data: Fields, name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a text")
    return _writable(value[:TEXT_LIMIT])


def _writable(text: str) -> str:
    """Return the text with a question mark for each character that cannot be written as UTF-8, and so cannot be
    journalled."""
    return text.encode("utf-8", "replace").decode()


_KINDS: Mapping[str, Callable[[Fields], on.Request]] = {
    "set_heartbeat": lambda data: on.SetHeartbeat(owner=_owner(data), entry=_entry(data.get("heartbeat"))),
    "remove_heartbeat": lambda data: on.RemoveHeartbeat(owner=_owner(data), name=_text(data, "name")),
    "reset_heartbeats": lambda data: on.ResetHeartbeats(owner=_owner(data)),
    "tell": lambda data: on.Tell(to=_text(data, "to", "*"), text=_text(data, "text")),
    "pause": lambda data: on.Pause(agent=_text(data, "agent")),
    "unpause": lambda data: on.Unpause(agent=_text(data, "agent")),
    "restart": lambda data: on.Restart(agent=_text(data, "agent"), fresh=data.get("fresh") is True),
    "retire": lambda data: on.Retire(agent=_text(data, "agent")),
    "add_agent": lambda data: on.AddAgent(name=_text(data, "name", ""), wanted=_wanted(data)),
    "move_agent": lambda data: on.MoveAgent(agent=_text(data, "agent"), wanted=_wanted(data)),
    "set_budget": lambda data: on.SetBudget(
        key=_text(data, "key"), limit=_limit(data.get("limit")), as_task=data.get("as_task") is True
    ),
    "hold_grading": lambda _: on.HoldGrading(),
    "release_grading": lambda _: on.ReleaseGrading(),
    "cancel_grade": lambda data: on.CancelGrade(number=_number(data)),
    "acknowledge_alerts": lambda data: on.AcknowledgeAlerts(
        through=None if data.get("through") is None else _number(data, "through")
    ),
    "stop": lambda data: on.Stop(end=_end(data), after_grades=data.get("after_grades") is True),
    "leave": lambda data: on.Leave(end=_end(data)),
    "acknowledge": lambda data: on.Acknowledge(
        messages=_list(data, "messages", str, "ids"), jobs=_list(data, "jobs", int, "whole numbers")
    ),
    "start_job": _run_job,
    "ask": lambda data: on.Ask(text=_text(data, "text")),
    "answer": lambda data: on.AnswerQuestion(number=_number(data), text=_text(data, "text")),
    "stop_job": lambda data: on.StopJob(number=_number(data)),
    "alert": lambda data: on.RaiseAlert(text=_text(data, "text")),
}
